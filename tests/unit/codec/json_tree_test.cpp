#include "common/codec/json_tree.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "tests/unit/codec/bundle_text.h"

namespace podqos::codec {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = JsonNode::Kind;
using namespace std::string_view_literals;

/// What is stored of a text, without the space in it.
std::string stored(const JsonNode& node) {
  if (node.kind != Kind::kObject && node.kind != Kind::kArray) return std::string{node.raw};
  const bool object = node.kind == Kind::kObject;
  std::string children;
  for (const JsonNode& child : node.children)
    children += cat(children.empty() ? "" : ",", child.raw_key, object ? ":" : "", stored(child));
  return object ? cat("{", children, "}") : cat("[", children, "]");
}

TEST(ParseJsonTree, KeepsEveryMemberInOrder) {
  const auto tree = parse_json_tree(R"({"b":[1,{"c":null}],"a":{} , "b":"2"})");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(stored(*tree), R"({"b":[1,{"c":null}],"a":{},"b":"2"})");
  EXPECT_EQ(tree->children[0].key, "b");
  EXPECT_EQ(tree->children[0].children[0].key, "");
  EXPECT_TRUE(tree->children[0].children[1].children[0].is_null());
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

TEST(ParseJsonTree, NamesPositionAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}x", "malformed JSON at byte 3: expected the end of the text, found \"x\""},
      {std::string("{}\0 ", 4), "malformed JSON at byte 3: NUL byte"},
      {"", "malformed JSON at byte 1: expected a value, found the end"},
      {"[1", R"(malformed JSON at byte 3: expected "," or "]", found the end)"},
      {"{\"a\":1,}", R"(malformed JSON at byte 8: expected the name of a member, found "}")"},
      {"{\"a\" 1}", R"(malformed JSON at byte 6: expected ":", found "1")"},
      {"{\n\t\"a\": 1\n\t\"b\": 2\n}",
       R"(malformed JSON at line 3, column 2: expected "," or "}", found "\"")"},
      {"{\"a\": \"b\n\"}", "malformed JSON at line 1, column 7: control byte in a string"},
      {"[\"\\x\"]", "malformed JSON at byte 2: invalid escape in a string"},
      {"[\"\xff\"]", "malformed JSON at byte 2: string that is not UTF-8"},
      {"[\"a", "malformed JSON at byte 2: string without end"},
      {"[\n1e999]", "malformed JSON at line 2, column 1: number overflow: 1e999"},
      {"[-]", "malformed JSON at byte 2: invalid number"},
      {"[nulx]", R"(malformed JSON at byte 2: expected a value, found "n")"},
      {"[1,,2]", R"(malformed JSON at byte 4: expected a value, found ",")"},
      {"[,1]", R"(malformed JSON at byte 2: expected a value, found ",")"},
      {"[\n", "malformed JSON at line 2, column 1: "}};
  for (const auto& [text, message] : cases) {
    const auto tree = parse_json_tree(text);
    ASSERT_FALSE(tree) << text;
    EXPECT_THAT(tree.error().message, StartsWith(message)) << text;
  }
}

TEST(ParseJsonPrefix, KeepsWhatIsCompleteBeforeTheError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1[", "[1]"},
      {"[-0-0]", "[-0]"},
      {"[1.5e1true]", "[1.5e1]"},
      {"[falsefalse]", "[false]"},
      {"[null1]", "[null]"},
      {R"(["\u0061"2])", R"(["\u0061"])"},
      {"[{}{}]", "[{}]"},
      {"[[1], {\"a\": [2 3", "[[1]]"},
      {" {\"a\": [2 3", "{}"}};
  for (const auto& [text, complete] : cases) {
    const JsonPrefix prefix = parse_json_prefix(text);
    EXPECT_TRUE(prefix.error) << text;
    EXPECT_EQ(stored(prefix.tree), complete) << text;
  }
}

