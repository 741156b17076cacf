#include "common/codec/settings_json.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::Settings;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kEverything = R"({
  // for people
  "enabled": false, "scope": "annotated", "trustAnnotations": "none", "allowQosOverride": true,
  "cgroupRoot": "/a/b", "cgroupDriver": "cgroupfs", "placement": {"onMisplaced": "move", "withoutParent": "place"}, "onError": "reject",
  "nodeMemory": "32Gi", "nodeCpu": 4, /* pinned */
  "reserved": {"system": {"cpu": "500m", "memory": "1Gi"}, "kube": {"cpu": "0.25", "memory": 1048576}},
  "qosReserved": {"memory": "50%"}, "maxPodClaim": "40%", "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "5ms", "weightFormula": "log",
  "podPidsLimit": 1024, "ioWeight": {"guaranteed": 10000, "burstable": 100, "bestEffort": 1}, "memorySwap": {"swapBehavior": "LimitedSwap"}, "singleProcessOOMKill": true, "releaseDelay": "2m", "tierMemoryFloor": "32Mi", "runtimes": ["/opt/runc"],
  "chargeMonitor": true, "stateDir": "/run/other", "lockDeadline": "250ms",
  "nri": {"metrics": "unix:/run/other/metrics.sock"}, "log": {"sink": "/var/log/podqos.log", "level": "debug"}
})";

