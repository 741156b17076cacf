#include "ctl/yaml.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

/// The JSON of the only document of `text`; the error's message otherwise.
std::string json_from(std::string_view text) {
  const auto documents = parse_yaml(text);
  if (!documents) return documents.error().message;
  return documents->size() == 1 ? documents->front().json : cat(documents->size(), " documents");
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
                               {"0899", "899"},
                               {".5", "0.5"},
                               {"-1.", "-1"},
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
                               {"a: b", R"({"a":"b"})"},
                               {"[1, x]", R"([1,"x"])"}})
    EXPECT_EQ(json_from(cat("k: ", yaml == "a: b" ? "{a: b}" : yaml)), cat(R"({"k":)", json, "}"));
}

TEST(FormatYaml, EscapesWhatParsersRefuseOrChange) {
  EXPECT_EQ(format_yaml_scalar("a\x7f"
                               "b"),
            R"("a\x7fb")");
  EXPECT_EQ(format_yaml_scalar("a\xc2\x85"
                               "b"),
            R"("a\x85b")");
  EXPECT_EQ(format_yaml_scalar("a \xe2\x80\xa8 \"b\""), R"("a \u2028 \"b\"")");
  EXPECT_EQ(format_yaml_scalar("\xef\xbb\xbf"), R"("\ufeff")");
  EXPECT_EQ(format_yaml_scalar("\xc3\xbc \xc2\xa0"), "\"\xc3\xbc \xc2\xa0\"");
}

/// The parser finds the indentation by the first line.
TEST(FormatYaml, WritesNoBlockThatBeginsWithATab) {
  EXPECT_EQ(format_yaml(R"({"a":"\tb\nc"})"), "a: \"\\tb\\nc\"\n");
  EXPECT_EQ(format_yaml(R"({"a":"b\n\tc"})"), "a: |-\n  b\n  \tc\n");
}

TEST(ParseYaml, SplitsDocuments) {
  const auto documents = parse_yaml("a: 1\n---\n# only this\n---\nb: 2\n");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 3U);
  EXPECT_EQ((*documents)[0].json, R"({"a":1})");
  EXPECT_EQ((*documents)[1].json, "");
  EXPECT_EQ((*documents)[2].text, "---\nb: 2\n");
}

TEST(ParseYaml, RefusesDocumentsThatNothingSeparates) {
  EXPECT_EQ(json_from("a: 1\n...\nb: 2\n"),
            "line 3: documents must be separated by a line \"---\"");
  // yaml-cpp refuses it itself since 0.9.
  EXPECT_THAT(json_from("'a' 'b'"), AnyOf("line 1: documents must be separated by a line \"---\"",
                                          "line 1: unexpected scalar"));
}

// yaml-cpp before 0.9 makes documents without end of each: it reads nothing at a comma outside
// of brackets.
TEST(ParseYaml, RefusesACommaWithoutAValue) {
  EXPECT_THAT(json_from(","), AnyOf("line 1: unexpected character",
                                    "line 1: plain value cannot start with flow indicator "
                                    "character"));
  for (const std::string_view text : {"\"x\" ,", "&a ,", "!x ,", "---\n,", "[1],", "{a: 1}\n,"})
    EXPECT_THAT(json_from(text), HasSubstr("line ")) << text;
}

TEST(ParseYaml, RefusesNumbersThatJsonCannotHold) {
  EXPECT_TRUE(parse_yaml("a: 1e308\n"));
  const auto parsed = parse_yaml("kind: Pod\n---\nkind: Pod\na: [1e400]\n");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("document that begins on line 2: "));
}

TEST(ParseYaml, RefusesWhatParsersReadDifferently) {
  EXPECT_THAT(json_from("b: 1\n---\na: 1\na: 2\n"), HasSubstr("line 2: repeats the key a"));
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

TEST(ParseYaml, BoundsWhatMergeKeysExpandTo) {
  std::string text = "l0: &l0 {x: 1}\n";
  for (int level = 1; level < 40; ++level)
    text += cat("l", level, ": &l", level, " {<<: [*l", level - 1, ", *l", level - 1, "]}\n");
  const auto parsed = parse_yaml(text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kTooLarge);
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
}

TEST(FormatYamlScalar, QuotesWhatWouldBeAnotherType) {
  EXPECT_EQ(format_yaml_scalar("web"), "web");
  for (const std::string_view text : {"yes", "1", "", "a: b", "~", "0x1"})
    EXPECT_NE(format_yaml_scalar(text), text);
}

TEST(FormatYaml, IsReadBack) {
  const std::string_view json = R"({"a":["x",1.50,null],"b":{"c":"yes: no","d":{}}})";
  EXPECT_EQ(json_from(format_yaml(json)), json);
}

TEST(InsertYaml, KeepsCommentsAndLayout) {
  const std::string document = "metadata:\n    name: a  # a name\nspec: {}\n";
  const auto inserted =
      insert_yaml(document, {"metadata", "annotations"}, {{"k", "yes"}},
                  R"({"metadata":{"annotations":{"k":"yes"},"name":"a"},"spec":{}})");
  ASSERT_TRUE(inserted);
  EXPECT_THAT(*inserted, HasSubstr("    name: a  # a name\nspec: {}\n"));
  EXPECT_EQ(json_from(*inserted),
            R"({"metadata":{"annotations":{"k":"yes"},"name":"a"},"spec":{}})");
}

TEST(InsertYaml, LeavesFlowStyleAlone) {
  EXPECT_EQ(insert_yaml("metadata: {name: a}\n", {"metadata", "annotations"}, {{"k", "v"}},
                        R"({"metadata":{"name":"a","annotations":{"k":"v"}}})"),
            std::nullopt);
}

TEST(Crlf, IsKept) {
  EXPECT_TRUE(has_crlf("a\r\nb\n"));
  EXPECT_FALSE(has_crlf("a\nb\r\n"));
  EXPECT_EQ(with_crlf("a\nb\n"), "a\r\nb\r\n");
}

}  // namespace
}  // namespace podqos::ctl
