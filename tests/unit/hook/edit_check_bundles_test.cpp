#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "hook/edit_check.h"
#include "tests/unit/hook/own_hooks.h"

namespace podqos::hook {
namespace {

using codec::Splice;
using nlohmann::json;
using test::kContainerPath;
using test::own_hooks;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

/// Changes members on the edited paths as engines might have them: gone, null, 0 or empty.
void loosen(json& config, std::mt19937& random) {
  constexpr std::array kPointers{"/process/oomScoreAdj",
                                 "/process",
                                 "/hooks/createRuntime",
                                 "/hooks/poststop",
                                 "/hooks",
                                 "/linux/cgroupsPath",
                                 "/linux/resources/cpu/shares",
                                 "/linux/resources/cpu/quota",
                                 "/linux/resources/cpu/period",
                                 "/linux/resources/memory/limit",
                                 "/linux/resources/pids/limit",
                                 "/linux/resources/cpu",
                                 "/linux/resources/memory",
                                 "/linux/resources/pids",
                                 "/linux/resources/hugepageLimits",
                                 "/linux/resources",
                                 "/linux"};
  for (const char* text : kPointers) {
    const json::json_pointer pointer{text};
    const bool there = config.contains(pointer);
    if (!there && !config.contains(pointer.parent_pointer())) continue;
    if (!config[pointer.parent_pointer()].is_object()) continue;
    const bool scalar = there && !config[pointer].is_structured();
    switch (random() % 8) {
      case 0: config[pointer] = nullptr; break;
      case 1: config[pointer.parent_pointer()].erase(pointer.back()); break;
      case 2:
        if (scalar && !config[pointer].is_string()) config[pointer] = 0;
        break;
      case 3:
        if (there && !scalar) config[pointer].clear();
        break;
      default: break;
    }
  }
}

/// All that podqos may fill in, as far as the engine has left it unset.
core::ConfigEdit edit_for(const core::ContainerFacts& facts) {
  const core::EngineResources& engine = facts.resources;
  core::ConfigEdit edit{.cgroups_path = std::string{kContainerPath},
                        .hugepages = {{"1GB", Bytes{1 << 30}}, {"2MB", Bytes{2 << 20}}}};
  if (!engine.cpu_shares) edit.cpu_shares = CpuShares{102};
  if (!engine.cpu_quota) edit.cpu_quota = Micros{50'000};
  if (!engine.cpu_period) edit.cpu_period = Micros{100'000};
  if (!engine.memory_limit) edit.memory_limit = Bytes{1LL << 40};
  if (!engine.pids_limit) edit.pids_limit = 512;
  if (facts.oom_score_adj.value_or(0) == 0) edit.oom_score_adj = -997;
  return edit;
}

class CheckSplicesOfBundle : public TestWithParam<const char*> {
 protected:
  static std::string bundle() {
    std::ifstream file{cat(PODQOS_TEST_DATA "/bundles/", GetParam(), ".json")};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  /// The planned splices, which the check has to take.
  static std::vector<Splice> planned(const std::string& text) {
    const auto config = codec::OciConfig::parse(text);
    EXPECT_TRUE(config) << config.error().message;
    auto splices = codec::plan_splices(text, *config, edit_for(config->facts), own_hooks());
    EXPECT_TRUE(splices) << splices.error().message;
    const auto checked = check_splices(*splices, EditPlaces{text}, kContainerPath, own_hooks());
    EXPECT_TRUE(checked) << checked.error().message << "\n" << text;
    return std::move(*splices);
  }
};

TEST_P(CheckSplicesOfBundle, TakesWhatIsPlanned) {
  EXPECT_GE(planned(bundle()).size(), 3U);
}

TEST_P(CheckSplicesOfBundle, TakesWhatIsPlannedWhateverIsMissing) {
  constexpr unsigned kRuns = 300;
  for (unsigned seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random{seed};
    json config = json::parse(bundle());
    loosen(config, random);
    planned(config.dump(seed % 2 == 0 ? -1 : 4));
  }
}

TEST_P(CheckSplicesOfBundle, TakesOnlyWhatLeavesJsonOneByteAside) {
  const std::string text = bundle();
  for (const Splice& splice : planned(text)) {
    for (const std::size_t by : {std::size_t{1}, ~std::size_t{0}}) {
      Splice moved = splice;
      moved.begin += by;
      moved.end += by;
      const auto after = codec::apply_splices(text, {moved});
      // White space may lie there: then the place is the same.
      if (check_splices({moved}, EditPlaces{text}, kContainerPath, own_hooks())) {
        EXPECT_TRUE(after && json::accept(*after)) << *after;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, CheckSplicesOfBundle,
                         ValuesIn<const char*>({"runc", "runc_rootless", "crun", "containerd"}),
                         [](const TestParamInfo<const char*>& row) {
                           return std::string{row.param};
                         });

}  // namespace
}  // namespace podqos::hook
