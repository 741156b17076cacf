#include "ctl/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::HasSubstr;

constexpr std::string_view kConfig =
    "{\n\t\"ociVersion\": \"1.0.2\",\n\t\"annotations\": {\"a\": \"1\"},\n\t\"x\": 1.0\n}\n";

TEST(AnnotateConfig, ChangesNoOtherByte) {
  const auto annotated = annotate_config(kConfig, {{"b", "2"}});
  ASSERT_TRUE(annotated) << annotated.error().message;
  EXPECT_EQ(*annotated,
            "{\n\t\"ociVersion\": \"1.0.2\",\n\t\"annotations\": {\"b\": \"2\",\"a\": "
            "\"1\"},\n\t\"x\": 1.0\n}\n");
}

TEST(AnnotateConfig, ChangesNothingTheSecondTime) {
  EXPECT_EQ(annotate_config(kConfig, {{"a", "1"}}), kConfig);
}

TEST(AnnotateConfig, RefusesToReplaceAValue) {
  const auto annotated = annotate_config(kConfig, {{"a", "2"}});
  ASSERT_FALSE(annotated);
  EXPECT_EQ(annotated.error().code, ErrorCode::kConflict);
  EXPECT_THAT(annotated.error().message, HasSubstr("a"));
}

TEST(AnnotateConfig, RefusesWhatIsNotAConfig) {
  EXPECT_EQ(annotate_config("[]", {{"a", "2"}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(annotate_config("{", {{"a", "2"}}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace podqos::ctl
