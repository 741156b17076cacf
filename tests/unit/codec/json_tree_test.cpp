#include "common/codec/json_tree.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using testing::HasSubstr;
using Kind = JsonNode::Kind;

struct ValueCase {
  std::string json;
  Kind kind;
  std::string text;
};

TEST(ParseJsonTree, KeepsTheTextOfScalars) {
  const std::vector<ValueCase> cases = {
      {"null", Kind::kNull, ""},
      {"true", Kind::kBoolean, "true"},
      {"false", Kind::kBoolean, "false"},
      {"0", Kind::kNumber, "0"},
      {"-17", Kind::kNumber, "-17"},
      {"18446744073709551615", Kind::kNumber, "18446744073709551615"},
      {"18446744073709551616", Kind::kNumber, "18446744073709551616"},
      {"-9223372036854775809", Kind::kNumber, "-9223372036854775809"},
      {"0.10", Kind::kNumber, "0.10"},
      {"1e2", Kind::kNumber, "1e2"},
      {"-1.50E-07", Kind::kNumber, "-1.50E-07"},
      {R"("")", Kind::kString, ""},
      {R"("\"\\\/\b\f\n\r\t")", Kind::kString, "\"\\/\b\f\n\r\t"},
      {R"("\u00e9\ud83d\ude00")", Kind::kString, "\xc3\xa9\xf0\x9f\x98\x80"},
      {R"("a\u0000b")", Kind::kString, std::string("a\0b", 3)},
      {"\"\xc3\xa9\x7f\"", Kind::kString, "\xc3\xa9\x7f"},
      {" \t\r\n\"x\" \t\r\n", Kind::kString, "x"},
  };
  for (const auto& [json, kind, text] : cases) {
    const auto tree = parse_json_tree(json);
    ASSERT_TRUE(tree) << json << tree.error().message;
    EXPECT_EQ(tree->kind, kind) << json;
    EXPECT_EQ(tree->text, text) << json;
  }
}

TEST(ParseJsonTree, KeepsEveryMemberInOrder) {
  const auto tree = parse_json_tree(R"({"b":[1,{"c":null}],"a":{},"b":"2"})");
  ASSERT_TRUE(tree) << tree.error().message;
  ASSERT_EQ(tree->kind, Kind::kObject);
  ASSERT_EQ(tree->children.size(), 3U);
  const JsonNode& list = tree->children[0];
  EXPECT_EQ(list.key, "b");
  EXPECT_EQ(list.kind, Kind::kArray);
  ASSERT_EQ(list.children.size(), 2U);
  EXPECT_EQ(list.children[0].key, "");
  EXPECT_EQ(list.children[0].text, "1");
  ASSERT_EQ(list.children[1].children.size(), 1U);
  EXPECT_EQ(list.children[1].children[0].key, "c");
  EXPECT_TRUE(list.children[1].children[0].is_null());
  EXPECT_EQ(tree->children[1].key, "a");
  EXPECT_EQ(tree->children[1].kind, Kind::kObject);
  EXPECT_EQ(tree->children[2].key, "b");
  EXPECT_EQ(tree->children[2].text, "2");
}

TEST(ParseJsonTree, KeepsItsTextsWhenItIsMoved) {
  const std::string text = R"({"plain":"of some length, and written as it is","\u0061":"\u0062"})";
  auto tree = parse_json_tree(text);
  ASSERT_TRUE(tree);
  const JsonTree moved = std::move(*tree);
  ASSERT_EQ(moved.children.size(), 2U);
  EXPECT_EQ(moved.children[0].text, "of some length, and written as it is");
  EXPECT_EQ(moved.children[1].key, "a");
  EXPECT_EQ(moved.children[1].text, "b");
}