Settings everything() {
  Settings out;
  out.enabled = false;
  out.scope = core::Scope::kAnnotated;
  out.trust_annotations = core::TrustAnnotations::kNone;
  out.allow_qos_override = true;
  out.cgroup_root = "/a/b";
  out.cgroup_driver = core::DriverSetting::kCgroupfs;
  out.on_misplaced = core::OnMisplaced::kMove;
  out.without_parent = core::WithoutParent::kPlace;
  out.on_error = core::OnError::kReject;
  out.node_memory = Bytes{34'359'738'368};
  out.node_cpu = MilliCpu{4000};
  out.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{1'073'741'824}};
  out.kube_reserved = {.cpu = MilliCpu{250}, .memory = Bytes{1'048'576}};
  out.reserve_memory_percent = 50;
  out.max_pod_claim_percent = 40;
  out.cpu_cfs_quota = false;
  out.cpu_cfs_quota_period = Micros{5'000};
  out.weight_formula = core::WeightFormulaSetting::kLog;
  out.pod_pids_limit = 1024;
  out.io_weight = {.guaranteed = 10'000, .burstable = 100, .besteffort = 1};
  out.swap_behavior = core::SwapBehavior::kLimitedSwap;
  out.single_process_oom_kill = true;
  out.release_delay_seconds = 120;
  out.tier_memory_floor = Bytes{33'554'432};
  out.runtimes = {"/opt/runc"};
  out.charge_monitor = true;
  out.state_dir = "/run/other";
  out.lock_deadline_ms = 250;
  out.metrics = core::UnixSocket{"/run/other/metrics.sock"};
  out.log_sink = "/var/log/podqos.log";
  out.log_level = core::LogLevel::kDebug;
  return out;
}

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

struct SettingsRefusal {
  std::string text;
  std::string message;
};

TEST(MergeSettings, NamesWhatItRefuses) {
  const std::vector<SettingsRefusal> cases = {
      {"", "not JSON"},
      {"[]", "expected one object of settings, found array"},
      {"{\"enabled\":true,}", "not JSON"},
      {R"({"enable":true})", "unknown field enable; did you mean enabled?"},
      {R"({"reserved":{"system":{"mem":1}}})", "unknown field reserved.system.mem"},
      {R"({"reserved":{"sytem":{}}})",
       "unknown field reserved.sytem; did you mean reserved.system?"},
      {R"({"zzzzzzzzzz":1})", "unknown field zzzzzzzzzz"},
      {R"({"log":{"level":"info","level":"info"}})", "log.level: field is repeated"},
      {R"({"enabled":1})", "enabled: expected true or false, found 1"},
      {R"({"scope":"pod"})",
       "scope: expected one of \"pods\", \"annotated\", \"all\", found \"pod\""},
      {R"({"placement":"move"})", "placement: expected an object, found string"},
      {R"({"cgroupDriver":"systemctl"})",
       "cgroupDriver: expected one of \"auto\", \"cgroupfs\", \"systemd\", found \"systemctl\""},
      {R"({"cgroupRoot":"a"})",
       "cgroupRoot: expected an absolute path without \"..\", found \"a\""},
      {R"({"cgroupRoot":"/a/../b"})", "cgroupRoot"},
      {R"({"cgroupRoot":"/a//b"})", "cgroupRoot"},
      {R"({"cgroupRoot":"/a_b"})", "cgroupRoot"},
      {R"({"stateDir":"/run/.."})", "stateDir"},
      {R"({"stateDir":"/run\u0000"})", "stateDir"},
      {R"({"runtimes":[]})",
       "runtimes: expected a list of 1 to 64 absolute paths without \"..\", found 0"},
      {R"({"runtimes":["/a","runc"]})",
       "runtimes: [1]: expected an absolute path without \"..\", found \"runc\""},
      {R"({"runtimes":"/a"})", "runtimes: expected a list"},
      {R"({"nodeMemory":"32GB"})", "nodeMemory"},
      {R"({"nodeMemory":0})",
       "nodeMemory: expected an amount of memory such as \"64Mi\", above 0, or null, found 0"},
      {R"({"nodeCpu":"-1"})",
       "nodeCpu: expected an amount of CPU such as \"500m\", above 0, or null, found \"-1\""},
      {R"({"tierMemoryFloor":null})", "tierMemoryFloor: expected an amount of memory"},
      {R"({"reserved":{"kube":{"memory":-5}}})",
       "reserved.kube.memory: expected an amount of memory such as \"64Mi\", found -5"},
      {R"({"qosReserved":{"memory":50}})", "qosReserved.memory: expected a percentage"},
      {R"({"maxPodClaim":"0%"})", "maxPodClaim: expected a percentage from \"1%\" to \"100%\""},
      {R"({"maxPodClaim":null})", "maxPodClaim: expected a percentage from \"1%\" to \"100%\""},
      {R"({"maxPodClaim":"101%"})",
       "maxPodClaim: expected a percentage from \"1%\" to \"100%\", found \"101%\""},
      {R"({"qosReserved":{"memory":"101%"}})",
       "qosReserved.memory: expected a percentage from \"0%\" to \"100%\", or null, found "
       "\"101%\""},
      {R"({"qosReserved":{"memory":"-1%"}})", "qosReserved.memory"},
      {R"({"cpuCFSQuotaPeriod":"999us"})",
       "cpuCFSQuotaPeriod: expected a duration from \"1ms\" to \"1s\", found \"999us\""},
      {R"({"cpuCFSQuotaPeriod":"1001ms"})", "cpuCFSQuotaPeriod"},
      {R"({"cpuCFSQuotaPeriod":100})", "expected a duration"},
      {R"({"lockDeadline":"9ms"})", "lockDeadline"},
      {R"({"lockDeadline":"61s"})", "lockDeadline"},
      {R"({"lockDeadline":"10500us"})", "lockDeadline"},
      {R"({"releaseDelay":"3601s"})", "releaseDelay"},
      {R"({"releaseDelay":"-1s"})", "releaseDelay: expected a duration"},
      {R"({"releaseDelay":"1.5s"})",
       "releaseDelay: expected a duration from \"0s\" to \"1h\", in whole seconds, found"},
      {R"({"releaseDelay":"s"})",
       "releaseDelay: expected a duration from \"0s\" to \"1h\", in whole seconds, found"},
      {R"({"releaseDelay":"9223372036854775807h"})",
       "releaseDelay: expected a duration from \"0s\" to \"1h\", in whole seconds, found"},
      {R"({"podPidsLimit":0})", "podPidsLimit"},
      {R"({"podPidsLimit":1.5})", "podPidsLimit"},
      {R"({"podPidsLimit":4194305})", "podPidsLimit"},
      {R"({"ioWeight":100})", "ioWeight: expected an object, found number"},
      {R"({"ioWeight":{"guaranteed":0}})",
       "ioWeight.guaranteed: expected a whole number from 1 to 10000, or null, found 0"},
      {R"({"ioWeight":{"burstable":10001}})", "ioWeight.burstable: expected a whole number"},
      {R"({"ioWeight":{"bestEffort":"10"}})",
       "ioWeight.bestEffort: expected a whole number from 1 to 10000, or null, found \"10\""},
      {R"({"log":{"sink":"stderr"}})", "log.sink"},
      {R"({"log":{"level":"trace"}})", "log.level"},
  };
  for (const auto& [text, message] : cases) {
    const auto merged = merge_settings({}, text);
    ASSERT_FALSE(merged) << text;
    EXPECT_EQ(merged.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(merged.error().message, HasSubstr(message)) << text;
  }
}

/// `value` at the field's path: "log.level" gives {"log":{"level":<value>}}.
std::string at_path(std::string_view path, std::string_view value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return cat("{\"", path, "\":", value, "}");
  return cat("{\"", path.substr(0, dot), "\":", at_path(path.substr(dot + 1), value), "}");
}

struct FieldCase {
  std::string path;
  std::string valid;
  std::vector<std::string> also = {};  ///< of kWrongValues, those that this field does take
};

/// Every field of podqos.json(5).
const std::vector<FieldCase> kFields = {
    {"enabled", "false", {"true"}},
    {"scope", R"("all")"},
    {"trustAnnotations", R"("all")"},
    {"allowQosOverride", "false", {"true"}},
    {"cgroupRoot", R"("/a")"},
    {"cgroupDriver", R"("cgroupfs")"},
    {"placement.onMisplaced", R"("fail")"},
    {"placement.withoutParent", R"("stay")", {"null"}},
    {"onError", R"("reject")"},
    {"nodeMemory", R"("1Gi")", {"null"}},
    {"nodeCpu", "2", {"null"}},
    {"reserved.system.cpu", R"("100m")"},
    {"reserved.system.memory", R"("1Gi")"},
    {"reserved.kube.cpu", R"("100m")"},
    {"reserved.kube.memory", R"("1Gi")"},
    {"qosReserved.memory", R"("50%")", {"null"}},
    {"maxPodClaim", R"("50%")"},
    {"cpuCFSQuota", "false", {"true"}},
    {"cpuCFSQuotaPeriod", R"("10ms")"},
    {"weightFormula", R"("log")"},
    {"podPidsLimit", "1", {"null"}},
    {"ioWeight.guaranteed", "10000", {"null"}},
    {"ioWeight.burstable", "100", {"null"}},
    {"ioWeight.bestEffort", "1", {"null"}},
    {"memorySwap.swapBehavior", R"("NoSwap")", {"null", R"("")"}},
    {"singleProcessOOMKill", "false", {"true"}},
    {"releaseDelay", R"("1s")"},
    {"tierMemoryFloor", R"("1Mi")"},
    {"runtimes", R"(["/a"])"},
    {"chargeMonitor", "true", {"true"}},
    {"stateDir", R"("/a")"},
    {"lockDeadline", R"("1s")"},
    {"nri.metrics", R"("127.0.0.1:9464")", {"null"}},
    {"log.sink", R"("none")"},
    {"log.level", R"("error")"},
};
constexpr std::array<std::string_view, 7> kWrongValues = {"null",  "true", "-1", R"("?")",
                                                          R"("")", "[]",   "{}"};

TEST(MergeSettings, RefusesWrongValuesOfEveryField) {
  for (const auto& [path, valid, also] : kFields) {
    EXPECT_TRUE(merge_settings({}, at_path(path, valid))) << path;
    for (const std::string_view wrong : kWrongValues) {
      const bool taken = std::ranges::find(also, wrong) != also.end();
      const auto merged = merge_settings({}, at_path(path, wrong));
      ASSERT_EQ(merged.has_value(), taken) << path << " " << wrong;
      if (taken) continue;
      EXPECT_EQ(merged.error().code, ErrorCode::kInvalidArgument) << path << " " << wrong;
      EXPECT_THAT(merged.error().message, StartsWith(cat(path, ": "))) << wrong;
    }
  }
}

TEST(MergeSettings, RefusesEveryFieldThatIsThereTwice) {
  for (const auto& [path, valid, also] : kFields) {
    const std::string name = path.substr(path.rfind('.') + 1);
    std::string text = at_path(path, valid);
    text.insert(text.find(cat("\"", name, "\":")), cat("\"", name, "\":", valid, ","));
    const auto merged = merge_settings({}, text);
    ASSERT_FALSE(merged) << text;
    EXPECT_EQ(merged.error().message, cat(path, ": field is repeated")) << text;
  }
}

TEST(MergeSettings, RefusesOtherThingsThanObjects) {
  for (const std::string path :
       {"placement", "reserved", "reserved.system", "reserved.kube", "qosReserved", "log"}) {
    EXPECT_TRUE(merge_settings({}, at_path(path, "{}"))) << path;
    for (const std::string_view wrong : {"null", "true", "1", R"("x")", "[]"}) {
      const auto merged = merge_settings({}, at_path(path, wrong));
      ASSERT_FALSE(merged) << path << wrong;
      EXPECT_THAT(merged.error().message, StartsWith(cat(path, ": expected an object"))) << wrong;
    }
  }
}

TEST(MergeSettings, NamesTheNearestFieldOfTheSameObject) {
  const std::vector<SettingsRefusal> cases = {
      {"placement.onMisplace", "placement.onMisplaced"},
      {"reserved.kubes", "reserved.kube"},
      {"reserved.system.memoryy", "reserved.system.memory"},
      {"reserved.kube.CPU", "reserved.kube.cpu"},
      {"qosReserved.mem0ry", "qosReserved.memory"},
      {"log.sinc", "log.sink"},
      {"nodeMem", "nodeMemory"},
      {"reserved.sys", "reserved.system"},
      {"cpuQuota", "cpuCFSQuota"},
      {"logLevel", "log.level"},
      {"reserved.kubeMemory", "reserved.kube.memory"},
      {"cpuCfsQuota", "cpuCFSQuota"},
      {"pod_pids_limit", "podPidsLimit"},
  };
  for (const auto& [path, nearest] : cases) {
    const auto merged = merge_settings({}, at_path(path, "{}"));
    ASSERT_FALSE(merged) << path;
    EXPECT_EQ(merged.error().message, cat("unknown field ", path, "; did you mean ", nearest, "?"));
  }
}

TEST(MergeSettings, NamesAllFieldsOfTheObjectWhenNoneIsNear) {
  const std::vector<SettingsRefusal> cases = {
      {"foo",
       "unknown field foo; expected one of enabled, scope, trustAnnotations, allowQosOverride, "
       "cgroupRoot, cgroupDriver, placement, onError, nodeMemory, nodeCpu, reserved, qosReserved, "
       "maxPodClaim, cpuCFSQuota, cpuCFSQuotaPeriod, weightFormula, podPidsLimit, ioWeight, "
       "memorySwap, singleProcessOOMKill, releaseDelay, tierMemoryFloor, runtimes, chargeMonitor, "
       "stateDir, "
       "lockDeadline, nri, log"},
      {"reserved.kube.disk", "unknown field reserved.kube.disk; expected one of cpu, memory"},
  };
  for (const auto& [path, message] : cases)
    EXPECT_EQ(merge_settings({}, at_path(path, "{}")).error().message, message);
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
      {"placement.onMisplaced", "move",
       [](const Settings& s) { return s.on_misplaced == OnMisplaced::kMove; }},
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

TEST(MergeSettings, BoundsPathsAndLists) {
  const auto path = [](std::size_t size) { return cat("\"/", std::string(size - 1, 'a'), "\""); };
  EXPECT_TRUE(merge_settings({}, at_path("stateDir", path(4096))));
  EXPECT_FALSE(merge_settings({}, at_path("stateDir", path(4097))));
  const auto runtimes = [](unsigned count) {
    std::string list = R"("/r")";
    for (unsigned i = 1; i < count; ++i)
      list += R"(,"/r")";
    return at_path("runtimes", cat("[", list, "]"));
  };
  EXPECT_TRUE(merge_settings({}, runtimes(64)));
  EXPECT_FALSE(merge_settings({}, runtimes(65)));
}

TEST(MergeSettings, TakesNoCommentForAnEndOfText) {
  EXPECT_EQ(merge_settings({}, "/**/{}// c"), Settings{});
  EXPECT_FALSE(merge_settings({}, "{} /* open"));
  EXPECT_FALSE(merge_settings({}, "{\"enabled\":true} # c"));
  EXPECT_FALSE(merge_settings({}, std::string("{} // c\0\n", 9)));
  EXPECT_FALSE(merge_settings({}, std::string("{}\0{\"enabled\":false}", 20)));
}

TEST(MergeSettings, BoundsTheSize) {
  EXPECT_EQ(merge_settings({}, std::string(kMaxSettingsSize + 1, ' ')).error().code,
            ErrorCode::kTooLarge);
}

TEST(MergeSettings, TakesNoDotForAnObject) {
  const std::vector<SettingsRefusal> cases = {
      {R"({"log.level":"info"})",
       "unknown field log.level; write level as a field of the object log"},
      {R"({"reserved.system":{}})",
       "unknown field reserved.system; write system as a field of the object reserved"},
      {R"({"reserved":{"system.cpu":"1"}})",
       "unknown field reserved.system.cpu; write cpu as a field of the object reserved.system"},
  };
  for (const auto& [text, message] : cases) {
    const auto merged = merge_settings({}, text);
    ASSERT_FALSE(merged) << text;
    EXPECT_EQ(merged.error().message, message);
  }
}

TEST(DescribeSettings, KnowsEveryFieldWithItsDefault) {
  const auto fields = describe_settings();
  ASSERT_EQ(fields.size(), kFields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const SettingHelp& field = fields[i];
    EXPECT_EQ(field.path, kFields[i].path);
    EXPECT_FALSE(field.help.empty()) << field.path;
    EXPECT_EQ(merge_settings(Settings{}, at_path(field.path, field.default_value)), Settings{})
        << field.path;
  }
}

TEST(FormatSettings, PrintsWhatMergeReadsBack) {
  EXPECT_EQ(merge_settings({}, format_settings(everything())), everything());
  EXPECT_EQ(merge_settings(everything(), format_settings({})), Settings{});
}

TEST(FormatSettings, PrintsEveryFieldInTheUnitsOfPeople) {
  EXPECT_EQ(format_settings({}), R"({
  "enabled": true,
  "scope": "pods",
  "trustAnnotations": "engine-checked",
  "allowQosOverride": false,
  "cgroupRoot": "/podqos",
  "cgroupDriver": "auto",
  "placement": {
    "onMisplaced": "rewrite",
    "withoutParent": null
  },
  "onError": "admit",
  "nodeMemory": null,
  "nodeCpu": null,
  "reserved": {
    "system": {
      "cpu": "0",
      "memory": "0"
    },
    "kube": {
      "cpu": "0",
      "memory": "0"
    }
  },
  "qosReserved": {
    "memory": null
  },
  "maxPodClaim": "100%",
  "cpuCFSQuota": true,
  "cpuCFSQuotaPeriod": "100ms",
  "weightFormula": "auto",
  "podPidsLimit": null,
  "ioWeight": {
    "guaranteed": null,
    "burstable": null,
    "bestEffort": null
  },
  "memorySwap": {
    "swapBehavior": "NoSwap"
  },
  "singleProcessOOMKill": false,
  "releaseDelay": "30s",
  "tierMemoryFloor": "64Mi",
  "runtimes": [
    "/usr/bin/runc",
    "/usr/sbin/runc",
    "/usr/bin/crun",
    "/usr/libexec/crio/crun"
  ],
  "chargeMonitor": false,
  "stateDir": "/run/podqos",
  "lockDeadline": "5s",
  "nri": {
    "metrics": null
  },
  "log": {
    "sink": "syslog",
    "level": "info"
  }
}
)");
}

}  // namespace
}  // namespace podqos::codec
