#include "common/codec/settings_json.h"

#include <string>
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
  for (const char* wrong : {R"({"enforceNodeAllocatable":["pods","pods"]})",
                            R"({"enforceNodeAllocatable":["system-reserved"]})",
                            R"({"enforceNodeAllocatable":"pods"})"})
    EXPECT_FALSE(merge_settings({}, wrong)) << wrong;
}

TEST(MergeSettings, TakesARuleOrAWeightForTheRoot) {
  using Rule = core::RootCpuWeight::Rule;
  EXPECT_EQ(merge_settings({}, R"({"rootCpuWeight":"proportional"})")->root_cpu_weight,
            core::RootCpuWeight{.rule = Rule::kProportional});
  EXPECT_EQ(merge_settings({}, R"({"rootCpuWeight":10000})")->root_cpu_weight,
            (core::RootCpuWeight{.rule = Rule::kNumber, .weight = CpuWeight{10'000}}));
  for (const char* wrong : {R"({"rootCpuWeight":0})", R"({"rootCpuWeight":10001})",
                            R"({"rootCpuWeight":"100"})", R"({"rootCpuWeight":1.5})"})
    EXPECT_FALSE(merge_settings({}, wrong)) << wrong;
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

TEST(MergeSettings, TakesTheEndsOfRanges) {
  for (const std::string text :
       {R"({"cpuCFSQuotaPeriod":"1ms"})", R"({"cpuCFSQuotaPeriod":"1s"})",
        R"({"cpuCFSQuotaPeriod":"1500us"})", R"({"lockDeadline":"10ms"})",
        R"({"lockDeadline":"60s"})", R"({"lockDeadline":"1m"})", R"({"releaseDelay":"0s"})",
        R"({"releaseDelay":"1h"})", R"({"qosReserved":{"memory":"0%"}})",
        R"({"qosReserved":{"memory":"100%"}})", R"({"maxPodClaim":"1%"})",
        R"({"maxPodClaim":"100%"})", R"({"cgroupRoot":"/"})", R"({"log":{"sink":"none"}})",
        R"({"cgroupDriver":"auto"})", R"({"tierMemoryFloor":0})"}) {
    EXPECT_TRUE(merge_settings({}, text)) << text;
  }
}

struct WordCase {
  std::string path;
  std::string word;
  bool (*read)(const Settings&);
};

TEST(MergeSettings, KnowsEveryWord) {
  using core::OnMisplaced;
  using Trust = core::TrustAnnotations;
  using Formula = core::WeightFormulaSetting;
  using Level = core::LogLevel;
  const std::vector<WordCase> cases = {
      {"scope", "pods", [](const Settings& s) { return s.scope == core::Scope::kPods; }},
      {"scope", "annotated", [](const Settings& s) { return s.scope == core::Scope::kAnnotated; }},
      {"scope", "all", [](const Settings& s) { return s.scope == core::Scope::kAll; }},
      {"trustAnnotations", "engine-checked",
       [](const Settings& s) { return s.trust_annotations == Trust::kEngineChecked; }},
      {"trustAnnotations", "all",
       [](const Settings& s) { return s.trust_annotations == Trust::kAll; }},
      {"trustAnnotations", "none",
       [](const Settings& s) { return s.trust_annotations == Trust::kNone; }},
      {"cgroupDriver", "auto",
       [](const Settings& s) { return s.cgroup_driver == core::DriverSetting::kAuto; }},
      {"cgroupDriver", "cgroupfs",
       [](const Settings& s) { return s.cgroup_driver == core::DriverSetting::kCgroupfs; }},
      {"placement.onMisplaced", "rewrite",
       [](const Settings& s) { return s.on_misplaced == OnMisplaced::kRewrite; }},
      {"placement.onMisplaced", "fail",
       [](const Settings& s) { return s.on_misplaced == OnMisplaced::kFail; }},
      {"placement.onMisplaced", "ignore",
       [](const Settings& s) { return s.on_misplaced == OnMisplaced::kIgnore; }},
      {"placement.withoutParent", "stay",
       [](const Settings& s) { return s.without_parent == core::WithoutParent::kStay; }},
      {"placement.withoutParent", "place",
       [](const Settings& s) { return s.without_parent == core::WithoutParent::kPlace; }},
      {"onError", "admit", [](const Settings& s) { return s.on_error == core::OnError::kAdmit; }},
      {"onError", "reject", [](const Settings& s) { return s.on_error == core::OnError::kReject; }},
      {"weightFormula", "auto",
       [](const Settings& s) { return s.weight_formula == Formula::kAuto; }},
      {"weightFormula", "linear",
       [](const Settings& s) { return s.weight_formula == Formula::kLinear; }},
      {"weightFormula", "log", [](const Settings& s) { return s.weight_formula == Formula::kLog; }},
      {"memorySwap.swapBehavior", "NoSwap",
       [](const Settings& s) { return s.swap_behavior == core::SwapBehavior::kNoSwap; }},
      {"memorySwap.swapBehavior", "LimitedSwap",
       [](const Settings& s) { return s.swap_behavior == core::SwapBehavior::kLimitedSwap; }},
      {"log.level", "debug", [](const Settings& s) { return s.log_level == Level::kDebug; }},
      {"log.level", "info", [](const Settings& s) { return s.log_level == Level::kInfo; }},
      {"log.level", "warning", [](const Settings& s) { return s.log_level == Level::kWarning; }},
      {"log.level", "error", [](const Settings& s) { return s.log_level == Level::kError; }},
      {"log.sink", "syslog", [](const Settings& s) { return s.log_sink == "syslog"; }},
      {"log.sink", "stderr", [](const Settings& s) { return s.log_sink == "stderr"; }},
      {"log.sink", "none", [](const Settings& s) { return s.log_sink == "none"; }},
      {"log.sink", "/l", [](const Settings& s) { return s.log_sink == "/l"; }},
  };
  for (const auto& [path, word, read] : cases) {
    for (const Settings& base : {Settings{}, everything()}) {
      const auto merged = merge_settings(base, at_path(path, cat("\"", word, "\"")));
      ASSERT_TRUE(merged) << path << word << merged.error().message;
      EXPECT_TRUE(read(*merged)) << path << " " << word;
    }
  }
}

// KubeletConfiguration: "" stands for NoSwap.
TEST(MergeSettings, TakesAKubeletsEmptySwapBehavior) {
  const auto merged = merge_settings(everything(), at_path("memorySwap.swapBehavior", R"("")"));
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->swap_behavior, core::SwapBehavior::kNoSwap);
}

TEST(MergeSettings, TakesNoCommentForAnEndOfText) {
  EXPECT_EQ(merge_settings({}, "/**/{}// c"), Settings{});
  EXPECT_FALSE(merge_settings({}, "{} /* open"));
  EXPECT_FALSE(merge_settings({}, "{\"enabled\":true} # c"));
  EXPECT_FALSE(merge_settings({}, std::string("{} // c\0\n", 9)));
  EXPECT_FALSE(merge_settings({}, std::string("{}\0{\"enabled\":false}", 20)));
}

}  // namespace
}  // namespace podqos::codec
