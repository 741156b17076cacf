#include "common/codec/oci_config.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_tree.h"
#include "tests/unit/codec/bundle_text.h"

namespace podqos::codec {
namespace {

using bundle_text::read_bundle;
using bundle_text::value_text;
using testing::HasSubstr;

TEST(OciConfig, ReadsConfigsOfRuncAndCrun) {
  for (const char* name : {"runc.json", "crun.json"}) {
    const auto config = OciConfig::parse(read_bundle(name));
    ASSERT_TRUE(config) << name << config.error().message;
    EXPECT_EQ(config->facts, core::ContainerFacts{}) << name;
    EXPECT_FALSE(config->has_create_hook) << name;
    EXPECT_FALSE(config->has_poststop_hook) << name;
  }
}

TEST(OciConfig, ReadsAConfigOfContainerd) {
  const std::string text = read_bundle("containerd.json");
  const auto config = OciConfig::parse(text);
  ASSERT_TRUE(config) << config.error().message;
  core::EngineResources resources;
  resources.cpu_shares = 256;
  resources.cpu_quota = 50'000;
  resources.cpu_period = 100'000;
  resources.memory_limit = 268'435'456;
  resources.memory_swap = 268'435'456;
  resources.unified = {{"memory.oom.group", "1"}};
  EXPECT_EQ(config->facts.resources, resources);
  EXPECT_EQ(config->facts.oom_score_adj, 984);
  EXPECT_EQ(config->facts.cgroups_path,
            "/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/"
            "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9");
  EXPECT_EQ(config->facts.annotations.size(), 7U);  // image-name is of no interest
  EXPECT_EQ(config->facts.annotations.at("podqos.io/requests"), "cpu=250m,memory=256Mi");
  EXPECT_FALSE(config->has_create_hook);
  EXPECT_EQ(value_text(*config, "/linux/resources/cpu/shares"), "256");
  EXPECT_EQ(value_text(*config, "/process/oomScoreAdj"), "984");
  EXPECT_EQ(value_text(*config, "/hooks/poststop"), "[]");
}

TEST(OciConfig, ReadsAllResources) {
  const auto config = OciConfig::parse(R"({"linux":{"resources":{
      "cpu":{"shares":2,"quota":-1,"period":0,"realtimeRuntime":9500},"memory":{"limit":-1,"reservation":9223372036854775808,"swap":-1},
      "pids":{"limit":100},"hugepageLimits":[{"pageSize":"2MB","limit":18446744073709551615},{"limit":5,"pageSize":"1GB"},{}],
      "unified":{"memory.high":"1","cpu.weight":"2"}}}})");
  ASSERT_TRUE(config) << config.error().message;
  core::EngineResources resources;
  resources.cpu_shares = 2;
  resources.cpu_quota = -1;
  resources.cpu_realtime_runtime = 9500;
  resources.memory_limit = -1;
  resources.memory_reservation = kInt64Max;
  resources.memory_swap = -1;
  resources.pids_limit = 100;
  resources.hugepages = {{"2MB", Bytes{kInt64Max}}, {"1GB", Bytes{5}}};
  resources.unified = {{"memory.high", "1"}, {"cpu.weight", "2"}};
  EXPECT_EQ(config->facts.resources, resources);
}

TEST(OciConfig, TakesNullZeroAndEmptyForUnset) {
  const auto config =
      OciConfig::parse(R"({"process":{"oomScoreAdj":null},"hooks":null,"annotations":null,
      "linux":{"cgroupsPath":"","namespaces":null,"resources":{"cpu":{"shares":null,"quota":0,"period":-0,"realtimeRuntime":0},
      "memory":null,"pids":{},"hugepageLimits":null,"unified":null}}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts, core::ContainerFacts{});
}

