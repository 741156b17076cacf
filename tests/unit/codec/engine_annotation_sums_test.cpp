#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/annotations.h"

namespace podqos::codec {
namespace {

using core::Annotations;
using core::EngineResources;
using testing::HasSubstr;

struct SumCase {
  std::string cri;
  std::string crio;
  std::optional<std::int64_t> EngineResources::* field;
};

const std::vector<SumCase> kSums = {
    {"sandbox-cpu-period", "cpu_period", &EngineResources::cpu_period},
    {"sandbox-cpu-quota", "cpu_quota", &EngineResources::cpu_quota},
    {"sandbox-cpu-shares", "cpu_shares", &EngineResources::cpu_shares},
    {"sandbox-memory", "memory_limit_in_bytes", &EngineResources::memory_limit},
};

Annotations of_containerd(const std::string& name, const std::string& value) {
  return {{"io.kubernetes.cri.container-type", "sandbox"}, {"io.kubernetes.cri." + name, value}};
}

Annotations of_crio(const std::string& key, const std::string& json) {
  return {{"io.container.manager", "cri-o"},
          {"io.kubernetes.cri-o.ContainerType", "sandbox"},
          {key, json}};
}

struct SumText {
  std::string text;
  std::optional<std::int64_t> number;
};

TEST(ParseEngineAnnotations, ReadsEverySum) {
  const std::vector<SumText> numbers = {
      {"1", 1},
      {"-1", -1},
      {"0", std::nullopt},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()}};
  for (const auto& [cri, crio, field] : kSums) {
    for (const auto& [text, number] : numbers) {
      std::optional<EngineResources> want;
      if (number) want.emplace().*field = number;
      for (const Annotations& annotations :
           {of_containerd(cri, text),
            of_crio("io.kubernetes.cri-o.PodLinuxResources", cat("{\"", crio, "\":", text, "}")),
            of_crio("pod-linux-resources.crio.io", cat("{\"", crio, "\":", text, "}"))}) {
        const auto parsed = parse_engine_annotations(annotations);
        ASSERT_TRUE(parsed) << cri << text << parsed.error().message;
        EXPECT_EQ(parsed->pod_sums, want) << cri << text;
      }
    }
  }
}

TEST(ParseEngineAnnotations, RefusesSumsThatAreNoIntegers) {
  for (const auto& [cri, crio, field] : kSums) {
    for (const std::string text : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "1Gi",
                                   "9223372036854775808", "-9223372036854775809"}) {
      const auto parsed = parse_engine_annotations(of_containerd(cri, text));
      ASSERT_FALSE(parsed) << cri << text;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(parsed.error().message,
                  HasSubstr(cat("annotation io.kubernetes.cri.", cri, " = \"", text, "\"")));
    }
    for (const std::string json :
         {"\"1\"", "true", "[]", "{}", "1.5", "1e3", "9223372036854775808", "01"}) {
      const auto parsed = parse_engine_annotations(
          of_crio("pod-linux-resources.crio.io", cat("{\"", crio, "\":", json, "}")));
      ASSERT_FALSE(parsed) << crio << json;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(parsed.error().message, HasSubstr("annotation pod-linux-resources.crio.io"));
    }
  }
}

TEST(ParseEngineAnnotations, RefusesCriosJsonThatIsNone) {
  for (const std::string key : {"io.kubernetes.cri-o.PodLinuxResources",
                                "pod-linux-resources.crio.io", "io.kubernetes.cri-o.Labels"}) {
    for (const std::string json : {"{", "{}x", "x", "{\"a\":1,}", "{'a':1}"}) {
      const auto parsed = parse_engine_annotations(of_crio(key, json));
      ASSERT_FALSE(parsed) << key << json;
      EXPECT_THAT(parsed.error().message, HasSubstr(cat("annotation ", key)));
    }
  }
  EXPECT_FALSE(parse_engine_annotations(
      of_crio("pod-linux-resources.crio.io", R"({"cpu_shares":2,"cpu_shares":3})")));
}

TEST(ParseEngineAnnotations, TakesCriosOwnNameOfItsSumsBeforeWhatAnAuthorCanWrite) {
  // A CRI-O that writes the prefixed name copies the other one from the pod's annotations.
  Annotations annotations = of_crio("pod-linux-resources.crio.io", R"({"cpu_shares":300})");
  annotations.emplace("pod-linux-overhead.crio.io", R"({"cpu_shares":300})");
  annotations.emplace("io.kubernetes.cri-o.PodLinuxResources", R"({"cpu_shares":200})");
  const auto parsed = parse_engine_annotations(annotations);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EngineResources want;
  want.cpu_shares = 200;
  EXPECT_EQ(parsed->pod_sums, want);
  EXPECT_EQ(parsed->pod_overhead, std::nullopt);
}

TEST(ParseEngineAnnotations, DoesNotFillInCriosEmptySumsWithAnAuthors) {
  for (const std::string own : {"", "{}", R"({"cpu_shares":0})"}) {
    Annotations annotations = of_crio("pod-linux-resources.crio.io", R"({"cpu_shares":300})");
    annotations.emplace("io.kubernetes.cri-o.PodLinuxResources", own);
    const auto parsed = parse_engine_annotations(annotations);
    ASSERT_TRUE(parsed) << own << parsed.error().message;
    EXPECT_EQ(parsed->pod_sums, std::nullopt) << own;
  }
}

TEST(ParseEngineAnnotations, DoesNotFailForAnAuthorsSumsBesideCrios) {
  Annotations annotations = of_crio("pod-linux-resources.crio.io", "{");
  annotations.emplace("io.kubernetes.cri-o.PodLinuxResources", R"({"cpu_shares":200})");
  EXPECT_TRUE(parse_engine_annotations(annotations));
}

}  // namespace
}  // namespace podqos::codec
