#include "ctl/json_text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

TEST(JsonTree, IsNullForWhatIsNotJson) {
  EXPECT_EQ(json_tree("[1]").raw, "[1]");
  EXPECT_TRUE(json_tree("").is_null());
  EXPECT_TRUE(json_tree("[1").is_null());
}

TEST(JsonElements, AreTheValuesOfAnArray) {
  const auto array = json_tree(R"([1, "a,b", [2, 3], {"k": []}])");
  EXPECT_THAT(json_elements(&array),
              ElementsAre(Field(&JsonNode::raw, "1"), Field(&JsonNode::raw, R"("a,b")"),
                          Field(&JsonNode::raw, "[2, 3]"), Field(&JsonNode::raw, R"({"k": []})")));
  const auto object = json_tree(R"({"a": 1})");
  EXPECT_TRUE(json_elements(&object).empty());
  EXPECT_TRUE(json_elements(nullptr).empty());
}

// encoding/json, which Kubernetes uses, keeps the last of several.
TEST(JsonMember, IsTheLastOfSeveral) {
  const auto several = json_tree(R"({"a": 1, "b": 1, "a": 2.0 , "b": null})");
  EXPECT_EQ(json_member(several, "a")->raw, "2.0");
  EXPECT_EQ(json_member(several, "b"), nullptr);
  EXPECT_EQ(json_member(several, "c"), nullptr);
  const std::vector<std::string> path = {"a", "b"};
  const auto nested = json_tree(R"({"a": {"b": true}})");
  EXPECT_EQ(json_at(nested, path)->raw, "true");
  EXPECT_EQ(json_at(several, path), nullptr);
  EXPECT_EQ(json_member(json_tree("[1]"), ""), nullptr);
}

TEST(JsonSet, ChangesNoOtherByte) {
  const std::vector<std::string> path = {"metadata", "annotations"};
  const std::string pod = "{\n  \"metadata\": {\n    \"name\": \"a\"\n  }, \"n\": 1.0}\n";
  const auto changed = json_set(pod, path, "k", "\"v\"");
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed,
            "{\n  \"metadata\": {\n    \"annotations\": {\"k\": \"v\"},\n    \"name\": \"a\"\n  }, "
            "\"n\": 1.0}\n");
  const auto again = json_set(*changed, path, "k", "\"w\"");
  ASSERT_TRUE(again);
  EXPECT_THAT(*again, HasSubstr(R"({"k": "w"})"));
}

TEST(JsonSet, RefusesWhatIsNotAnObject) {
  const std::vector<std::string> path = {"metadata"};
  EXPECT_EQ(json_set(R"({"metadata": [1]})", path, "k", "1").error().code,
            ErrorCode::kInvalidArgument);
  // null stands for an absent object.
  EXPECT_EQ(json_set(R"({"metadata": null})", path, "k", "1"), R"({"metadata": {"k": 1}})");
}

TEST(JsonShown, FitsOneLine) {
  EXPECT_EQ(json_shown(json_tree("\"a\\u0000b\"")), "\"a\\x00b\"");
  EXPECT_EQ(json_shown(json_tree("12")), "12");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quote("a\"b\\\n"), R"("a\"b\\\n")");
  EXPECT_EQ(json_quote("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace podqos::ctl
