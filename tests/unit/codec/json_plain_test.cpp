#include "common/codec/json_plain.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_events.h"
#include "common/codec/json_tree.h"
#include "common/codec/oci_config.h"
#include "tests/unit/codec/bundle_text.h"

namespace podqos::codec {
namespace {

using bundle_text::read_bundle;
using bundle_text::value_text;
using nlohmann::json;

constexpr std::size_t kLevels = 3;

TEST(EndOfPlainMember, StandsBehindTheValue) {
  const std::vector<std::string> values = {
      ":1",
      " : \t\r\n-0.50",
      ":true",
      ":false",
      ":null",
      R"(:"")",
      R"(:"}],\"{[\\")",
      R"(:"\b\f\n\r\t\/\u00e9\uFFFF\ud7ff")",
      ":\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"",
      ":{}",
      ":[ ]",
      R"(:{"a" : [ {} , 1 ],"":"}"})",
      R"(:[[],{"linux":{}},"x"])",
      ":12345678901234567890123456789012",
  };
  for (const std::string& value : values) {
    for (const std::string rest : {"", ",", "}", " ,\"a\":1}"}) {
      const std::string text = cat("{\"x\"", value, rest);
      EXPECT_EQ(end_of_plain_member(text, 4, kLevels), 4 + value.size()) << text;
    }
  }
}

TEST(EndOfPlainMember, LeavesTheRestToAParser) {
  const std::vector<std::string> values = {
      "", ":", " 1", ",1", ":,", ":}", ":x", ":tru", ":nul}", ":-", ":1.", ":.5", ":+1", ":'a'",
      // not closed, or closed by the wrong bracket
      ":{", ":[", ":\"", ":\"a", ":\"\\", ":\"\\\"", ":[1", ":[1}", ":{\"a\":1]", ":{\"a\":[}]",
      ":{\"a\"", ":{\"a\":", ":{\"a", ":[\"", ":[1,", ":[1,]", ":{,}", ":{\"a\":1,}", ":{a:1}",
      ":[1 2]", ":{\"a\" 1}", ":[01]", ":[nullx]",
      // strings that are malformed
      ":\"\n\"", ":\"\x1f\"", std::string(":\"\0\"", 4), ":\"\xff\"", ":\"\xc3\"", ":\"\xc0\x80\"",
      R"(:"\x")", R"(:"\u12")", R"(:"\u12g4")", R"(:"\u")",
      // too deep
      ":[[[[]]]]", R"(:{"a":{"b":{"c":{}}}})",
      // valid, but not plain
      ":1e3", ":1.5E-3", ":123456789012345678901234567890123", R"(:"\ud83d\ude00")", R"(:"\ud800")",
      R"(:"\uDFFF")"};
  for (const std::string& value : values) {
    const std::string text = cat("{\"x\"", value);
    EXPECT_EQ(end_of_plain_member(text, 4, kLevels), std::nullopt) << text;
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

TEST(OciConfigJump, AcceptsExactlyWhatTheParserAccepts) {
  constexpr unsigned kRuns = 3000;
  std::mt19937 random{36};
  const std::string whole = json::parse(read_bundle("containerd.json")).at("mounts").dump(1) + " ";
  unsigned accepted = 0;
  for (unsigned run = 0; run < kRuns; ++run) {
    const std::string text =
        cat("{\"x\":", damaged(whole, random), R"(,"linux":{"cgroupsPath":"/a"}})");
    const auto config = OciConfig::parse(text);
    ASSERT_EQ(config.has_value(), json::accept(text)) << text;
    if (!config) continue;
    ++accepted;
    ASSERT_EQ(config->facts.cgroups_path, "/a") << text;
  }
  EXPECT_GT(accepted, 100U);
}

bool same(const JsonNode& a, const JsonNode& b) {
  return a.kind == b.kind && a.key == b.key && a.text == b.text &&
         std::ranges::equal(a.children, b.children, same);
}

/// A comment at the end leaves all of the text to nlohmann's parser, whose strings the tree keeps.
Result<JsonTree> parsed_tree(std::string_view text) {
  return parse_json_tree(cat(text, "//"), {.comments = JsonComments::kIgnore});
}

TEST(PlainTree, IsTheTreeThatTheParserMakes) {
  constexpr unsigned kRuns = 6000;
  std::mt19937 random{36};
  const std::string lists = json::parse(read_bundle("containerd.json")).at("mounts").dump(1);
  const std::string scalars =
      R"([{"n":[0,-1,10.50,-10.5,123456789012345678,0.1]},"é",true,false,null,{"":""}])";
  unsigned plain_ones = 0;
  for (unsigned run = 0; run < kRuns; ++run) {
    const std::string text = damaged(run % 2 == 0 ? lists : scalars, random);
    const auto plain = plain_tree(text, kMaxJsonDepth);
    if (!plain) continue;
    ++plain_ones;
    const auto parsed = parsed_tree(text);
    ASSERT_TRUE(parsed) << text << parsed.error().message;
    ASSERT_TRUE(same(*plain, *parsed)) << text;
  }
  EXPECT_GT(plain_ones, 300U);
}

TEST(PlainTree, KeepsNumbersAsTheyStand) {
  for (const std::string_view number :
       {"0", "7", "-1", "10.50", "-10.5", "-0.0", "9223372036854775807", "-9223372036854775808"}) {
    const auto tree = plain_tree(number, kLevels);
    ASSERT_TRUE(tree) << number;
    EXPECT_EQ(tree->kind, JsonNode::Kind::kNumber);
    EXPECT_EQ(tree->text, number);
    EXPECT_TRUE(same(*tree, *parsed_tree(number))) << number;
  }
}

TEST(PlainTree, LeavesTheRestToAParser) {
  for (const std::string_view text : {"",
                                      " ",
                                      "-",
                                      "-0",
                                      "01",
                                      "1e2",
                                      "1E2",
                                      "9223372036854775808",
                                      "nul",
                                      "nulls",
                                      "tru",
                                      R"("a\n")",
                                      R"("\u0041")",
                                      R"("a)",
                                      "\"\n\"",
                                      "\"\xff\"",
                                      "[",
                                      "[1",
                                      "[1,]",
                                      "[1 2]",
                                      "{,}",
                                      R"({"a"})",
                                      R"({"a":})",
                                      R"({"a":1,})",
                                      R"({"a\n":1})",
                                      R"({a:1})",
                                      "1 2",
                                      "1//",
                                      "/**/1",
                                      "\xef\xbb\xbf"
                                      "1",
                                      "[[[[]]]]",
                                      R"({"a":[{"b":[]}]})"}) {
    EXPECT_FALSE(plain_tree(text, kLevels)) << text;
  }
}

/// A value that podqos never reads, with everything in it that might be mistaken for what it reads.
constexpr std::string_view kUnread =
    R"([{"linux":{"cgroupsPath":"/no"}},"],\"linux\":{\"cgroupsPath\":\"/no\"}","\\",{"process":{"oomScoreAdj":7}}])";

