#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "tests/unit/codec/every_setting.h"

namespace podqos::codec {
namespace {

using every_setting::at_path;
using every_setting::kFields;
using testing::HasSubstr;
using testing::StartsWith;

struct SettingsRefusal {
  std::string text;
  std::string message;
};

TEST(MergeSettings, NamesWhatItRefuses) {
  const std::vector<SettingsRefusal> cases = {
      {"", "malformed JSON"},
      {"[]", "expected one object of settings, found array"},
      {"{\"enabled\":true,,}", "malformed JSON"},
      {"{\n  \"log\": {\n    \"levels\": \"info\"\n  }\n}",
       "line 3, column 5: unknown field log.levels; did you mean log.level?"},
      {"{\n  \"scope\": \"pod\"\n}", "line 2, column 3: scope: expected one of "},
      {R"({"systemReserved":{"cpu":"1"}})",
       "unknown field systemReserved; did you mean reserved.system?"},
      {R"({"kubeReserved":{}})", "unknown field kubeReserved; did you mean reserved.kube?"},
      {R"({"ioWeight":{"besteffort":1,"bestEffort":2}})", "ioWeight.bestEffort: field is repeated"},
      {"// ours\n{\n  \"scope\": \"pods\",\n  \"enabled\" true\n}\n",
       R"(malformed JSON at line 4, column 13: expected ":", found "t")"},
      {R"({"enable":true})", "unknown field enable; did you mean enabled?"},
      {R"({"reserved":{"system":{"mem":1}}})", "unknown field reserved.system.mem"},
      {R"({"reserved":{"sytem":{}}})",
       "unknown field reserved.sytem; did you mean reserved.system?"},
      {R"({"zzzzzzzzzz":1})", "unknown field zzzzzzzzzz"},
      {R"({"log":{"level":"info","level":"info"}})", "log.level: field is repeated"},
      {R"({"placement":"move"})", "placement: expected an object, found \"move\""},
      {R"({"cgroupRoot":"a"})",
       "cgroupRoot: expected an absolute path without \"..\", found \"a\": it must begin with "
       "\"/\""},
      {R"({"cgroupRoot":""})",
       "found \"\": it is empty; leave the field out for the default, or write \"/\" for the root"},
      {R"({"cgroupRoot":5})", "cgroupRoot: expected an absolute path without \"..\", found 5"},
      {R"({"cgroupRoot":"/a/../b"})", "found \"/a/../b\": write the path that \"..\" leads to"},
      {R"({"cgroupRoot":"/a/./b"})", "found \"/a/./b\": leave out the name \".\""},
      {R"({"cgroupRoot":"/a//b"})", "found \"/a//b\": write one \"/\" between names"},
      {R"({"cgroupRoot":"//"})", "found \"//\": write one \"/\" between names"},
      {R"({"cgroupRoot":"/a_b"})",
       "found \"/a_b\": \"_\" is not allowed in names, since it stands for \"-\" in those of "
       "slices"},
      {R"({"cgroupRoot":"/a\n"})", R"(found "/a\x0a": it contains a control character)"},
      {R"({"cgroupRoot":"/a\u0000b"})", R"(found "/a\x00b": it contains a control character)"},
      {R"({"cgroupRoot":"/\u00e9"})", R"(found "/\xc3\xa9": names consist of ASCII characters)"},
      {cat(R"({"cgroupRoot":"/b/)", std::string(256, 'a'), "\"}"),
       "\": a name has 256 bytes, at most 255 are allowed"},
      {cat(R"({"cgroupRoot":")", std::string(4097, '/'), "\"}"),
       "\": it has 4097 bytes, at most 4096 are allowed"},
      {R"({"stateDir":"/run/.."})", "stateDir: expected an absolute path"},
      {R"({"stateDir":"/run\u0000"})", "stateDir: expected an absolute path"},
      {R"({"log":{"sink":"stdout"}})",
       "log.sink: expected \"syslog\", \"stderr\", \"none\" or an absolute path without \"..\", "
       "found "
       "\"stdout\": it must begin with \"/\""},
      {R"({"runtimes":[]})",
       "runtimes: expected a list of 1 to 64 absolute paths without \"..\", found 0"},
      {R"({"runtimes":["/a","runc"]})",
       "runtimes: [1]: expected an absolute path without \"..\", found \"runc\""},
      {R"({"ioWeight":100})", "ioWeight: expected an object, found 100"},
  };
  for (const auto& [text, message] : cases) {
    const auto merged = merge_settings({}, text);
    ASSERT_FALSE(merged) << text;
    EXPECT_EQ(merged.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(merged.error().message, HasSubstr(message)) << text;
  }
}

struct ValuesOfField {
  std::string path;
  std::string expected;
  std::vector<std::string> wrong;
  std::vector<std::string> right = {};  ///< ends of ranges
};

TEST(MergeSettings, SaysWhichValuesItExpects) {
  const std::string memory = R"(an amount of memory such as "64Mi", in whole bytes)";
  const std::string pressure = R"(a pressure from "1%/1s" to "100%/1h" such as "60%/30s", or null)";
  const std::string weight = "a whole number from 1 to 10000, or null";
  const std::vector<ValuesOfField> cases = {
      {"enabled", "true or false", {"1"}},
      {"scope", R"(one of "pods", "annotated", "all")", {R"("pod")"}},
      {"cgroupDriver", R"(one of "auto", "cgroupfs", "systemd")", {R"("systemctl")"}},
      {"log.level", R"(one of "debug", "info", "warning", "error")", {R"("trace")"}},
      {"nodeMemory",
       memory + ", above 0, or null",
       {R"("32GB")", "0", "1.5", R"("1.5")", R"("0.0001Ki")"}},
      {"tierMemoryFloor", memory, {R"("100m")", "null"}, {"0"}},
      {"events.size", memory + ", at most 64Mi", {R"("65Mi")", "null"}, {"0", R"("64Mi")"}},
      {"reserved.system.memory", memory, {"1e30"}},
      {"reserved.kube.memory", memory, {"-5"}},
      {"nodeCpu", R"(an amount of CPU such as "500m", above 0, or null)", {R"("-1")"}},
      {"qosReserved.memory",
       R"(a percentage from "0%" to "100%", or null)",
       {"50", R"("101%")", R"("-1%")", R"("-0%")", R"("+5%")", R"("1.5%")", R"("1e1%")"},
       {R"("0%")", R"("100%")"}},
      {"maxPodClaim",
       R"(a percentage from "1%" to "100%")",
       {R"("0%")", "null", R"("101%")"},
       {R"("1%")", R"("100%")"}},
      {"cpuCFSQuotaPeriod",
       R"(a duration from "1ms" to "1s")",
       {R"("999us")", R"("1001ms")", "100"},
       {R"("1ms")", R"("1s")", R"("1500us")"}},
      {"lockDeadline",
       R"(a duration from "10ms" to "1m", in whole milliseconds)",
       {R"("9ms")", R"("61s")", R"("10500us")"},
       {R"("10ms")", R"("60s")", R"("1m")"}},
      {"memoryReservationPolicy", R"(one of "None", "TieredReservation")", {R"("none")", "null"}},
      {"memoryThrottlingFactor",
       "a number from 0.001 to 1 in thousandths, or null",
       {"0", "1.001", "0.0005", "-0.5", R"("0.9")"},
       {"0.001", "1", "9e-1", "1.0"}},
      {"memoryHighPatience",
       R"(a duration from "0s" to "1h", in whole seconds)",
       {"0", R"("1500ms")", R"("61m")"},
       {R"("0s")", R"("1h")"}},
      {"releaseDelay",
       R"(a duration from "0s" to "1h", in whole seconds)",
       {R"("3601s")", R"("-1s")", R"("1.5s")", R"("s")", R"("9223372036854775807h")", R"("-0s")",
        R"("+5s")", R"("1e1s")"},
       {R"("0s")", R"("1h")"}},
      {"podPidsLimit",
       "a whole number from 1 to 4194304, or null",
       {"0", "1.5", "1e3", "-0", "4194305"}},
      {"cpuBurst.guaranteed",
       R"(a percentage from "0%" to "100%", or null)",
       {R"("101%")", "50", R"("-1%")"}},
      {"cpuBurst.burstable", R"(a percentage from "0%" to "100%", or null)", {R"("half")"}},
      {"ioWeight.guaranteed", weight, {"0"}},
      {"ioWeight.burstable", weight, {"10001"}},
      {"ioWeight.bestEffort", weight, {R"("10")"}},
      {"eviction.burstable.memoryPressure",
       pressure,
       {R"("60%")", R"("60/30s")", R"("0%/30s")", R"("101%/30s")", R"("60%/0s")", "60"},
       {R"("1%/1s")", R"("100%/1h")"}},
      {"eviction.bestEffort.memoryPressure",
       pressure,
       {R"("60%/1500ms")", R"("60%/61m")", R"("60%/30s/1")", R"("/30s")", R"("60%/")"},
       {R"("60%/30s")", R"("60%/1000ms")"}},
      {"eviction.interval",
       R"(a duration from "15s" to "24h", in whole seconds)",
       {R"("14s")", R"("25h")", "null"},
       {R"("15s")", R"("24h")"}},
      {"rootCpuWeight",
       R"("kubelet", "proportional" or a whole number from 1 to 10000)",
       {"0", "10001", R"("100")", "1.5"}},
      {"enforceNodeAllocatable",
       R"(["pods"], ["none"] or [])",
       {R"(["pods","pods"])", R"(["system-reserved"])", R"("pods")"}},
      {"metrics.pods",
       R"("none", "all", or "top:N" with N from 1 to 4096)",
       {"20", "null", R"("20")", R"("top")", R"("top:")", R"("top:0")", R"("top:-1")",
        R"("top:+1")", R"("top:4097")", R"("top:1.5")", R"("All")"},
       {R"("none")", R"("all")", R"("top:1")", R"("top:4096")"}},
      {"runtimes", R"(a list of 1 to 64 absolute paths without "..")", {R"("/a")"}},
  };
  for (const auto& [path, expected, wrong, right] : cases) {
    for (const std::string& value : right)
      EXPECT_TRUE(merge_settings({}, at_path(path, value))) << path << value;
    for (const std::string& value : wrong) {
      const auto merged = merge_settings({}, at_path(path, value));
      ASSERT_FALSE(merged) << path << value;
      EXPECT_EQ(merged.error().message, cat(path, ": expected ", expected, ", found ",
                                            value.starts_with('[') ? "array" : value));
    }
  }
}

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

TEST(MergeSettings, BoundsPathsAndLists) {
  const auto path = [](std::size_t size) { return cat("\"/", std::string(size - 1, 'a'), "\""); };
  EXPECT_TRUE(merge_settings({}, at_path("cgroupRoot", R"("/")")));
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

TEST(MergeSettings, BoundsTheSize) {
  EXPECT_EQ(merge_settings({}, std::string(kMaxSettingsSize + 1, ' ')).error().code,
            ErrorCode::kTooLarge);
}

TEST(MergeSettings, SaysWhereAnUnknownFieldMayBelong) {
  const std::vector<SettingsRefusal> cases = {
      {R"({"foo":{}})",
       "expected one of enabled, scope, trustAnnotations, allowQosOverride, "
       "cgroupRoot, cgroupDriver, placement, onError, nodeMemory, nodeCpu, reserved, "
       "enforceNodeAllocatable, rootCpuWeight, admission, qosReserved, "
       "maxPodClaim, cpuCFSQuota, cpuCFSQuotaPeriod, cpuBurst, cpuIdle, weightFormula, "
       "podPidsLimit, ioWeight, eviction, memorySwap, singleProcessOOMKill, "
       "memoryReservationPolicy, memoryThrottlingFactor, memoryHighPatience, releaseDelay, "
       "tierMemoryFloor, runtimes, chargeMonitor, stateDir, lockDeadline, nri, metrics, log, "
       "events"},
      {R"({"reserved":{"kube":{"disk":1}}})", "expected one of cpu, memory"},
      // A dot in a name is not a path.
      {R"({"log.level":"info"})", "write level as a field of the object log"},
      {R"({"reserved.system":{}})", "write system as a field of the object reserved"},
      {R"({"reserved":{"system.cpu":"1"}})", "write cpu as a field of the object reserved.system"},
  };
  for (const auto& [text, hint] : cases) {
    const std::string message = merge_settings({}, text).error().message;
    EXPECT_TRUE(message.starts_with("unknown field ")) << message;
    EXPECT_EQ(message.substr(message.find("; ") + 2), hint);
  }
}

}  // namespace
}  // namespace podqos::codec
