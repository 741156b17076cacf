#include "ctl/yaml.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

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

struct ScalarCase {
  std::string_view yaml;
  std::string_view json;
};

TEST(ParseYaml, ReadsScalarsAsKubernetesDoes) {
  for (const auto& [yaml, json] :
       std::vector<ScalarCase>{{"1.50", "1.50"},
                               {"100m", R"("100m")"},
                               {"'1'", R"("1")"},
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
                               {"-0", "-0"},
                               {"0899", "0899"},
                               {".5", ".5"},
                               {"-1.", "-1."},
                               {"+1_0.50e3", "10.50e3"},
                               {"0x", R"("0x")"},
                               {"0xg", R"("0xg")"},
                               {"1.2.3", R"("1.2.3")"},
                               {"+", R"("+")"},
                               {".", R"(".")"},
                               {"-.e5", R"("-.e5")"},
                               {"1e", R"("1e")"},
                               {"2001-01-01", R"("2001-01-01")"},
                               {"18446744073709551616", "18446744073709551616"},
                               {"1e308", "1e308"},
                               {"1e400", R"("1e400")"},
                               {"_1", R"("_1")"},
                               {R"("a\0b")", R"("a\u0000b")"},
                               {"-inf", R"("-inf")"},
                               {"a: b", R"({"a":"b"})"},
                               {"[1, x]", R"([1,"x"])"}})
    EXPECT_EQ(json_from(cat("k: ", yaml == "a: b" ? "{a: b}" : yaml)), cat(R"({"k":)", json, "}"));
}

TEST(ParseYaml, SplitsDocuments) {
  const auto documents = parse_yaml("a: 1\n---\n# only this\n---\nb: 2\n");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 3U);
  EXPECT_EQ(printed((*documents)[0].tree), R"({"a":1})");
  EXPECT_EQ(printed((*documents)[1].tree), "null");
  EXPECT_EQ((*documents)[2].text, "---\nb: 2\n");
}

TEST(ParseYaml, RefusesDocumentsThatNothingSeparates) {
  EXPECT_EQ(json_from("a: 1\n...\nb: 2\n"),
            "line 3: documents must be separated by a line \"---\"");
  EXPECT_EQ(json_from("'a' 'b'"), "line 1: documents must be separated by a line \"---\"");
}

TEST(ParseYaml, RefusesACommaWithoutAValue) {
  for (const std::string_view text :
       {",", "\"x\" ,", "&a ,", "!x ,", "---\n,", "[1],", "{a: 1}\n,"})
    EXPECT_THAT(json_from(text), HasSubstr("line ")) << text;
}

TEST(ParseYaml, NamesTheLine) {
  EXPECT_EQ(json_from("a: 1\n---\nb: *nowhere\n"), "line 3: unknown anchor nowhere");
  EXPECT_EQ(json_from("a: 1\nb: \xff\n"), "line 2: invalid leading UTF-8 octet");
  EXPECT_EQ(json_from(std::string(70, '[')), "line 1: nests deeper than 64");
}

TEST(ParseYaml, RefusesWhatParsersReadDifferently) {
  EXPECT_THAT(json_from("b: 1\n---\na: 1\na: 2\n"), HasSubstr("line 4: repeats the key a"));
  EXPECT_FALSE(parse_yaml("a: [1\n"));
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
  EXPECT_EQ(json_from(document + document),
            "line 12: has more than 100000 values, aliases expanded");
}

TEST(ParseYaml, TellsStringsByQuoteOrTag) {
  EXPECT_EQ(json_from("- !!str 5\n- \"5\"\n- 5\n- |-\n  5\n"), R"(["5","5",5,"5"])");
}

/// The document with members inserted; "" if it cannot be edited.
std::string inserted(const std::string& document,
                     const Insertion& insertion = {.path = "metadata.annotations",
                                                   .members = {{"k", "{\"it's\"}"}, {"u", "1"}}}) {
  const auto documents = parse_yaml(document);
  return documents ? insert_yaml(documents->at(0), {&insertion, 1}).value_or("") : "malformed";
}