TEST(ParseJsonTree, RefusesWhatIsNoJson) {
  const std::vector<std::string> cases = {
      "", " ", "{", "[", "]", "{}{}", "1 2", "[1,]", "{\"a\":1,}", "{a:1}", "{'a':1}", "{\"a\" 1}",
      "{\"a\":}", "[1 2]", "nul", "True", "NaN", "Infinity", "01", "+1", ".5", "1.", "1e", "0x1",
      "\"a", "\"\n\"", R"("\x")", R"("\u12")", R"("\ud800")", R"("\udc00")", "\"\xff\"",
      "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "// c\n1", "/* c */1",
      // NUL ends texts in C, not in JSON.
      std::string("1\0", 2), std::string("{}\0x", 4), std::string("\0", 1),
      std::string("\"\0\"", 3)};
  for (const std::string& text : cases) {
    const auto tree = parse_json_tree(text);
    ASSERT_FALSE(tree) << text;
    EXPECT_EQ(tree.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(tree.error().message, HasSubstr("not JSON: syntax error at byte ")) << text;
  }
}

TEST(ParseJsonTree, CountsTheBytesFromOne) {
  for (const std::string& text : {std::string("{}x"), std::string("{}\0 ", 4)}) {
    const auto tree = parse_json_tree(text);
    ASSERT_FALSE(tree);
    EXPECT_THAT(tree.error().message, HasSubstr("at byte 3"));
  }
}

TEST(ParseJsonTree, IgnoresCommentsWhereAsked) {
  constexpr JsonBounds kBounds{.comments = JsonComments::kIgnore};
  const auto tree = parse_json_tree("// a\n[/* b\n * */1, // \xff\n2]/**/", kBounds);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->children.size(), 2U);
  const auto text = parse_json_tree(R"("// no /* comment */")", kBounds);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->text, "// no /* comment */");
  for (const std::string bad : {"1 /*", "1 /* *", "/ 1", "/* */", "//", "1 # c", "[1 /* 2] */"})
    EXPECT_FALSE(parse_json_tree(bad, kBounds)) << bad;
  EXPECT_FALSE(parse_json_tree(std::string("// c\0[1]", 8), kBounds));
}

TEST(ParseJsonTree, BoundsBytesAndDepth) {
  EXPECT_TRUE(parse_json_tree("[12]", {.bytes = 4}));
  const auto large = parse_json_tree("[123]", {.bytes = 4});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(large.error().message, HasSubstr("5 bytes, at most 4"));

  EXPECT_TRUE(parse_json_tree("[{\"a\":[]}]", {.depth = 3}));
  EXPECT_TRUE(parse_json_tree("[[],[],[]]", {.depth = 2}));
  for (const std::string text : {"[{\"a\":[{}]}]", "[[[[", "{\"a\":{\"a\":{\"a\":{"}) {
    const auto deep = parse_json_tree(text, {.depth = 3});
    ASSERT_FALSE(deep) << text;
    EXPECT_EQ(deep.error().code, ErrorCode::kTooLarge) << text;
  }
}

TEST(JsonNode, FindsAMemberThatIsThereOnce) {
  const auto tree = parse_json_tree(R"({"a":1,"n":null,"d":1,"d":1,"e":null,"e":2})");
  ASSERT_TRUE(tree);
  const auto a = tree->member("a");
  ASSERT_TRUE(a);
  ASSERT_NE(*a, nullptr);
  EXPECT_EQ((*a)->text, "1");
  for (const std::string_view absent : {"n", "b", "A", ""})
    EXPECT_EQ(tree->member(absent), nullptr) << absent;
  for (const std::string_view twice : {"d", "e"}) {
    const auto member = tree->member(twice);
    ASSERT_FALSE(member) << twice;
    EXPECT_EQ(member.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(member.error().message, HasSubstr(cat(twice, " is repeated")));
  }
}

TEST(FormatKind, NamesAll) {
  EXPECT_EQ(format_kind(Kind::kNull), "null");
  EXPECT_EQ(format_kind(Kind::kBoolean), "boolean");
  EXPECT_EQ(format_kind(Kind::kNumber), "number");
  EXPECT_EQ(format_kind(Kind::kString), "string");
  EXPECT_EQ(format_kind(Kind::kArray), "array");
  EXPECT_EQ(format_kind(Kind::kObject), "object");
}

}  // namespace
}  // namespace podqos::codec