/// As runc does: encoding/json replaces what is no Unicode, and skips what it does not decode.
TEST(OciConfig, TakesWhatGoTakes) {
  for (const char* text : {R"({"process":{"env":["A=\ud83d","B=\udc00\ud83dx","C=\ud83d\n"]}})",
                           "{\"process\":{\"env\":[\"A=\xff\"]},\"mounts\":[\"\xc3\"]}",
                           R"({"process":{"x":1e999},"x":[-1e999]})",
                           R"({"annotations":{"podqos.io/pod":null,"x":null}})",
                           R"({"linux":{"resources":{"unified":{"memory.max":null}}}})"}) {
    const auto config = OciConfig::parse(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->facts, core::ContainerFacts{}) << text;
  }
  EXPECT_EQ(OciConfig::parse(R"({"linux":{"cgroupsPath":"/\ud83d\ude00\ud83d/\udc00"}})")
                ->facts.cgroups_path,
            "/\xf0\x9f\x98\x80\xef\xbf\xbd/\xef\xbf\xbd");
  for (const char* text : {R"({"x":"\ud83d\u12"})", R"({"x":"\ud83d\x"})", R"({"x":1e})"})
    EXPECT_FALSE(OciConfig::parse(text)) << text;
}

TEST(OciConfig, ReadsTheHostnameOfASharedUtsNamespace) {
  const std::string shared = R"({"type":"pid"},{"type":"uts","path":"/proc/822/ns/uts"})";
  const auto hostname = [](const std::string& namespaces, const std::string& env) {
    const std::string text =
        cat(R"({"process":{"env":)", env, R"(},"linux":{"namespaces":[)", namespaces, "]}}");
    const auto config = OciConfig::parse(text);
    EXPECT_TRUE(config) << text;
    return config ? config->facts.shared_hostname : "";
  };
  // Podman 5.4.2, a container of a pod.
  EXPECT_EQ(hostname(shared, R"(["PATH=/bin","container=podman","HOSTNAME=mixed"])"), "mixed");
  EXPECT_EQ(hostname(shared, R"(["HOSTNAME=a","HOSTNAME=b"])"), "a");
  EXPECT_EQ(hostname(R"({"type":"uts"})", R"(["HOSTNAME=own"])"), "");  // of the container itself
  EXPECT_EQ(hostname(R"({"type":"pid","path":"/x"})", R"(["HOSTNAME=node"])"), "");  // the host's
  for (const char* env : {"null", "{}", "[]", "[1,null]", R"(["HOSTNAME"])", R"(["HOSTNAME="])",
                          R"(["HOSTNAME=a/b"])", R"(["HOSTNAME=\u001b[2J"])"})
    EXPECT_EQ(hostname(shared, env), "") << env;
  EXPECT_EQ(hostname("1,null,{}", R"(["HOSTNAME=x"])"), "");
}

TEST(OciConfig, KeepsAnOomScoreOfZero) {
  EXPECT_EQ(OciConfig::parse(R"({"process":{"oomScoreAdj":0}})")->facts.oom_score_adj, 0);
}

TEST(OciConfig, LooksOnlyAtMembersInTheirPlace) {
  const auto config = OciConfig::parse(
      R"({"resources":{"cpu":{"shares":7}},"x":{"linux":{"resources":{"cpu":{"shares":7}}},"process":{"oomScoreAdj":7}},
          "linux":{"cpu":{"shares":7},"x":[{"cgroupsPath":"/x","shares":[7]}]},"shares":1,"shares":2})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts, core::ContainerFacts{});
}

struct UnreadCase {
  std::string before;
  std::string after;
};

TEST(OciConfig, PassesOverWhatItDoesNotRead) {
  // With everything in it that might be mistaken for what is read.
  constexpr std::string_view kUnread =
      R"([{"linux":{"cgroupsPath":"/no"}},"],\"linux\":{\"cgroupsPath\":\"/no\"}","\\",)"
      R"({"process":{"oomScoreAdj":7}}])";
  const std::string process = R"("process":{"oomScoreAdj":5})";
  const std::string path = R"("cgroupsPath":"/yes")";
  const std::string rest = cat(process, R"(,"linux":{)", path, "}}");
  const std::vector<UnreadCase> cases = {
      {R"({"mounts" : )", cat(" ,", rest)},
      {cat("{", process, R"(,"linux":{)", path, R"(},"root":)"), "}"},
      {R"({"\u006dounts":)", cat(",", process, R"(,"l\u0069nux":{)", path, "}}")},
      {cat(R"({"linux":{)", path, R"(},"process":{"env":)"), R"(, "oomScoreAdj" : 5 }})"},
      {cat("{", process, R"(,"linux":{"seccomp":)"), cat(",", path, "}}")},
      {cat("{", process, R"(,"linux":{"resources":{"devices":)"), cat("},", path, "}}")},
      {R"({"hooks":{"poststop":[{"path":"/a","env":)", cat("}]},", rest)},
      {R"({"annotations":{"org.other":)", cat("},", rest)},
  };
  for (const auto& [before, after] : cases) {
    for (const std::string_view value : {kUnread, std::string_view{"{}"}, std::string_view{"1e2"},
                                         std::string_view{R"("\ud83d\ude00")"}}) {
      const std::string text = cat(before, value, after);
      const auto config = OciConfig::parse(text);
      ASSERT_TRUE(config) << text << config.error().message;
      EXPECT_EQ(config->facts.cgroups_path, "/yes") << text;
      EXPECT_EQ(config->facts.oom_score_adj, 5) << text;
      EXPECT_EQ(value_text(*config, "/linux/cgroupsPath"), "\"/yes\"") << text;
      EXPECT_EQ(value_text(*config, "/process/oomScoreAdj"), "5") << text;
      EXPECT_EQ(value_text(*config, ""), text);
    }
  }
}

