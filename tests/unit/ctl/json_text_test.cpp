#include "ctl/json_text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckJson, NamesTheByteOfTheMistake) {
  EXPECT_TRUE(check_json(R"({"a": [1, "x", null]})"));
  const auto mistake = check_json(R"({"a": 1,})");
  ASSERT_FALSE(mistake);
  EXPECT_EQ(mistake.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(mistake.error().message, HasSubstr("byte 9"));
}

TEST(CheckJson, BoundsSizeAndDepth) {
  EXPECT_EQ(check_json("[1]", 2).error().code, ErrorCode::kTooLarge);
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(check_json(nested(kMaxDepth)));
  EXPECT_FALSE(check_json(nested(kMaxDepth + 1)));
  // A bracket in a string nests nothing.
  EXPECT_TRUE(check_json("\"" + std::string(kMaxDepth + 1, '[') + "\""));
}

TEST(JsonMembers, KeepsOrderAndBytes) {
  const auto members = json_members(R"( {"b" : 1.50 , "a\u0041": {"x": "}"}, "c":[] } )");
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].key, "b");
  EXPECT_EQ(members[0].value, "1.50");
  EXPECT_EQ(members[1].key, "aA");
  EXPECT_EQ(members[1].raw_key, R"("a\u0041")");
  EXPECT_EQ(members[1].value, R"({"x": "}"})");
  EXPECT_EQ(members[2].value, "[]");
  EXPECT_TRUE(json_members("[1]").empty());
}

TEST(JsonElements, AreTheValuesOfAnArray) {
  EXPECT_THAT(json_elements(R"([1, "a,b", [2, 3], {"k": []}])"),
              ElementsAre("1", R"("a,b")", "[2, 3]", R"({"k": []})"));
  EXPECT_TRUE(json_elements("{}").empty());
}

// encoding/json, which Kubernetes uses, keeps the last of several.
TEST(JsonMember, IsTheLastOfSeveral) {
  EXPECT_EQ(json_member(R"({"a": 1, "a": 2})", "a"), "2");
  EXPECT_EQ(json_member(R"({"a": null})", "a"), std::nullopt);
  const std::vector<std::string> path = {"a", "b"};
  EXPECT_EQ(json_at(R"({"a": {"b": true}})", path), "true");
  EXPECT_EQ(json_at(R"({"a": 1})", path), std::nullopt);
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
  EXPECT_EQ(json_shown("\"a\\u0000b\""), "\"a\\x00b\"");
  EXPECT_EQ(json_shown("12"), "12");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quote("a\"b\\\n"), R"("a\"b\\\n")");
  EXPECT_EQ(json_quote("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace podqos::ctl
