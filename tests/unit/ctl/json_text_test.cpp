#include "ctl/json_text.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using testing::HasSubstr;

codec::JsonTree tree_of(std::string_view text) {
  return codec::parse_json_tree(text).value_or(codec::JsonTree{});
}

// encoding/json, which Kubernetes uses, keeps the last of several.
TEST(JsonMember, IsTheLastOfSeveral) {
  const auto several = tree_of(R"({"a": 1, "b": 1, "a": 2.0 , "b": null})");
  EXPECT_EQ(json_member(several, "a")->raw, "2.0");
  EXPECT_EQ(json_member(several, "b"), nullptr);
  EXPECT_EQ(json_member(several, "c"), nullptr);
  const auto nested = tree_of(R"({"a": {"b": [true]}})");
  EXPECT_EQ(json_at(nested, "a.b.0")->raw, "true");
  EXPECT_EQ(json_at(several, "a.b.0"), nullptr);
  EXPECT_EQ(json_member(tree_of("[1]"), ""), nullptr);
}

std::string with(std::string_view text, std::string path, StringMembers members) {
  const Insertion insertion{.path = std::move(path), .members = std::move(members)};
  const auto inserted = insert_members(text, tree_of(text), {&insertion, 1}, Syntax::kJson);
  return inserted ? *inserted : inserted.error().message;
}

TEST(InsertJson, ChangesNoOtherByte) {
  const std::string path = "metadata.annotations";
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
  EXPECT_EQ(with(R"({"items": [{}, {"a": 1}]})", "items.1", {{"k", "v"}, {"l", "w"}}),
            R"({"items": [{}, {"k": "v","l": "w","a": 1}]})");
}

TEST(InsertJson, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(with(R"({"metadata": [1]})", "metadata", {{"k", "1"}}),
            "metadata: expected an object, found [1]");
  // null stands for an absent object.
  EXPECT_EQ(with(R"({"metadata": null})", "metadata", {{"k", "1"}}), R"({"metadata": {"k": "1"}})");
  EXPECT_EQ(with(R"({"metadata": null})", "metadata.a", {{"k", "1"}}),
            R"({"metadata": {"a": {"k": "1"}}})");
}

TEST(JsonShown, FitsOneLine) {
  EXPECT_EQ(json_shown(tree_of("\"a\\u0000b\"")), "\"a\\x00b\"");
  EXPECT_EQ(json_shown(tree_of("12")), "12");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quote("a\"b\\\n"), R"("a\"b\\\n")");
  EXPECT_EQ(json_quote("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace podqos::ctl