struct HookCase {
  std::string hooks;
  bool create;
  bool poststop;
};

TEST(OciConfig, RecognisesItsOwnHooks) {
  const std::vector<HookCase> cases = {
      {R"({"createRuntime":[{"path":"/usr/libexec/oci/hooks.d/podqos-hook"}]})", true, false},
      {R"({"prestart":[{"path":"/x"},{"path":"/opt/podqos-hook"}]})", true, false},
      {R"({"poststop":[{"path":"/bin/env","args":["podqos-hook","poststop"]}]})", false, true},
      {R"({"poststop":[{"args":["env","podqos-hook"],"path":"/bin/env"}]})", false, false},
      {R"({"poststart":[{"path":"/usr/bin/podqos-hook"}]})", false, false},
      {R"({"createRuntime":[{"path":"/usr/bin/podqos-hook2"},{"path":"/podqos-hook/x"}],"poststop":[]})",
       false, false},
  };
  for (const auto& [hooks, create, poststop] : cases) {
    const auto config = OciConfig::parse(cat("{\"hooks\":", hooks, "}"));
    ASSERT_TRUE(config) << hooks << config.error().message;
    EXPECT_EQ(config->has_create_hook, create) << hooks;
    EXPECT_EQ(config->has_poststop_hook, poststop) << hooks;
  }
}

struct Refused {
  std::string text;
  std::string message;
};

