#include <cstddef>
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
using core::EngineAnnotations;
using testing::HasSubstr;

struct TextCase {
  std::string key;
  std::optional<std::string> EngineAnnotations::* field;
  std::size_t longest;
};

constexpr std::size_t kLongestUid = 128;
constexpr std::size_t kLongestName = 255;  // NAME_MAX

/// Every key whose value is a text of one line, and where it goes.
const std::vector<TextCase> kTexts = {
    {"io.kubernetes.cri.sandbox-id", &EngineAnnotations::sandbox_id, kLongestName},
    {"io.kubernetes.cri.sandbox-uid", &EngineAnnotations::pod_uid, kLongestUid},
    {"io.kubernetes.cri.sandbox-name", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.cri.sandbox-namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.cri.container-name", &EngineAnnotations::container_name, kLongestName},
    {"io.kubernetes.cri-o.SandboxID", &EngineAnnotations::sandbox_id, kLongestName},
    {"io.kubernetes.cri-o.KubeName", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.cri-o.Namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.pod.uid", &EngineAnnotations::pod_uid, kLongestUid},
    {"io.kubernetes.pod.name", &EngineAnnotations::pod_name, kLongestName},
    {"io.kubernetes.pod.namespace", &EngineAnnotations::pod_namespace, kLongestName},
    {"io.kubernetes.container.name", &EngineAnnotations::container_name, kLongestName},
};

/// The annotation with what its engine always writes beside it, on a sandbox where CRI-O writes it
/// there.
Annotations of_its_engine(const std::string& key, const std::string& value) {
  Annotations out{{key, value}};
  if (key.starts_with("io.kubernetes.cri.")) {
    out.emplace("io.kubernetes.cri.container-type", "container");
  } else {
    out.emplace("io.container.manager", "cri-o");
    out.emplace("io.kubernetes.cri-o.ContainerType", "sandbox");
  }
  return out;
}

TEST(ParseEngineAnnotations, ReadsEveryText) {
  for (const auto& [key, field, longest] : kTexts) {
    for (const std::string& value : {std::string{"a-1.B"}, std::string(longest, 'a')}) {
      const auto parsed = parse_engine_annotations(of_its_engine(key, value));
      ASSERT_TRUE(parsed) << key << parsed.error().message;
      EXPECT_EQ(*parsed.*field, value) << key;
    }
  }
}

TEST(ParseEngineAnnotations, TakesAnEmptyTextForNone) {
  for (const auto& [key, field, longest] : kTexts) {
    const auto parsed = parse_engine_annotations(of_its_engine(key, ""));
    ASSERT_TRUE(parsed) << key << parsed.error().message;
    EXPECT_EQ(*parsed.*field, std::nullopt) << key;
  }
}

TEST(ParseEngineAnnotations, RefusesTextsThatCanNameNoCgroup) {
  for (const auto& [key, field, longest] : kTexts) {
    for (const std::string& value :
         {std::string(longest + 1, 'a'), std::string{"."}, std::string{".."}, std::string{"a/b"},
          std::string{"/"}, std::string{"a\nb"}, std::string{"a\x7f"}, std::string("a\0b", 3),
          std::string{"\xc3\xa9"}, std::string{"\xff"}}) {
      const auto parsed = parse_engine_annotations(of_its_engine(key, value));
      ASSERT_FALSE(parsed) << key << "=" << value;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << key;
      EXPECT_THAT(parsed.error().message, HasSubstr(cat("annotation ", key))) << key;
    }
  }
}

TEST(ParseEngineAnnotations, HoldsUidsToTheirOwnRule) {
  for (const std::string key : {"io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"}) {
    for (const std::string value : {"a_b", "a b", "...", "a:b"})
      EXPECT_FALSE(parse_engine_annotations(of_its_engine(key, value))) << key << value;
  }
}

struct LabelCase {
  std::string label;
  std::optional<std::string> EngineAnnotations::* field;
};

TEST(ParseEngineAnnotations, ReadsCriosLabels) {
  const std::vector<LabelCase> cases = {
      {"io.kubernetes.pod.uid", &EngineAnnotations::pod_uid},
      {"io.kubernetes.pod.name", &EngineAnnotations::pod_name},
      {"io.kubernetes.pod.namespace", &EngineAnnotations::pod_namespace},
      {"io.kubernetes.container.name", &EngineAnnotations::container_name},
  };
  for (const auto& [label, field] : cases) {
    const auto parsed = parse_engine_annotations(
        {{"io.container.manager", "cri-o"},
         {"io.kubernetes.cri-o.Labels", cat(R"({"app":"x",")", label, R"(":"v1","z":""})")}});
    ASSERT_TRUE(parsed) << label << parsed.error().message;
    EXPECT_EQ(*parsed.*field, "v1") << label;
  }
}

}  // namespace
}  // namespace podqos::codec