TEST(FormatPosition, CountsCharactersFromOne) {
  const auto position = [](std::string_view text, std::size_t at) {
    return format_position(text, text.substr(at));
  };
  EXPECT_EQ(position("abc", 0), "byte 1");
  EXPECT_EQ(position("abc", 3), "byte 4");
  EXPECT_EQ(position("\n", 0), "line 1, column 1");
  EXPECT_EQ(position("\n", 1), "line 2, column 1");
  EXPECT_EQ(position("a\n\xc3\xa9\xf0\x9f\x98\x80x\n", 8), "line 2, column 3");
  EXPECT_EQ(position("{\n \"a\": 1}", 8), "line 2, column 7");
}

TEST(ParseJsonTree, KeepsTheBytesOfNamesAndValues) {
  const std::string list = R"([ "b\"}\u00e9" , [] ,true, -0.50 ])";
  const std::string text = cat(" { \"\\u0061 \" :", list, R"(,"":{"c":null}})", "\n");
  const auto tree = parse_json_tree(text);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->raw, std::string_view{text}.substr(1, text.size() - 2));
  EXPECT_EQ(tree->raw_key, "");
  EXPECT_EQ(stored(*tree), R"({"\u0061 ":["b\"}\u00e9",[],true,-0.50],"":{"c":null}})");
  const JsonNode& first = tree->children[0];
  EXPECT_EQ(first.key, "a ");
  EXPECT_EQ(first.raw, list);
  EXPECT_EQ(first.raw.data(), text.data() + text.find('['));
  EXPECT_EQ(first.children[0].text, "b\"}\xc3\xa9");
}

TEST(ParseJsonTree, KeepsTheBytesBetweenComments) {
  const std::string_view text =
      "\xef\xbb\xbf// \"[\r/*/ */{/**/\"a\"// :\n:/* 1 */12/*,*/,\"b\":false//\n}";
  const auto tree = parse_json_tree(text, {.comments = JsonComments::kIgnore});
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->raw, text.substr(text.find('{')));
  EXPECT_EQ(stored(*tree), R"({"a":12,"b":false})");
}

TEST(ParseJsonTree, StoresNothingBelowWhatIsNotRead) {
  const std::string skipped = R"({"read":[{"a":"\n"}],"x":[[1],"read",{"read":{}}]})";
  const std::string text =
      cat(R"([{"x":)", skipped, R"(,"read":[[{"b":2,"x":[3]}],4],"x":"\u0035","y":[]},"6"])");
  const auto tree = parse_json_tree(
      text, {.is_read = [](std::string_view, std::string_view name) { return name == "read"; }});
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(stored(*tree), R"([{"x":{},"read":[[{"b":2,"x":[]}],4],"x":"\u0035","y":[]},"6"])");
  const auto& members = tree->children[0].children;
  EXPECT_EQ(members[0].raw, skipped);
  EXPECT_EQ(members[1].children[0].children[0].children[1].raw, "[3]");
  EXPECT_EQ(members[2].text, "5");
}

TEST(ParseJsonTree, TellsMembersApartByTheirParent) {
  const std::string text = R"({"a":{"x":[1]},"b":{"x":[2]},"c":[{"x":[3]}]})";
  const auto tree = parse_json_tree(text, {.is_read = [](auto parent, auto name) {
                                      return name != "x" || parent == "a" || parent.empty();
                                    }});
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(stored(*tree), R"({"a":{"x":[1]},"b":{"x":[]},"c":[{"x":[3]}]})");
}

TEST(ParseJsonTree, ChecksWhatIsNotRead) {
  const auto parse = [](std::string_view value) {
    return parse_json_tree(
        cat("{\"x\":", value, "}"),
        {.depth = 3, .is_read = [](std::string_view, std::string_view) { return false; }});
  };
  EXPECT_TRUE(parse(R"([["\u0061"]])"));
  for (const std::string_view bad : {"[1", "[1,]", R"(["\x"])", "[\"\xff\"]", "{\"a\"}", "01"})
    EXPECT_FALSE(parse(bad)) << bad;
  EXPECT_EQ(parse("[[[]]]").error().code, ErrorCode::kTooLarge);
}

