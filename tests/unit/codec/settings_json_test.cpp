#include "common/codec/settings_json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/settings_table.h"
#include "tests/unit/codec/every_setting.h"

namespace podqos::codec {
namespace {

using core::Settings;
using every_setting::at_path;
using every_setting::everything;
using every_setting::kEverything;
using every_setting::kFields;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MergeSettings, ReadsEveryField) {
  const auto merged = merge_settings({}, kEverything);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(*merged, everything());
}

TEST(MergeSettings, KeepsWhatTheFileDoesNotName) {
  EXPECT_EQ(merge_settings(everything(), "{}"), everything());
  Settings expected = everything();
  expected.kube_reserved.cpu = MilliCpu{1000};
  EXPECT_EQ(merge_settings(everything(), R"({"reserved":{"kube":{"cpu":1}},"log":{}})"), expected);
}

TEST(MergeSettings, TakesTheKubeletsWordsForWhatIsEnforced) {
  for (const char* off :
       {R"({"enforceNodeAllocatable":[]})", R"({"enforceNodeAllocatable":["none"]})"})
    EXPECT_FALSE(merge_settings({}, off)->enforce_node_allocatable) << off;
  EXPECT_TRUE(merge_settings(everything(), R"({"enforceNodeAllocatable":["pods"]})")
                  ->enforce_node_allocatable);
}

TEST(MergeSettings, TakesARuleOrAWeightForTheRoot) {
  using Rule = core::RootCpuWeight::Rule;
  EXPECT_EQ(merge_settings({}, R"({"rootCpuWeight":"proportional"})")->root_cpu_weight,
            core::RootCpuWeight{.rule = Rule::kProportional});
  EXPECT_EQ(merge_settings({}, R"({"rootCpuWeight":10000})")->root_cpu_weight,
            (core::RootCpuWeight{.rule = Rule::kNumber, .weight = CpuWeight{10'000}}));
}

TEST(MergeSettings, TakesNullForNotPinned) {
  Settings expected = everything();
  expected.node_memory.reset();
  expected.node_cpu.reset();
  expected.pod_pids_limit.reset();
  expected.reserve_memory_percent.reset();
  expected.io_weight.besteffort.reset();
  EXPECT_EQ(
      merge_settings(
          everything(),
          R"({"nodeMemory":null,"nodeCpu":null,"podPidsLimit":null,"qosReserved":{"memory":null},"ioWeight":{"bestEffort":null}})"),
      expected);
}

Settings with_word(const Settings& base, const std::string& path, const std::string& word) {
  auto merged = merge_settings(base, at_path(path, cat("\"", word, "\"")));
  if (!merged) ADD_FAILURE() << path << word << merged.error().message;
  return merged ? *std::move(merged) : base;
}

/// Each of these words, laid over any settings, gives the field this value.
template <class T>
void expect_words(const std::string& path, T Settings::* field,
                  const std::vector<std::pair<std::string, T>>& words) {
  for (const auto& [word, value] : words) {
    EXPECT_EQ(with_word({}, path, word).*field, value) << path << " " << word;
    EXPECT_EQ(with_word(everything(), path, word).*field, value) << path << " " << word;
  }
}

TEST(MergeSettings, KnowsEveryWord) {
  using Trust = core::TrustAnnotations;
  using Formula = core::WeightFormulaSetting;
  using Driver = core::DriverSetting;
  expect_words("scope", &Settings::scope,
               {{"pods", core::Scope::kPods},
                {"annotated", core::Scope::kAnnotated},
                {"all", core::Scope::kAll}});
  expect_words(
      "trustAnnotations", &Settings::trust_annotations,
      {{"engine-checked", Trust::kEngineChecked}, {"all", Trust::kAll}, {"none", Trust::kNone}});
  expect_words(
      "cgroupDriver", &Settings::cgroup_driver,
      {{"auto", Driver::kAuto}, {"cgroupfs", Driver::kCgroupfs}, {"systemd", Driver::kSystemd}});
  expect_words("placement.onMisplaced", &Settings::on_misplaced,
               {{"rewrite", core::OnMisplaced::kRewrite},
                {"fail", core::OnMisplaced::kFail},
                {"ignore", core::OnMisplaced::kIgnore}});
  expect_words<std::optional<core::WithoutParent>>(
      "placement.withoutParent", &Settings::without_parent,
      {{"stay", core::WithoutParent::kStay}, {"place", core::WithoutParent::kPlace}});
  expect_words("onError", &Settings::on_error,
               {{"admit", core::OnError::kAdmit}, {"reject", core::OnError::kReject}});
  expect_words("weightFormula", &Settings::weight_formula,
               {{"auto", Formula::kAuto}, {"linear", Formula::kLinear}, {"log", Formula::kLog}});
  expect_words<std::optional<core::SwapBehavior>>(
      "memorySwap.swapBehavior", &Settings::swap_behavior,
      // "" as in KubeletConfiguration.
      {{"NoSwap", core::SwapBehavior::kNoSwap},
       {"LimitedSwap", core::SwapBehavior::kLimitedSwap},
       {"", core::SwapBehavior::kNoSwap}});
  expect_words("log.level", &Settings::log_level,
               {{"debug", core::LogLevel::kDebug},
                {"info", core::LogLevel::kInfo},
                {"warning", core::LogLevel::kWarning},
                {"error", core::LogLevel::kError}});
  expect_words<std::string>(
      "log.sink", &Settings::log_sink,
      {{"syslog", "syslog"}, {"stderr", "stderr"}, {"none", "none"}, {"/l", "/l"}});
}

TEST(MergeSettings, TakesBothSpellingsOfBestEffort) {
  for (const std::string name : {"besteffort", "bestEffort"}) {
    const auto merged = merge_settings(
        {}, cat(R"({"ioWeight":{")", name, R"(":7},"cpuIdle":{")", name, R"(":true},"eviction":{")",
                name, R"(":{"memoryPressure":"60%/30s"}}})"));
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(merged->io_weight.besteffort, 7);
    EXPECT_TRUE(merged->cpu_idle_besteffort);
    EXPECT_TRUE(merged->eviction.besteffort);
  }
}

TEST(MergeSettings, TakesCommentsOfCAlone) {
  EXPECT_EQ(merge_settings({}, "/**/{}// c"), Settings{});
  EXPECT_FALSE(merge_settings({}, "{\"enabled\":true} # c"));
}

TEST(SettingsTable, KnowsEveryFieldWithItsDefault) {
  const auto fields = settings_table();
  ASSERT_EQ(fields.size(), kFields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Setting& field = fields[i];
    const std::string standard = format_value(field.kind, field.get(Settings{}));
    EXPECT_EQ(field.path, kFields[i].path);
    EXPECT_EQ(merge_settings(Settings{}, at_path(field.path, standard)), Settings{}) << field.path;
  }
}

TEST(FormatSettings, PrintsWhatMergeReadsBack) {
  EXPECT_EQ(merge_settings({}, format_settings(everything())), everything());
  EXPECT_EQ(merge_settings(everything(), format_settings({})), Settings{});
}

TEST(FormatSettings, PrintsEveryFieldInTheUnitsOfPeople) {
  const auto all = nlohmann::ordered_json::parse(R"({
    "enabled": true, "scope": "pods", "trustAnnotations": "engine-checked",
    "allowQosOverride": false, "cgroupRoot": "/podqos", "cgroupDriver": "auto",
    "placement": {"onMisplaced": "rewrite", "withoutParent": null}, "onError": "admit",
    "nodeMemory": null, "nodeCpu": null,
    "reserved": {"system": {"cpu": "0", "memory": "0"}, "kube": {"cpu": "0", "memory": "0"}},
    "enforceNodeAllocatable": ["pods"], "rootCpuWeight": "kubelet",
    "admission": {"memory": null, "cpu": "warn", "pids": "warn"},
    "qosReserved": {"memory": null}, "maxPodClaim": "100%", "cpuCFSQuota": true,
    "cpuCFSQuotaPeriod": "100ms", "cpuBurst": {"guaranteed": null, "burstable": null},
    "cpuIdle": {"bestEffort": false}, "weightFormula": "auto", "podPidsLimit": null,
    "ioWeight": {"guaranteed": null, "burstable": null, "bestEffort": null},
    "eviction": {"burstable": {"memoryPressure": null}, "bestEffort": {"memoryPressure": null},
                 "interval": "1m"},
    "memorySwap": {"swapBehavior": "NoSwap"}, "singleProcessOOMKill": false,
    "memoryReservationPolicy": "None", "memoryThrottlingFactor": null, "memoryHighPatience": "30s",
    "releaseDelay": "30s", "tierMemoryFloor": "64Mi",
    "runtimes": ["/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun", "/usr/libexec/crio/crun"],
    "chargeMonitor": false, "stateDir": "/run/podqos", "lockDeadline": "5s",
    "nri": {"metrics": null}, "metrics": {"pods": "none"}, "log": {"sink": "syslog", "level": "info"},
    "events": {"size": "4Mi"}
  })");
  EXPECT_EQ(format_settings({}), all.dump(2) + "\n");
}

TEST(ChangedSettings, ComeBackFromTheirText) {
  EXPECT_EQ(format_changed_settings({}), "{}");
  core::Settings some;
  some.scope = core::Scope::kAll;
  some.pod_pids_limit = 64;
  some.system_reserved.cpu = MilliCpu{1500};
  some.swap_behavior = std::nullopt;
  EXPECT_EQ(format_changed_settings(some),
            R"({"scope":"all","reserved.system.cpu":"1500m","podPidsLimit":64,)"
            R"("memorySwap.swapBehavior":null})");
  for (const core::Settings& settings : {core::Settings{}, some, everything()}) {
    const std::string text = format_changed_settings(settings);
    const auto tree = parse_json_tree(text);
    ASSERT_TRUE(tree) << text;
    EXPECT_EQ(read_changed_settings(*tree), settings) << text;
  }
  const auto newer = parse_json_tree(R"({"scope": "all", "of.tomorrow": 1, "podPidsLimit": "x"})");
  ASSERT_TRUE(newer);
  core::Settings known;
  known.scope = core::Scope::kAll;
  EXPECT_EQ(read_changed_settings(*newer), known);
}

TEST(SalvageRuntimes, FindsThemWhateverElseIsWrong) {
  const std::vector<std::string> cases = {
      R"({"runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"logLevel": "debug", "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "runtime": ["/usr/bin/runc"]})",
      R"({"qosReserved": {"memory": "150%"}, "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"enabled": true, "enabled": true, "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "enabled": })",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "log": {"level")",
      R"({"runtimes": ["/usr/bin/crun", "/b"],})",
      R"({"runtimes": ["/usr/bin/crun", "/b"])",
      R"({"runtimes": ["/usr/bin/crun", "/b"]} x)",
      "// \"runtimes\": [\"/usr/bin/runc\"]\n{\"runtimes\": [\"/usr/bin/crun\", \"/b\"] \"a\": 1}",
      R"({"\u0072untimes": ["/usr/bin/crun", "/b"], "stateDir": 7})",
  };
  for (const std::string& text : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_TRUE(runtimes) << text << runtimes.error().message;
    ASSERT_TRUE(*runtimes) << text;
    EXPECT_THAT(**runtimes, ElementsAre("/usr/bin/crun", "/b")) << text;
  }
}

TEST(SalvageRuntimes, KnowsWhenTheyAreLeftOut) {
  const std::vector<std::string> cases = {
      "{}",
      "{ // \"runtimes\": [\"/usr/bin/crun\"]\n}",
      R"({"onErorr": "reject"})",
      R"({"statedir": "/run/other", "cgroupRooot": "/x", "logSink": "/var/log/podqos"})",
      R"({"log": {"sink": 7, "levell": "debug"}, "comment": "of the node's owner"})",
      R"({"qosReserved": {"memory": "150%"}, "enabled": "yes"})",
      "",
      "enabled: true",
      R"({"scope": )",
      R"({"enabled": true)",
      "{\"enabled\": true \"scope\": \"pods\",\n  // \"runtimes\": [\"/usr/bin/crun\"]\n}",
  };
  for (const std::string& text : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_TRUE(runtimes) << text << runtimes.error().message;
    EXPECT_FALSE(*runtimes) << text;
  }
}

struct Doubt {
  std::string text;
  std::string word;  ///< in the message
};

TEST(SalvageRuntimes, RefusesWhatMayBeMeantOtherwise) {
  const std::vector<Doubt> cases = {
      {"[]", "object"},
      {R"({"enabled": true "runtimes": ["/usr/bin/crun"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun")", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun" "/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"], x, "runtimes": ["/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"] "runtimes": ["/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"], "runtimes": ["/usr/bin/runc" x]})", "malformed JSON"},
      {R"({"log": {"level": "debug", "runtimes": ["/usr/bin/crun"]})",
       "runtimes may be meant as runtimes"},
      {R"({"runtimes": ["/usr/bin/crun"], "runtimes": ["/usr/bin/crun"]})", "repeated"},
      {R"({"runtimes": "/usr/bin/crun"})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": null})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": []})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": ["crun"]})",
       "runtimes: [0]: expected an absolute path without \"..\", found \"crun\""},
      {R"({"runtimes": ["/usr/bin/crun", 7]})", "runtimes: [1]"},
      {R"({"enabled": true "runtime": "/usr/bin/crun"})", "malformed JSON"},
      {R"({"enabled": true "binaries": ["/usr/bin/crun"]})", "malformed JSON"},
      {R"({"runtime": ["/usr/bin/crun"]})", "runtime may be meant as runtimes"},
      {R"({"Runtimes": ["/usr/bin/crun"]})", "Runtimes may be meant as runtimes"},
      {R"({"runtmies": "/usr/bin/crun"})", "runtmies may be meant as runtimes"},
      {R"({"binaries": ["/usr/bin/crun"]})", "binaries may be meant as runtimes"},
      {R"({"ociBinary": "/usr/bin/crun"})", "ociBinary may be meant as runtimes"},
      {R"({"nri": {"runtimes": ["/usr/bin/crun"]}})", "runtimes may be meant as runtimes"},
      {std::string("{\"runtimes\": [\"/usr/bin/crun\"]}\0", 32), "NUL"},
  };
  for (const auto& [text, word] : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_FALSE(runtimes) << text;
    EXPECT_EQ(runtimes.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(runtimes.error().message, HasSubstr(word)) << text;
  }
}

}  // namespace
}  // namespace podqos::codec