TEST(InsertYaml, KeepsCommentsAndLayout) {
  EXPECT_EQ(inserted("metadata:\n    name: \xc3\xbc  # a name\nspec: {}\n"),
            "metadata:\n    annotations:\n      k: '{\"it''s\"}'\n      u: '1'\n"
            "    name: \xc3\xbc  # a name\nspec: {}\n");
  EXPECT_EQ(inserted("spec: {} # \xc3\xbc\r\nmetadata:\r\n  name: \xc3\xbc\r\n"),
            "spec: {} # \xc3\xbc\r\nmetadata:\r\n  annotations:\r\n    k: '{\"it''s\"}'\r\n"
            "    u: '1'\r\n  name: \xc3\xbc\r\n");
  EXPECT_EQ(inserted("metadata: {name: \"\xc3\xbc\"}\nspec: {}\n"),
            "metadata: {annotations: {k: '{\"it''s\"}', u: '1'}, name: \"\xc3\xbc\"}\nspec: {}\n");
  EXPECT_EQ(inserted("{metadata: {annotations: {}, name: \xc3\xbc}, spec: {}}"),
            "{metadata: {annotations: {k: '{\"it''s\"}', u: '1'}, name: \xc3\xbc}, spec: {}}");
}

TEST(InsertYaml, KeepsTheLinesOfABracedMap) {
  EXPECT_EQ(inserted("metadata: {\n  name: a }\n"),
            "metadata: {\n  annotations: {k: '{\"it''s\"}', u: '1'},\n  name: a }\n");
  EXPECT_EQ(inserted("metadata: { # mine\n  name: a }\n"),
            "metadata: { # mine\n  annotations: {k: '{\"it''s\"}', u: '1'}, name: a }\n");
}

TEST(InsertYaml, GoesBeforeAMergeKeyAndBehindAnAnchor) {
  EXPECT_EQ(inserted("x: &x {b: 1}\nmetadata:\n  <<: *x\n  name: a\n"),
            "x: &x {b: 1}\nmetadata:\n  annotations:\n    k: '{\"it''s\"}'\n    u: '1'\n"
            "  <<: *x\n  name: a\n");
  EXPECT_EQ(inserted("metadata: &m\n  name: a\n"),
            "metadata: &m\n  annotations:\n    k: '{\"it''s\"}'\n    u: '1'\n  name: a\n");
}

TEST(InsertYaml, ReplacesAnEarlierValue) {
  EXPECT_EQ(inserted("metadata:\n  annotations:\n    k: old # mine\n    x: z\n"),
            "metadata:\n  annotations:\n    u: '1'\n    k: '{\"it''s\"}' # mine\n    x: z\n");
  EXPECT_EQ(inserted("metadata: {annotations: {k: [old]}}\n"),
            "metadata: {annotations: {u: '1', k: '{\"it''s\"}'}}\n");
}

TEST(InsertYaml, MakesTheMapsThatAreMissing) {
  EXPECT_EQ(inserted("spec: {}\n"),
            "metadata:\n  annotations:\n    k: '{\"it''s\"}'\n    u: '1'\nspec: {}\n");
}

TEST(InsertYaml, FindsAnItemOfAList) {
  EXPECT_EQ(inserted("items:\n- metadata: {a: b}\n- metadata:\n    a: b\n",
                     {.path = "items.1.metadata", .members = {{"k", "v"}}}),
            "items:\n- metadata: {a: b}\n- metadata:\n    k: 'v'\n    a: b\n");
}

TEST(InsertYaml, LeavesAloneWhatHasNoPlace) {
  for (const std::string document :
       {"metadata:\n", "metadata:\n  annotations:\n", "x: &a {}\nmetadata: *a\n",
        "x: &a\n  b: 1\nmetadata: *a\n", "x: &a {metadata: {b: 1}}\n<<: *a\n",
        "metadata:\n  annotations:\n    k: |\n      two\n      lines\n    u: '1'\n"})
    EXPECT_EQ(inserted(document), "") << document;
}

}  // namespace
}  // namespace podqos::ctl
