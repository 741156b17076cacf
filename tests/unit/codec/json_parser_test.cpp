#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "tests/unit/codec/bundle_text.h"

namespace podqos::codec {
namespace {

using bundle_text::read_bundle;
using nlohmann::json;

/// The value of a tree by nlohmann's parser, each number and string from its own bytes.
json value_of(const JsonNode& node) {
  json out;
  if (node.kind == JsonNode::Kind::kObject) {
    out = json::object();
    for (const JsonNode& member : node.children)
      out[std::string{member.key}] = value_of(member);
  } else if (node.kind == JsonNode::Kind::kArray) {
    out = json::array();
    for (const JsonNode& element : node.children)
      out.push_back(value_of(element));
  } else if (node.kind == JsonNode::Kind::kString) {
    out = node.text;
  } else {
    EXPECT_EQ(node.text, node.is_null() ? "" : node.raw);
    EXPECT_EQ(node.kind == JsonNode::Kind::kBoolean, node.raw == "true" || node.raw == "false");
    out = json::parse(node.raw);
  }
  return out;
}

/// Checks a text, and what is made of it, by another parser; also where it is passed over.
/// @return whether it is JSON
bool agrees(const std::string& text, JsonComments comments = JsonComments::kRefuse) {
  const bool ignored = comments == JsonComments::kIgnore;
  const std::string member = cat("{\"x\":", text, "}");
  const auto unread =
      parse_json_tree(member, {.comments = comments, .is_read = [](auto, auto) { return false; }});
  EXPECT_EQ(unread.has_value(), json::accept(member, ignored)) << text;
  const auto tree = parse_json_tree(text, {.comments = comments});
  EXPECT_EQ(tree.has_value(), json::accept(text, ignored)) << text;
  if (!tree) return false;
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
      json::parse(read_bundle("containerd.json")).at("mounts").dump(1),
      R"([{"n":[0,-1,10.50,-10.5e1,123456789012345678,0.1]},"é\n\u00e9",true,false,null,{"":""}])"};
  unsigned accepted = 0;
  for (unsigned run = 0; run < kRuns; ++run)
    accepted += agrees(damaged(wholes.at(run % 2), random)) ? 1U : 0U;
  EXPECT_GT(accepted, 300U);
}

TEST(JsonParser, AgreesOnComments) {
  constexpr unsigned kRuns = 2000;
  std::mt19937 random{36};
  const std::string whole = "// [\r/*/ \"*/{/**/\"a\"// :\n:/* 1 */[1,/*\n*/2]/*,*/,\"//\":0//\n}";
  ASSERT_TRUE(agrees(whole, JsonComments::kIgnore));
  for (unsigned run = 0; run < kRuns; ++run)
    agrees(damaged(whole, random), JsonComments::kIgnore);
}

}  // namespace
}  // namespace podqos::codec
