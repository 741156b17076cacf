#include "ctl/json_text.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::HasSubstr;

TEST(JsonTree, IsNullForWhatIsNotJson) {
  EXPECT_EQ(json_tree("[1]").raw, "[1]");
  EXPECT_TRUE(json_tree("").is_null());
  EXPECT_TRUE(json_tree("[1").is_null());
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

std::string with(std::string_view text, std::vector<std::string> path, StringMembers members) {
  const auto inserted = insert_json(
      text, std::array{Insertion{.path = std::move(path), .members = std::move(members)}});
  return inserted ? *inserted : inserted.error().message;
}

TEST(InsertJson, ChangesNoOtherByte) {
  const std::vector<std::string> path = {"metadata", "annotations"};
  const std::string pod = "{\n  \"metadata\": {\n    \"name\": \"a\"\n  }, \"n\": 1.0}\n";
  const std::string changed = with(pod, path, {{"k", "v"}});
  EXPECT_EQ(changed,
            "{\n  \"metadata\": {\n    \"annotations\": {\"k\": \"v\"},\n    \"name\": \"a\"\n  }, "
            "\"n\": 1.0}\n");
  EXPECT_THAT(with(changed, path, {{"k", "w"}}), HasSubstr(R"({"k": "w"})"));
  EXPECT_EQ(with(changed, path, {{"k", "v"}}), changed);
  EXPECT_THAT(with(changed, path, {{"i", "1"}, {"k", "w"}}), HasSubstr(R"({"i": "1","k": "w"})"));
}

TEST(InsertJson, FindsAnItemOfAList) {
  EXPECT_EQ(with(R"({"items": [{}, {"a": 1}]})", {"items", "1"}, {{"k", "v"}, {"l", "w"}}),
            R"({"items": [{}, {"k": "v","l": "w","a": 1}]})");
}

TEST(InsertJson, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(with(R"({"metadata": [1]})", {"metadata"}, {{"k", "1"}}),
            "metadata: expected an object, found [1]");
  // null stands for an absent object.
  EXPECT_EQ(with(R"({"metadata": null})", {"metadata"}, {{"k", "1"}}),
            R"({"metadata": {"k": "1"}})");
  EXPECT_EQ(with(R"({"metadata": null})", {"metadata", "a"}, {{"k", "1"}}),
            R"({"metadata": {"a": {"k": "1"}}})");
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