TEST(JsonNode, IsFoundByAPointer) {
  const auto tree = parse_json_tree(R"({"a":{"B":[{"c":1}],"d":1,"D":2},"\u0065":null})").value();
  EXPECT_EQ(tree.at(""), &tree);
  EXPECT_EQ(tree.at("/a/b"), tree.children[0].children.data());
  EXPECT_EQ(tree.at("/a/b", MemberNames::kExact), nullptr);
  EXPECT_EQ(tree.at("/e"), &tree.children[1]);
  for (const char* absent : {"/a/d", "/a/b/c", "/x", "/x/y", "/a/"})
    EXPECT_EQ(tree.at(absent), nullptr) << absent;
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

TEST(ParseJsonTree, BoundsStoredValues) {
  const auto is_read = [](std::string_view, std::string_view name) { return name != "x"; };
  const JsonBounds bounds{.values = 4, .is_read = is_read};
  for (const std::string text :
       {"[2,[3],1]", R"({"a":{"b":1,"c":null},"d":"e"})", R"([{"x":[1,2,3,[4],{"a":5}]},6,1])"})
    EXPECT_TRUE(parse_json_tree(text, bounds)) << text;
  for (const std::string text : {"[1,2,3,4,5]", "[1,2,3,4,{}]", R"({"a":{"b":[1,{"c":[]}]}})",
                                 R"({"a":1,"\u0062":{"c":[null,true]}})"}) {
    const auto tree = parse_json_tree(text, bounds);
    ASSERT_FALSE(tree) << text;
    EXPECT_EQ(tree.error().code, ErrorCode::kTooLarge) << text;
    EXPECT_THAT(tree.error().message, StartsWith("JSON with more than 4 values that are read: \""));
  }
}

/// Space for children, of this node and all below it.
std::size_t capacity(const JsonNode& node) {
  std::size_t sum = node.children.capacity();
  for (const JsonNode& child : node.children)
    sum += capacity(child);
  return sum;
}

TEST(ParseJsonTree, KeepsNoSpaceForChildrenThatAreNotThere) {
  constexpr std::size_t kObjects = 1000;
  std::string text = "[{}";
  for (std::size_t i = 0; i < kObjects; ++i)
    text += R"(,{"a":[1]})";
  const auto tree = parse_json_tree(text + "]");
  ASSERT_TRUE(tree);
  // Growing doubles the space of the array; its objects have one member each.
  EXPECT_LE(capacity(*tree), 2 * kObjects + 2 * kObjects);
}

struct FoldedName {
  std::string key;
  std::string name;
  bool folded;
};

TEST(IsNamed, GoesByLetterCaseWhereAsked) {
  const std::vector<FoldedName> cases = {
      {"linux", "linux", true},
      {"Linux", "linux", true},
      {"CGROUPSPATH", "cgroupsPath", true},
      {"linu", "linux", false},
      {"linuxx", "linux", false},
      {"", "linux", false},
      // Unicode's simple folding, as in Go's encoding/json: long s and the Kelvin sign.
      {"proce\xc5\xbf\xc5\xbf", "process", true},
      {"HOO\xe2\x84\xaa\xc5\xbf", "hooks", true},
      {"l\xc4\xb1nux", "linux", false},  // the dotless i folds to itself
      {"linux\xc5", "linux", false},
  };
  for (const auto& [key, name, folded] : cases) {
    EXPECT_EQ(is_named(key, name, MemberNames::kExact), key == name) << key;
    EXPECT_EQ(is_named(key, name, MemberNames::kAnyCase), folded) << key;
  }
}

/// The value of a tree by nlohmann's parser, each number and string from its own bytes.
json value_of(const JsonNode& node) {
  json out;
  if (node.kind == Kind::kObject) {
    out = json::object();
    for (const JsonNode& member : node.children)
      out[std::string{member.key}] = value_of(member);
  } else if (node.kind == Kind::kArray) {
    out = json::array();
    for (const JsonNode& element : node.children)
      out.push_back(value_of(element));
  } else if (node.kind == Kind::kString) {
    out = node.text;
  } else {
    EXPECT_EQ(node.text, node.is_null() ? "" : node.raw);
    EXPECT_EQ(node.kind == Kind::kBoolean, node.raw == "true" || node.raw == "false");
    out = json::parse(node.raw);
  }
  return out;
}

/// The text without the commas that keep it from being JSON with comments; nullopt if others things
/// do, too.
std::optional<std::string> without_commas(std::string text, std::size_t from = 0) {
  if (json::accept(text, true)) return text;
  for (std::size_t at = text.find(',', from); at != std::string::npos;
       at = text.find(',', at + 1)) {
    std::string less = text;
    less[at] = ' ';
    if (auto found = without_commas(std::move(less), at + 1)) return found;
  }
  return std::nullopt;
}

/// Checks a text, and what is made of it, by another parser; also where it is passed over.
/// @return whether it is JSON
bool agrees(const std::string& text, JsonComments comments = JsonComments::kRefuse) {
  const bool ignored = comments == JsonComments::kIgnore;
  if (const auto less = ignored ? without_commas(text) : std::nullopt; less && *less != text) {
    const auto tree = parse_json_tree(text, {.comments = comments});
    // A comma alone, or the second of two, is an error.
    if (tree) {
      EXPECT_EQ(value_of(*tree), json::parse(*less, nullptr, true, true)) << text;
    }
    return tree.has_value();
  }
  const std::string member = cat("{\"x\":", text, "}");
  const auto unread =
      parse_json_tree(member, {.comments = comments, .is_read = [](auto, auto) { return false; }});
  EXPECT_EQ(unread.has_value(), json::accept(member, ignored)) << text;
  const auto tree = parse_json_tree(text, {.comments = comments});
  EXPECT_EQ(tree.has_value(), json::accept(text, ignored)) << text;
  if (!tree) {
    EXPECT_EQ(tree.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(tree.error().message, StartsWith("malformed JSON at ")) << text;
    return false;
  }
  EXPECT_EQ(value_of(*tree), json::parse(text, nullptr, true, ignored)) << text;
  return true;
}

TEST(JsonParser, TakesAllOfTheValue) {
  std::vector<std::string> values = parts_of(
      "-0.50 -0 0.10 1e2 -1.50E-07 1e-999 true false null 0 -17 18446744073709551615 "
      "18446744073709551616 -9223372036854775809 12345678901234567890123456789012 {} [] \"\"",
      ' ');
  values.insert(
      values.end(),
      {R"("a\u0000b")", R"("}],\"{[\\")", R"("\b\f\n\r\t\/\u00e9\u07ff\u0800\uFFFF\ud7ff\u0000")",
       R"("\ud83d\ude00\udbff\udfff")", "\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"", "[ ]",
       R"({"a" : [ {} , 1 ],"":"}"})", R"({"\u0061":0})", R"([[],{"linux":{}},"x"])"});
  for (const std::string& value : values) {
    for (const std::string space : {"", " \t\r\n"}) {
      const std::string text = cat(space, value, space);
      EXPECT_TRUE(agrees(text)) << value;
      EXPECT_EQ(parse_json_tree(text)->raw, value);
    }
    EXPECT_TRUE(agrees(cat("\xef\xbb\xbf", value)));
  }
}