struct JumpCase {
  std::string name;
  std::string before;
  std::string after;
};

class OciConfigJumps : public testing::TestWithParam<JumpCase> {};

/// What was read, and the bytes at the places where it was found.
std::string findings(std::string_view text) {
  const auto config = OciConfig::parse(text);
  if (!config) return config.error().message;
  const core::ContainerFacts& facts = config->facts;
  return cat(facts.cgroups_path.value_or("(none)"), " ", facts.oom_score_adj.value_or(-1), " ",
             value_text(text, *config, ConfigNode::kCgroupsPath), " ",
             value_text(text, *config, ConfigNode::kOomScoreAdj), " ",
             value_text(text, *config, ConfigNode::kRoot));
}

TEST_P(OciConfigJumps, OverWhatIsNeverRead) {
  const auto& [name, before, after] = GetParam();
  for (const std::string_view value : {kUnread, std::string_view{"{}"}, std::string_view{"1e2"},
                                       std::string_view{R"("\ud83d\ude00")"}}) {
    const std::string text = cat(before, value, after);
    EXPECT_EQ(findings(text), cat("/yes 5 \"/yes\" 5 ", text));
  }
}

TEST_P(OciConfigJumps, NotOverWhatIsCutOff) {
  for (std::size_t length = 0; length < kUnread.size(); ++length) {
    const auto cut = OciConfig::parse(cat(GetParam().before, kUnread.substr(0, length)));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().code, ErrorCode::kInvalidArgument) << length;
    EXPECT_TRUE(cut.error().message.contains("malformed JSON at offset")) << cut.error().message;
  }
}

TEST_P(OciConfigJumps, NotOverWhatIsTooDeep) {
  const auto& [name, before, after] = GetParam();
  for (const std::string& value :
       {std::string(100'000, '['),
        cat(std::string(kMaxJsonDepth, '['), std::string(kMaxJsonDepth, ']'), after)}) {
    const auto deep = OciConfig::parse(before + value);
    ASSERT_FALSE(deep);
    EXPECT_EQ(deep.error().code, ErrorCode::kTooLarge);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, OciConfigJumps,
    testing::Values(
        JumpCase{"Root", R"({"mounts" : )",
                 R"( ,"process":{"oomScoreAdj":5},"linux":{"cgroupsPath":"/yes"}})"},
        JumpCase{"RootAtTheEnd",
                 R"({"process":{"oomScoreAdj":5},"linux":{"cgroupsPath":"/yes"},"root":)", "}"},
        JumpCase{"EscapedName", R"({"\u006dounts":)",
                 R"(,"process":{"oomScoreAdj":5},"l\u0069nux":{"cgroupsPath":"/yes"}})"},
        JumpCase{"Process", R"({"linux":{"cgroupsPath":"/yes"},"process":{"env":)",
                 R"(, "oomScoreAdj" : 5 }})"},
        JumpCase{"Linux", R"({"process":{"oomScoreAdj":5},"linux":{"seccomp":)",
                 R"(,"cgroupsPath":"/yes"}})"},
        JumpCase{"Resources", R"({"process":{"oomScoreAdj":5},"linux":{"resources":{"devices":)",
                 R"(},"cgroupsPath":"/yes"}})"},
        JumpCase{"Hook", R"({"hooks":{"poststop":[{"path":"/a","env":)",
                 R"(}]},"process":{"oomScoreAdj":5},"linux":{"cgroupsPath":"/yes"}})"},
        JumpCase{"Annotation", R"({"annotations":{"org.other":)",
                 R"(},"process":{"oomScoreAdj":5},"linux":{"cgroupsPath":"/yes"}})"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace podqos::codec