TEST(OciConfig, RefusesWhatParsersReadDifferentlyOrNotAtAll) {
  const std::vector<Refused> cases = {
      {R"({"linux":{},"linux":null})", "linux at byte 13: member is repeated"},
      {R"({"linux":{"cgroupsPath":"/a","CgroupsPath":null}})", "linux.cgroupsPath"},
      {R"({"linux":{"resources":{}},"Linux":{"resources":null}})", "linux.resources at byte 36"},
      {R"({"linux":{"resources":{"cpu":{},"cpu":5}}})", "linux.resources.cpu at"},
      {R"({"linux":{"resources":{"pids":{"limit":1},"Pids":{"limit":null}}}})",
       "linux.resources.pids.limit"},
      {R"({"linux":{"resources":{"memory":{"limit":1,"limit":"1"}}}})",
       "linux.resources.memory.limit"},
      {R"({"linux":{"resources":{"hugepageLimits":[],"hugepageLimits":[]}}})",
       "linux.resources.hugepageLimits"},
      {R"({"linux":{"resources":{"hugepageLimits":[{"limit":1,"limit":2}]}}})",
       "hugepageLimits[0].limit at byte 53: member is repeated"},
      {R"({"linux":{"resources":{"unified":{"a":"1","a":"2"}}}})", "linux.resources.unified"},
      {R"({"hooks":{"poststop":[],"poststop":[]}})", "hooks.poststop"},
      {R"({"annotations":{"podqos.io/pod":"","podqos.io/pod":""}})",
       "annotations.podqos.io/pod at byte 36: member is repeated"},
      {R"({"annotations":{"podqos.io/pod":"","podqos.io/pod":null}})",
       "annotations.podqos.io/pod at byte 36: member is repeated"},
      {R"({"linux":{"resources":{"unified":{"a":"1","a":null}}}})",
       "linux.resources.unified.a at byte 43: member is repeated"},
      {R"({"annotations":{"podqos.io/pod":""},"Annotations":{"podqos.io/pod":""}})",
       "annotations.podqos.io/pod"},
      // Wrong types.
      {"[]", "config.json at byte 1: expected an object, found array"},
      {"null", "config.json at byte 1: expected an object, found null"},
      {R"({"linux":[]})", "linux at byte 10: expected an object"},
      {R"({"linux":{"cgroupsPath":1}})", "linux.cgroupsPath"},
      {R"({"linux":{"resources":{"cpu":{"shares":"1"}}}})",
       "expected a non-negative integer, found \"1\""},
      {R"({"linux":{"resources":{"cpu":{"shares":-1}}}})",
       "linux.resources.cpu.shares at byte 40: expected a non-negative integer, found -1"},
      {R"({"linux":{"resources":{"cpu":{"shares":1e2}}}})", "linux.resources.cpu.shares"},
      {"{\n \"linux\": {\n  \"cgroupsPath\": 1\n }\n}\n",
       "linux.cgroupsPath at line 3, column 18: expected a string, found 1"},
      {R"({"linux":{"resources":{"memory":{"limit":18446744073709551616}}}})",
       "linux.resources.memory.limit"},
      {R"({"linux":{"resources":{"pids":{"limit":true}}}})", "found boolean"},
      {R"({"linux":{"resources":{"pids":{"limit":{}}}}})", "found object"},
      {R"({"linux":{"resources":{"hugepageLimits":{}}}})", "expected an array, found object"},
      {R"({"linux":{"resources":{"hugepageLimits":["2MB"]}}})",
       "linux.resources.hugepageLimits[0] at byte 42: expected an object, found \"2MB\""},
      {R"({"process":{"oomScoreAdj":1.0}})",
       "process.oomScoreAdj at byte 27: expected an integer, found 1.0"},
      {R"({"hooks":{"createRuntime":{}}})", "hooks.createRuntime"},
      {R"({"linux":{"cgroupsPath":"/a\u0000b"}})", "control bytes"},
      {R"({"linux":{"cgroupsPath":"/a\nb"}})", "control bytes"},
      {R"({"linux":{"cgroupsPath":"/a\u007f"}})", "control bytes"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = OciConfig::parse(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(config.error().message, HasSubstr(message)) << text;
  }
}

/// As encoding/json decodes them into runc's specs.Spec.
TEST(OciConfig, ReadsMembersInAnyCaseAsGoDoes) {
  const auto config = OciConfig::parse(
      R"({"Linux":{"CGROUPSPATH":"/a","resources":{"CPU":{"Shares":512,"REALTIMERUNTIME":7},)"
      R"("hugepagelimits":[{"PageSize":"2MB","LIMIT":9}]}},"proce\u017f\u017f":{"OOMScoreAdj":5},)"
      R"("hoo\u212as":{"Poststop":[{"Path":"/podqos-hook"}]}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts.cgroups_path, "/a");
  EXPECT_EQ(config->facts.resources.cpu_shares, 512);
  EXPECT_EQ(config->facts.resources.cpu_realtime_runtime, 7);
  EXPECT_EQ(config->facts.resources.hugepages, (core::HugePageLimits{{"2MB", Bytes{9}}}));
  EXPECT_EQ(config->facts.oom_score_adj, 5);
  EXPECT_TRUE(config->has_poststop_hook);
}

struct MergedCase {
  std::string text;
  std::string once;  ///< what specs.Spec is after encoding/json has decoded the text
};

/// As runc 1.1.5 does, by Go 1.19.
TEST(OciConfig, MergesMembersThatAreRepeatedAsGoDoes) {
  const std::vector<MergedCase> cases = {
      {R"({"linux":{"resources":{"cpu":{"shares":2,"quota":9},"CPU":{"Shares":512}}}})",
       R"({"linux":{"resources":{"cpu":{"shares":512,"quota":9}}}})"},
      {R"({"linux":{"resources":{"CPU":{"shares":512,"shares":0},"cpu":{"period":7}}}})",
       R"({"linux":{"resources":{"cpu":{"shares":0,"period":7}}}})"},
      {R"({"linux":{"cgroupsPath":"/a","resources":{"memory":{"limit":1,"swap":3}}},"LINUX":{},)"
       R"("Linux":{"cgroupspath":"/b","resources":{"memory":{"limit":2},"pids":{"limit":5}}}})",
       R"({"linux":{"cgroupsPath":"/b","resources":{"memory":{"limit":2,"swap":3},)"
       R"("pids":{"limit":5}}}})"},
      {R"({"linux":null,"Linux":{"resources":{"cpu":null,"cpu":{"shares":null,"shares":3}}}})",
       R"({"linux":{"resources":{"cpu":{"shares":3}}}})"},
      {R"({"process":{"oomScoreAdj":1,"\u006fomScoreAdj":4},"Process":{}})",
       R"({"process":{"oomScoreAdj":4}})"},
      {R"({"annotations":{"podqos.io/pod-uid":"a"},"Annotations":{"podqos.io/container":"b"}})",
       R"({"annotations":{"podqos.io/pod-uid":"a","podqos.io/container":"b"}})"},
      {R"({"linux":{"resources":{"unified":{"a":"1"},"Unified":{"A":"2"}}}})",
       R"({"linux":{"resources":{"unified":{"a":"1","A":"2"}}}})"},
  };
  for (const auto& [text, once] : cases) {
    const auto config = OciConfig::parse(text);
    ASSERT_TRUE(config) << text << config.error().message;
    EXPECT_EQ(config->facts, OciConfig::parse(once)->facts) << text;
    EXPECT_NE(config->facts, core::ContainerFacts{});
  }
  const auto hooks = OciConfig::parse(
      R"({"hooks":{"prestart":[{"path":"/podqos-hook"}]},"Hooks":{"poststop":[{"path":"/podqos-hook"}]}})");
  ASSERT_TRUE(hooks) << hooks.error().message;
  EXPECT_TRUE(hooks->has_create_hook && hooks->has_poststop_hook);
}

/// In a time that grows with their number, and not with its square: the engine waits.
TEST(OciConfig, MergesAsManyMembersAsATextMayHave) {
  std::string text = R"({"linux":{"resources":{"cpu":{"shares":7}}})";
  for (int i = 0; i < 33'000; ++i)
    text += R"(,"linux":{"resources":{"cpu":{}}})";
  const auto config = OciConfig::parse(text + "}");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts.resources.cpu_shares, 7);
}

/// As libocispec does, crun's parser.
TEST(OciConfig, PassesOverOtherCasesWhereNamesAreExact) {
  const auto config = OciConfig::parse(
      R"({"linux":{"resources":{"cpu":{"shares":2},"CPU":{"shares":512}}}})", MemberNames::kExact);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts.resources.cpu_shares, 2);
  const auto repeated =
      OciConfig::parse(R"({"linux":{"resources":{"cpu":{},"cpu":{}}}})", MemberNames::kExact);
  ASSERT_FALSE(repeated);
  EXPECT_THAT(repeated.error().message, HasSubstr("linux.resources.cpu at byte 33"));
}

TEST(OciConfig, BoundsSizeDepthAndAnnotations) {
  const auto code = [](const std::string& text) {
    const auto config = OciConfig::parse(text);
    return config ? std::nullopt : std::optional{config.error().code};
  };
  const auto nested = [](std::size_t depth) {
    return cat("{\"x\":", std::string(depth - 1, '['), std::string(depth - 1, ']'), "}");
  };
  EXPECT_EQ(code(nested(kMaxJsonDepth)), std::nullopt);
  EXPECT_EQ(code(nested(kMaxJsonDepth + 1)), ErrorCode::kTooLarge);
  EXPECT_EQ(code("{}" + std::string(kMaxConfigSize - 2, ' ')), std::nullopt);
  EXPECT_EQ(code("{}" + std::string(kMaxConfigSize - 1, ' ')), ErrorCode::kTooLarge);
  const auto annotated = [](std::size_t size) {
    return cat(R"({"annotations":{"podqos.io/pod":")", std::string(size, 'x'), "\"}}");
  };
  EXPECT_EQ(code(annotated(kMaxAnnotationSize)), std::nullopt);
  EXPECT_EQ(code(annotated(kMaxAnnotationSize + 1)), ErrorCode::kTooLarge);
  const auto many = [](std::size_t count) {
    std::string text = "{\"annotations\":{\"other\":\"\"";
    for (std::size_t i = 0; i < count; ++i)
      text += cat(",\"podqos.io/limits.", i, "\":\"\"");
    return text + "}}";
  };
  EXPECT_EQ(code(many(kMaxKnownAnnotations)), std::nullopt);
  EXPECT_EQ(code(many(kMaxKnownAnnotations + 1)), ErrorCode::kTooLarge);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string list;
  for (; times > 0; --times)
    list += cat(text, times > 1 ? "," : "");
  return list;
}

TEST(OciConfig, BoundsTheNumberOfValuesThatItStores) {
  // "hooks" and "prestart" are values as well.
  const auto hooks = [](std::size_t count) {
    return OciConfig::parse(cat(R"({"hooks":{"prestart":[)", repeated("{}", count), "]}}"));
  };
  EXPECT_TRUE(hooks(kMaxJsonValues - 2));
  for (const std::size_t count : {kMaxJsonValues - 1, std::size_t{1'000'000}}) {
    const auto many = hooks(count);
    ASSERT_FALSE(many) << count;
    EXPECT_EQ(many.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(many.error().message, HasSubstr("100000 values"));
  }
}

TEST(OciConfig, ReadsAConfigWithMuchThatItDoesNotStore) {
  const std::string_view mount =
      R"({"destination":"/a","type":"bind","source":"/b","options":["rbind","ro"]})";
  const std::string_view rule = R"({"names":["personality"],"action":"SCMP_ACT_ALLOW","args":[]})";
  const std::string text =
      cat(R"({"mounts":[)", repeated(mount, 20'000), R"(],"linux":{"seccomp":{"syscalls":[)",
          repeated(rule, 20'000), R"(]},"cgroupsPath":"/a"}})");
  const auto config = OciConfig::parse(text);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->facts.cgroups_path, "/a");
}

/// process.args is the pod author's, and may be long.
TEST(IsContainerName, GoesByTheParent) {
  EXPECT_TRUE(is_container_name("", "linux"));
  EXPECT_TRUE(is_container_name("Linux", "RESOURCES"));
  EXPECT_TRUE(is_container_name("", "args"));
  EXPECT_FALSE(is_container_name("process", "args"));
  EXPECT_FALSE(is_container_name("linux", "cgroupsPath"));
  EXPECT_FALSE(is_container_name("", "mounts"));
}

struct StateCase {
  std::string text;
  std::optional<Pid> pid;
  std::string bundle;
  core::Annotations annotations;
};

/// What containerd passes for `docker update --cpus 0.7 --memory 192m`.
TEST(ParseResources, ReadsWhatAnUpdateHas) {
  const auto read = parse_resources(
      R"({"memory":{"limit":201326592},"cpu":{"shares":0,"quota":70000,"period":100000},"blockIO":{}})",
      MemberNames::kAnyCase);
  ASSERT_TRUE(read) << read.error().message;
  core::EngineResources want;
  want.memory_limit = 201'326'592;
  want.cpu_quota = 70'000;
  want.cpu_period = 100'000;
  EXPECT_EQ(*read, want);
  EXPECT_EQ(parse_resources(R"({"Memory":{"LIMIT":1},"memory":{"limit":2}})", MemberNames::kAnyCase)
                ->memory_limit,
            2);
  for (const char* bad : {"", "[]", R"({"memory":{"limit":"1"}})", R"({"memory":[]})"}) {
    const auto refused = parse_resources(bad, MemberNames::kAnyCase);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ParseOciState, ReadsStatesOfRuncAndCrun) {
  const std::vector<StateCase> cases = {
      {R"({"ociVersion":"1.0.2-dev","id":"c1","status":"creating","pid":4242,)"
       R"("bundle":"/run/b\u00fcndle","annotations":{"podqos.io/container":"web","org.other":"x"}})",
       Pid{4242},
       "/run/b\xc3\xbcndle",
       {{"podqos.io/container", "web"}}},
      // crun at poststop.
      {R"({"ociVersion":"1.0","id":"c1","pid":0,"root":"/r","bundle":"/b","status":"stopped"})",
       std::nullopt,
       "/b",
       {}},
      {R"({"id":"c1","pid":null,"bundle":null,"annotations":null})", std::nullopt, "", {}},
      // What is not known.
      {R"({"x":{"id":"no","pid":[1,{"id":2}]},"id":"c1","x":1,"status":7,)"
       R"("annotations":{"other":"1","other":{"id":[]}}})",
       std::nullopt,
       "",
       {}},
  };
  for (const auto& [text, pid, bundle, annotations] : cases) {
    const auto state = parse_oci_state(text);
    ASSERT_TRUE(state) << text << state.error().message;
    EXPECT_EQ(state->facts.id, "c1") << text;
    EXPECT_EQ(state->pid, pid) << text;
    EXPECT_EQ(state->facts.bundle, bundle) << text;
    EXPECT_EQ(state->facts.annotations, annotations) << text;
  }
}

TEST(ParseOciState, RefusesWhatIsMalformed) {
  const std::vector<Refused> cases = {
      {"", "OCI state: malformed JSON at byte 1"},
      {"{\"id\":\"c1\"", "malformed JSON"},
      {"{\"id\":\"c1\"}x", "malformed JSON"},
      {"{\"id\":\"\xff\"}", "malformed JSON"},
      {std::string("{\"id\":\"c1\"}\0", 12), "malformed JSON at byte 12"},
      {std::string("{\"id\":\"c1\"}\0,\"id\":\"c2\"}", 22), "malformed JSON at byte 12"},
      {"[]", "expected an object"},
      {"\"c1\"", "expected an object"},
      {"{}", "id is missing or empty"},
      {R"({"id":""})", "id is missing or empty"},
      {R"({"id":null})", "id is missing or empty"},
      {R"({"id":"a\u0000b"})", "unprintable"},
      {R"({"id":"a\n"})", "unprintable"},
      {R"({"id":"\u00e9"})", "unprintable"},
      {R"({"id":1})", "OCI state: id at byte 7: expected a string, found 1"},
      {R"({"id":"a","id":"a"})", "id at byte 11: member is repeated"},
      {R"({"id":"a","pid":1,"pid":1})", "pid at"},
      {R"({"id":"a","bundle":"/a","bundle":"/b"})", "bundle at"},
      {R"({"id":"a","annotations":{},"annotations":{}})", "annotations at"},
      {R"({"id":"a","annotations":{"podqos.io/pod":"","podqos.io/pod":""}})",
       "annotations.podqos.io/pod at byte 45: member is repeated"},
      {R"({"id":"a","annotations":{"podqos.io/pod":1}})",
       "podqos.io/pod at byte 42: expected a string"},
      {R"({"id":"a","annotations":{"podqos.io/pod":{}}})", "expected a string"},
      {R"({"id":"a","annotations":[]})", "annotations at byte 25: expected an object, found array"},
      {R"({"id":"a","pid":"1"})", "expected an integer from 0 to 2147483647, found \"1\""},
      {R"({"id":"a","pid":-1})", "expected an integer from 0 to 2147483647"},
      {R"({"id":"a","pid":2147483648})", "expected an integer from 0 to 2147483647"},
      {R"({"id":"a","pid":1e3})",
       "pid at byte 17: expected an integer from 0 to 2147483647, found 1e3"},
      {R"({"id":"a","bundle":"/a\u0000"})", "NUL"},
  };
  for (const auto& [text, message] : cases) {
    const auto state = parse_oci_state(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(state.error().message, HasSubstr(message)) << text;
  }
}

TEST(ParseOciState, BoundsEverything) {
  const auto code = [](const std::string& text) {
    const auto state = parse_oci_state(text);
    return state ? std::nullopt : std::optional{state.error().code};
  };
  const auto with = [](std::string_view before, std::size_t size, std::string_view after) {
    return cat(before, std::string(size, 'a'), after);
  };
  EXPECT_EQ(code(with(R"({"id":")", 1024, "\"}")), std::nullopt);
  EXPECT_EQ(code(with(R"({"id":")", 1025, "\"}")), ErrorCode::kInvalidArgument);
  const std::string path = R"({"id":"a","bundle":")";
  EXPECT_EQ(code(with(path, 4096, "\"}")), std::nullopt);
  EXPECT_EQ(code(with(path, 4097, "\"}")), ErrorCode::kInvalidArgument);
  const std::string pod = R"({"id":"a","annotations":{"podqos.io/pod":")";
  EXPECT_EQ(code(with(pod, kMaxAnnotationSize, "\"}}")), std::nullopt);
  EXPECT_EQ(code(with(pod, kMaxAnnotationSize + 1, "\"}}")), ErrorCode::kTooLarge);
  const std::string small = R"({"id":"a"})";
  EXPECT_EQ(code(small + std::string(kMaxStateSize - small.size(), ' ')), std::nullopt);
  EXPECT_EQ(code(small + std::string(kMaxStateSize + 1 - small.size(), ' ')), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace podqos::codec
