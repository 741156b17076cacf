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
      {"{\"enabled\":true,}", "malformed JSON"},
      {"// ours\n{\n  \"scope\": \"pods\",\n  \"enabled\" true\n}\n",
       R"(malformed JSON at line 4, column 13: expected ":", found "t")"},
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
      {R"({"stateDir":"/run/.."})", "stateDir"},
      {R"({"stateDir":"/run\u0000"})", "stateDir"},
      {R"({"runtimes":[]})",
       "runtimes: expected a list of 1 to 64 absolute paths without \"..\", found 0"},
      {R"({"runtimes":["/a","runc"]})",
       "runtimes: [1]: expected an absolute path without \"..\", found \"runc\""},
      {R"({"runtimes":"/a"})", "runtimes: expected a list"},
      {R"({"nodeMemory":"32GB"})", "nodeMemory"},
      {R"({"nodeMemory":0})",
       "nodeMemory: expected an amount of memory such as \"64Mi\", in whole bytes, above 0, or "
       "null, "
       "found 0"},
      {R"({"nodeMemory":1.5})", "in whole bytes, above 0, or null, found 1.5"},
      {R"({"nodeMemory":"1.5"})", "in whole bytes, above 0, or null, found \"1.5\""},
      {R"({"nodeMemory":"0.0001Ki"})", "in whole bytes, above 0, or null, found \"0.0001Ki\""},
      {R"({"tierMemoryFloor":"100m"})", "in whole bytes, found \"100m\""},
      {R"({"reserved":{"system":{"memory":1e30}}})", "in whole bytes, found 1e30"},
      {R"({"nodeCpu":"-1"})",
       "nodeCpu: expected an amount of CPU such as \"500m\", above 0, or null, found \"-1\""},
      {R"({"tierMemoryFloor":null})", "tierMemoryFloor: expected an amount of memory"},
      {R"({"reserved":{"kube":{"memory":-5}}})",
       "reserved.kube.memory: expected an amount of memory such as \"64Mi\", in whole bytes, found "
       "-5"},
      {R"({"qosReserved":{"memory":50}})", "qosReserved.memory: expected a percentage"},
      {R"({"maxPodClaim":"0%"})", "maxPodClaim: expected a percentage from \"1%\" to \"100%\""},
      {R"({"maxPodClaim":null})", "maxPodClaim: expected a percentage from \"1%\" to \"100%\""},
      {R"({"maxPodClaim":"101%"})",
       "maxPodClaim: expected a percentage from \"1%\" to \"100%\", found \"101%\""},
      {R"({"qosReserved":{"memory":"101%"}})",
       "qosReserved.memory: expected a percentage from \"0%\" to \"100%\", or null, found "
       "\"101%\""},
      {R"({"qosReserved":{"memory":"-1%"}})", "qosReserved.memory"},
      {R"({"qosReserved":{"memory":"-0%"}})", "qosReserved.memory"},
      {R"({"qosReserved":{"memory":"+5%"}})", "qosReserved.memory"},
      {R"({"qosReserved":{"memory":"1.5%"}})", "qosReserved.memory"},
      {R"({"qosReserved":{"memory":"1e1%"}})", "qosReserved.memory"},
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
      {R"({"podPidsLimit":1e3})", "podPidsLimit"},
      {R"({"podPidsLimit":-0})", "podPidsLimit"},
      {R"({"releaseDelay":"-0s"})", "releaseDelay"},
      {R"({"releaseDelay":"+5s"})", "releaseDelay"},
      {R"({"releaseDelay":"1e1s"})", "releaseDelay"},
      {R"({"podPidsLimit":4194305})", "podPidsLimit"},
      {R"({"ioWeight":100})", "ioWeight: expected an object, found number"},
      {R"({"ioWeight":{"guaranteed":0}})",
       "ioWeight.guaranteed: expected a whole number from 1 to 10000, or null, found 0"},
      {R"({"ioWeight":{"burstable":10001}})", "ioWeight.burstable: expected a whole number"},
      {R"({"ioWeight":{"bestEffort":"10"}})",
       "ioWeight.bestEffort: expected a whole number from 1 to 10000, or null, found \"10\""},
      {R"({"log":{"sink":"stdout"}})", "log.sink"},
      {R"({"log":{"level":"trace"}})", "log.level"},
  };
  for (const auto& [text, message] : cases) {
    const auto merged = merge_settings({}, text);
    ASSERT_FALSE(merged) << text;
    EXPECT_EQ(merged.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(merged.error().message, HasSubstr(message)) << text;
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

TEST(MergeSettings, NamesAllFieldsOfTheObjectWhenNoneIsNear) {
  const std::vector<SettingsRefusal> cases = {
      {"foo",
       "unknown field foo; expected one of enabled, scope, trustAnnotations, allowQosOverride, "
       "cgroupRoot, cgroupDriver, placement, onError, nodeMemory, nodeCpu, reserved, "
       "enforceNodeAllocatable, rootCpuWeight, admission, qosReserved, "
       "maxPodClaim, cpuCFSQuota, cpuCFSQuotaPeriod, weightFormula, podPidsLimit, ioWeight, "
       "memorySwap, singleProcessOOMKill, releaseDelay, tierMemoryFloor, runtimes, chargeMonitor, "
       "stateDir, "
       "lockDeadline, nri, log"},
      {"reserved.kube.disk", "unknown field reserved.kube.disk; expected one of cpu, memory"},
  };
  for (const auto& [path, message] : cases)
    EXPECT_EQ(merge_settings({}, at_path(path, "{}")).error().message, message);
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

}  // namespace
}  // namespace podqos::codec