/// One to three bytes are gone, new or changed.
std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kBytes = "\"\\{}[],:01-.eE tu/\n\x7f\xc3\xa9";
  for (std::size_t left = random() % 3 + 1; left > 0; --left) {
    const std::size_t at = random() % text.size();
    const char byte = kBytes.at(random() % kBytes.size());
    switch (random() % 3) {
      case 0: text.erase(at, 1); break;
      case 1: text.insert(at, 1, byte); break;
      default: text.at(at) = byte; break;
    }
  }
  return text;
}

TEST(JsonParser, AgreesOnEscapes) {
  std::vector<std::string> escapes;
  for (int byte = 1; byte < 256; ++byte) {
    const std::string character(1, static_cast<char>(byte));
    escapes.push_back("\\" + character);
    for (const std::string digits : {"000", "00c", "dc0", "d80"}) {
      escapes.push_back(cat(R"(\u)", digits, character));
      escapes.push_back(cat(R"(\u)", character, digits));
    }
  }
  const std::vector<std::string> units = {
      R"(\u0000)", R"(\uD7FF)", R"(\ud800)", R"(\uDbFf)", R"(\uDC00)", R"(\udfff)", R"(\uE000)",
      R"(\uffff)", R"(\n)",     "x",         R"(\U0041)", R"(\u+041)", R"(\u0x1)",  R"(\ud80)"};
  for (const std::string& first : units)
    for (const std::string& second : units)
      escapes.push_back(first + second);
  unsigned accepted = 0;
  for (const std::string& escape : escapes)
    for (const std::string after : {"", "0", "\"", "\\"})
      accepted += agrees(cat(R"(["a)", escape, after, R"(b"])")) ? 1U : 0U;
  EXPECT_GT(accepted, 100U);
}

