#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/explain/document.h"

namespace podqos::ctl {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// A value as JSON text.
std::string printed(const codec::JsonNode& node) {
  using Kind = codec::JsonNode::Kind;
  if (node.kind == Kind::kString) return json_quote(node.text);
  if (node.kind == Kind::kNull) return "null";
  if (node.kind != Kind::kArray && node.kind != Kind::kObject) return std::string{node.text};
  const bool array = node.kind == Kind::kArray;
  std::string out;
  for (const codec::JsonNode& child : node.children)
    out +=
        cat(out.empty() ? "" : ",", array ? "" : cat(json_quote(child.key), ":"), printed(child));
  return array ? cat("[", out, "]") : cat("{", out, "}");
}

/// The JSON of the only document of `text`; the error's message otherwise.
std::string json_from(std::string_view text) {
  const auto documents = parse_yaml(text);
  if (!documents) return documents.error().message;
  return documents->size() == 1 ? printed(documents->front().tree)
                                : cat(documents->size(), " documents");
}

TEST(ParseYaml, ReadsScalarsAsKubernetesDoes) {
  for (const char* number :
       {"1.50", "-0", "0899", ".5", "-1.", "10.50e3", "1e308", "18446744073709551616"})
    EXPECT_EQ(json_from(cat("k: ", number)), cat(R"({"k":)", number, "}"));
  for (const char* text : {"100m", "0x", "0xg", "1.2.3", "+", ".", "-.e5", "1e", "1e400",
                           "2001-01-01", "_1", "-inf", "y_"})
    EXPECT_EQ(json_from(cat("k: ", text)), cat(R"({"k":")", text, "\"}"));
  const std::map<std::string_view, std::string_view> others = {{"'1'", R"("1")"},
                                                               {"yes", "true"},
                                                               {"off", "false"},
                                                               {"~", "null"},
                                                               {"0644", "420"},
                                                               {"1_000", "1000"},
                                                               {"0x1F", "31"},
                                                               {"0o644", "420"},
                                                               {"0b101", "5"},
                                                               {"+5", "5"},
                                                               {"-0x10", "-16"},
                                                               {"+1_0.50e3", "10.50e3"},
                                                               {"[1, x]", R"([1,"x"])"},
                                                               {"{a: b}", R"({"a":"b"})"},
                                                               {R"("a\0b")", R"("a\u0000b")"}};
  for (const auto& [yaml, json] : others)
    EXPECT_EQ(json_from(cat("k: ", yaml)), cat(R"({"k":)", json, "}"));
}

TEST(ParseYaml, SplitsDocuments) {
  const auto documents = parse_yaml("a: 1\n---\n# only this\n---\nb: 2\n");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 3U);
  EXPECT_EQ(printed((*documents)[0].tree), R"({"a":1})");
  EXPECT_EQ(printed((*documents)[1].tree), "null");
  EXPECT_EQ((*documents)[2].text, "---\nb: 2\n");
}

TEST(ParseYaml, RefusesWhatIsNoYamlOrReadDifferentlyByParsers) {
  for (const std::string_view text :
       {",", "\"x\" ,", "&a ,", "!x ,", "---\n,", "[1],", "{a: 1}\n,", "a: [1\n", "\t- x: ["})
    EXPECT_THAT(json_from(text), HasSubstr("line ")) << text;
  const std::map<std::string, std::string_view> errors = {
      {"a: 1\n...\nb: 2\n", "line 3: documents must be separated by a line \"---\""},
      {"'a' 'b'", "line 1: documents must be separated by a line \"---\""},
      {"a: 1\n---\nb: *nowhere\n", "line 3: unknown anchor nowhere"},
      {"a: 1\nb: \xff\n", "line 2: invalid leading UTF-8 octet"},
      {std::string(70, '['), "line 1: nests deeper than 64"},
      {"&a [" + std::string(40, '[') + std::string(40, ']') + ",\n" + std::string(30, '[') + "*a",
       "line 2: unknown anchor a"},
      {"- &a " + std::string(40, '[') + std::string(40, ']') + "\n- " + std::string(30, '[') + "*a",
       "line 2: nests deeper than 64"},
      {"b: 1\n---\na: 1\na: 2\n", "line 4: repeats the key a"},
      {"? [a]\n: 1\n", "line 1: has a key that is not a scalar"}};
  for (const auto& [text, error] : errors)
    EXPECT_EQ(json_from(text), error);
}

// As gopkg.in/yaml.v2 v2.4.0 decodes them, which Kubernetes uses: decode.go mapping(), merge().
TEST(ParseYaml, ReadsMergeKeysAsKubernetesDoes) {
  EXPECT_EQ(json_from("a: &x {b: 1, c: 2}\nk:\n  <<: *x\n  c: 3\n"),
            R"({"a":{"b":1,"c":2},"k":{"b":1,"c":3}})");
  // The later one counts, where YAML's draft has the map's own.
  EXPECT_EQ(json_from("d: {c: 3, <<: {c: 2}}"), R"({"d":{"c":2}})");
  // Of several maps the first counts.
  EXPECT_EQ(json_from("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}"),
            R"({"a":{"x":1},"b":{"x":2,"y":2},"c":{"x":1,"y":2,"z":3}})");
  EXPECT_EQ(json_from("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}"),
            R"({"a":{"x":1},"b":{"x":1,"y":2},"c":{"x":1,"y":2}})");
  EXPECT_EQ(json_from("\"<<\": {x: 1}"), R"({"<<":{"x":1}})");
}

TEST(ParseYaml, RefusesToMergeWhatIsNoMap) {
  for (const std::string_view value : {"1", "[1]", "[[{a: 1}]]"})
    EXPECT_THAT(json_from(cat("a: {<<: ", value, "}")),
                HasSubstr("line 1: has a merge key (<<) whose value is neither a map nor a list"))
        << value;
}

// 2^40 maps for a parser that merges anew what a merged map has merged.
TEST(ParseYaml, MergesEachMapOnce) {
  std::string text = "l0: &l0 {x: 1}\n";
  for (int level = 1; level < 40; ++level)
    text += cat("l", level, ": &l", level, " {<<: [*l", level - 1, ", *l", level - 1, "]}\n");
  EXPECT_THAT(json_from(text), EndsWith(R"("l39":{"x":1}})"));
}

// "Billion laughs": each list refers ten times to the one before it.
TEST(ParseYaml, BoundsWhatAliasesExpandTo) {
  std::string text = "l0: &l0 [x]\n";
  for (int level = 1; level < 10; ++level) {
    text += cat("l", level, ": &l", level, " [");
    for (int i = 0; i < 10; ++i)
      text += cat(i == 0 ? "" : ", ", "*l", level - 1);
    text += "]\n";
  }
  EXPECT_EQ(parse_yaml(text).error().code, ErrorCode::kTooLarge);
  // Aliases stand for 60,000 values in each of these documents.
  std::string document = "---\n- &a [x";
  for (int i = 1; i < 10'000; ++i)
    document += ", x";
  document += "]\n- *a\n- *a\n- *a\n- *a\n- *a\n- *a\n";
  EXPECT_TRUE(parse_yaml(document));
  EXPECT_EQ(json_from(document + document), "line 12: aliases stand for more than 100000 values");
}

TEST(ParseYaml, TellsStringsByQuoteOrTag) {
  EXPECT_EQ(json_from("- !!str 5\n- \"5\"\n- 5\n- |-\n  5\n"), R"(["5","5",5,"5"])");
}

}  // namespace
}  // namespace podqos::ctl
