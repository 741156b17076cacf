#include "common/codec/settings_json.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/codec/every_setting.h"

namespace podqos::codec {
namespace {

using core::Settings;
using every_setting::at_path;
using every_setting::everything;
using every_setting::kEverything;

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

/// Each of these words, laid over any settings, gives the field this value.
template <class T>
void expect_words(const std::string& path, T Settings::* field,
                  const std::vector<std::pair<std::string, T>>& words) {
  for (const auto& [word, value] : words) {
    for (const Settings& base : {Settings{}, everything()}) {
      const auto merged = merge_settings(base, at_path(path, cat("\"", word, "\"")));
      ASSERT_TRUE(merged) << path << word << merged.error().message;
      EXPECT_EQ((*merged).*field, value) << path << " " << word;
    }
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

TEST(MergeSettings, TakesCommentsOfCAlone) {
  EXPECT_EQ(merge_settings({}, "/**/{}// c"), Settings{});
  EXPECT_FALSE(merge_settings({}, "{\"enabled\":true} # c"));
}

}  // namespace
}  // namespace podqos::codec