TEST(JsonParser, AgreesWithAnotherParser) {
  constexpr unsigned kRuns = 6000;
  std::mt19937 random{36};
  const std::vector<std::string> wholes = {
      json::parse(bundle_text::read_bundle("containerd.json")).at("mounts").dump(1),
      R"([{"n":[0,-1,10.50,-10.5e1,123456789012345678,0.1]},"é\n\u00e9",true,false,null,{"":""}])"};
  unsigned accepted = 0;
  for (unsigned run = 0; run < kRuns; ++run)
    accepted += agrees(damaged(wholes.at(run % 2), random)) ? 1U : 0U;
  EXPECT_GT(accepted, 300U);
}

TEST(JsonParser, RefusesWhatIsNoJson) {
  for (const std::string text : {"",
                                 " ",
                                 "{",
                                 "[",
                                 "]",
                                 "{}{}",
                                 "1 2",
                                 "[1,]",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{'a':1}",
                                 "{\"a\" 1}",
                                 "{\"a\":}",
                                 "[1 2]",
                                 "nul",
                                 "True",
                                 "NaN",
                                 "Infinity",
                                 "01",
                                 "+1",
                                 ".5",
                                 "1.",
                                 "1e",
                                 "0x1",
                                 "\"a",
                                 "\"\n\"",
                                 "1e999",
                                 "{\"a\":\"\xff\"}",
                                 R"("\x")",
                                 R"("\u12")",
                                 R"("\ud800")",
                                 R"("\udc00")",
                                 "\"\xff\"",
                                 "\"\xc0\x80\"",
                                 "\"\xed\xa0\x80\"",
                                 "// c\n1",
                                 "/* c */1"})
    EXPECT_FALSE(agrees(text)) << text;
  // NUL ends texts in C, not in JSON.
  for (const std::string_view text : {"1\0"sv, "{}\0x"sv, "\0"sv, "\"\0\""sv, "// c\0[1]"sv})
    EXPECT_FALSE(parse_json_tree(text, {.comments = JsonComments::kIgnore})) << text;
}

TEST(JsonParser, TakesATrailingCommaBesideComments) {
  for (const std::string text : {"[1,]", "{\"a\": {\"b\": [1, 2, ], // c\n}, /* d */ }"}) {
    EXPECT_TRUE(agrees(text, JsonComments::kIgnore)) << text;
    EXPECT_FALSE(agrees(text)) << text;
  }
  for (const std::string text : {"[,]", "{,}", "[1,,]", "[1],", "{\"a\":1,,}", "[1,"})
    EXPECT_FALSE(agrees(text, JsonComments::kIgnore)) << text;
}

TEST(JsonParser, AgreesOnComments) {
  for (const std::string text :
       {"// a\n[/* b\n * */1, // \xff\n2]/**/", R"("// no /* comment */")"})
    EXPECT_TRUE(agrees(text, JsonComments::kIgnore)) << text;
  for (const std::string text : {"1 /*", "1 /* *", "/ 1", "/* */", "//", "1 # c", "[1 /* 2] */"})
    EXPECT_FALSE(agrees(text, JsonComments::kIgnore)) << text;
  constexpr unsigned kRuns = 2000;
  std::mt19937 random{36};
  const std::string whole = "// [\r/*/ \"*/{/**/\"a\"// :\n:/* 1 */[1,/*\n*/2]/*,*/,\"//\":0//\n}";
  ASSERT_TRUE(agrees(whole, JsonComments::kIgnore));
  for (unsigned run = 0; run < kRuns; ++run)
    agrees(damaged(whole, random), JsonComments::kIgnore);
}

}  // namespace
}  // namespace podqos::codec
