#include "common/codec/settings_json.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::Settings;
using testing::HasSubstr;

constexpr std::string_view kEverything = R"({
  // for people
  "enabled": false, "scope": "annotated", "trustAnnotations": "none", "allowQosOverride": true,
  "cgroupRoot": "/a/b", "cgroupDriver": "cgroupfs", "placement": {"onMisplaced": "move"}, "onError": "reject",
  "nodeMemory": "32Gi", "nodeCpu": 4, /* pinned */
  "reserved": {"system": {"cpu": "500m", "memory": "1Gi"}, "kube": {"cpu": "0.25", "memory": 1048576}},
  "qosReserved": {"memory": "50%"}, "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "5ms", "weightFormula": "log",
  "podPidsLimit": 1024, "releaseDelay": "2m", "tierMemoryFloor": "32Mi", "runtimes": ["/opt/runc"],
  "stateDir": "/run/other", "lockDeadline": "250ms", "log": {"sink": "/var/log/podqos.log", "level": "debug"}
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
  out.on_error = core::OnError::kReject;
  out.node_memory = Bytes{34'359'738'368};
  out.node_cpu = MilliCpu{4000};
  out.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{1'073'741'824}};
  out.kube_reserved = {.cpu = MilliCpu{250}, .memory = Bytes{1'048'576}};
  out.reserve_memory_percent = 50;
  out.cpu_cfs_quota = false;
  out.cpu_cfs_quota_period = Micros{5'000};
  out.weight_formula = core::WeightFormulaSetting::kLog;
  out.pod_pids_limit = 1024;
  out.release_delay_seconds = 120;
  out.tier_memory_floor = Bytes{33'554'432};
  out.runtimes = {"/opt/runc"};
  out.state_dir = "/run/other";
  out.lock_deadline_ms = 250;
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
  EXPECT_EQ(
      merge_settings(
          everything(),
          R"({"nodeMemory":null,"nodeCpu":null,"podPidsLimit":null,"qosReserved":{"memory":null}})"),
      expected);
}

TEST(MergeSettings, TakesTheEndsOfRanges) {
  for (const std::string text :
       {R"({"cpuCFSQuotaPeriod":"1ms"})", R"({"cpuCFSQuotaPeriod":"1s"})",
        R"({"cpuCFSQuotaPeriod":"1500us"})", R"({"lockDeadline":"10ms"})",
        R"({"lockDeadline":"60s"})", R"({"lockDeadline":"1m"})", R"({"releaseDelay":"0s"})",
        R"({"releaseDelay":"1h"})", R"({"qosReserved":{"memory":"0%"}})",
        R"({"qosReserved":{"memory":"100%"}})", R"({"cgroupRoot":"/"})",
        R"({"log":{"sink":"none"}})", R"({"cgroupDriver":"auto"})", R"({"tierMemoryFloor":0})"}) {
    EXPECT_TRUE(merge_settings({}, text)) << text;
  }
}

struct RefusalCase {
  std::string text;
  std::string message;
};

TEST(MergeSettings, NamesWhatItRefuses) {
  const std::vector<RefusalCase> cases = {
      {"", "not JSON"},
      {"[]", "expected one object of settings, found array"},
      {"{\"enabled\":true,}", "not JSON"},
      {R"({"enable":true})", "unknown field enable; did you mean enabled?"},
      {R"({"reserved":{"system":{"mem":1}}})", "unknown field reserved.system.mem"},
      {R"({"reserved":{"sytem":{}}})",
       "unknown field reserved.sytem; did you mean reserved.system?"},
      {R"({"zzzzzzzzzz":1})", "unknown field zzzzzzzzzz"},
      {R"({"log":{"level":"info","level":"info"}})", "log.level: field is repeated"},
      {R"({"enabled":1})", "enabled: expected true or false, found number"},
      {R"({"scope":"pod"})", "scope: \"pod\" is none of pods, annotated, all"},
      {R"({"placement":"move"})", "placement: expected an object, found string"},
      {R"({"cgroupDriver":"systemd"})", "the systemd driver is not part of this version"},
      {R"({"cgroupRoot":"a"})", "cgroupRoot: \"a\" is no absolute path"},
      {R"({"cgroupRoot":"/a/../b"})", "cgroupRoot"},
      {R"({"cgroupRoot":"/a//b"})", "cgroupRoot"},
      {R"({"cgroupRoot":"/a_b"})", "cgroupRoot"},
      {R"({"stateDir":"/run/.."})", "stateDir"},
      {R"({"stateDir":"/run\u0000"})", "stateDir"},
      {R"({"runtimes":[]})", "runtimes: 0 paths"},
      {R"({"runtimes":["/a","runc"]})", "runtimes: [1]: \"runc\" is no absolute path"},
      {R"({"runtimes":"/a"})", "runtimes: expected a list"},
      {R"({"nodeMemory":"32GB"})", "nodeMemory"},
      {R"({"nodeMemory":0})", "nodeMemory: must be above 0"},
      {R"({"nodeCpu":"-1"})", "nodeCpu: -1 is negative"},
      {R"({"tierMemoryFloor":null})", "tierMemoryFloor: expected a quantity"},
      {R"({"reserved":{"kube":{"memory":-5}}})", "reserved.kube.memory: -5 is negative"},
      {R"({"qosReserved":{"memory":50}})", "qosReserved.memory: expected a percentage"},
      {R"({"qosReserved":{"memory":"101%"}})",
       "qosReserved.memory: \"101%\" is not within 0% and 100%"},
      {R"({"qosReserved":{"memory":"-1%"}})", "qosReserved.memory"},
      {R"({"cpuCFSQuotaPeriod":"999us"})", "cpuCFSQuotaPeriod: \"999us\" is not within 1ms and 1s"},
      {R"({"cpuCFSQuotaPeriod":"1001ms"})", "cpuCFSQuotaPeriod"},
      {R"({"cpuCFSQuotaPeriod":100})", "expected a duration"},
      {R"({"lockDeadline":"9ms"})", "lockDeadline"},
      {R"({"lockDeadline":"61s"})", "lockDeadline"},
      {R"({"lockDeadline":"10500us"})", "lockDeadline"},
      {R"({"releaseDelay":"3601s"})", "releaseDelay"},
      {R"({"releaseDelay":"-1s"})", "releaseDelay: \"-1s\" is no duration"},
      {R"({"releaseDelay":"1.5s"})", "is no duration"},
      {R"({"releaseDelay":"s"})", "is no duration"},
      {R"({"releaseDelay":"9223372036854775807h"})", "is no duration"},
      {R"({"podPidsLimit":0})", "podPidsLimit"},
      {R"({"podPidsLimit":1.5})", "podPidsLimit"},
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

TEST(MergeSettings, BoundsTheSize) {
  EXPECT_EQ(merge_settings({}, std::string(kMaxSettingsSize + 1, ' ')).error().code,
            ErrorCode::kTooLarge);
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
  "cgroupRoot": "/",
  "cgroupDriver": "auto",
  "placement": {
    "onMisplaced": "rewrite"
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
  "cpuCFSQuota": true,
  "cpuCFSQuotaPeriod": "100ms",
  "weightFormula": "auto",
  "podPidsLimit": null,
  "releaseDelay": "30s",
  "tierMemoryFloor": "64Mi",
  "runtimes": [
    "/usr/bin/runc",
    "/usr/sbin/runc",
    "/usr/bin/crun",
    "/usr/libexec/crio/crun"
  ],
  "stateDir": "/run/podqos",
  "lockDeadline": "5s",
  "log": {
    "sink": "syslog",
    "level": "info"
  }
}
)");
}

TEST(NearestName, FindsTypingMistakes) {
  const std::vector<std::string_view> known = {"enabled", "scope", "runtimes", "onError"};
  EXPECT_EQ(nearest_name("enable", known), "enabled");
  EXPECT_EQ(nearest_name("SCOPE", known), "scope");
  EXPECT_EQ(nearest_name("runtmies", known), "runtimes");
  EXPECT_EQ(nearest_name("onerr", known), "onError");
  EXPECT_EQ(nearest_name("qqqqqq", known), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), known), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace podqos::codec
