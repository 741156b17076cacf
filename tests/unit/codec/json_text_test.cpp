#include "common/codec/json_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

TEST(Utf8Length, TakesWhatUnicodeDefines) {
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("\xc2\x80"), 2U);
  EXPECT_EQ(utf8_length("\xe0\xa0\x80x"), 3U);
  EXPECT_EQ(utf8_length("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4U);
}

TEST(Utf8Length, RefusesTheRest) {
  for (const std::string text :
       {"", "\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(utf8_length(text), 0U) << text;
  }
}

TEST(QuoteJson, EscapesWhatJsonForbids) {
  EXPECT_EQ(quote_json("a/\xc3\xa9"), "\"a/\xc3\xa9\"");
  EXPECT_EQ(quote_json("\"\\\n\x7f"), R"("\"\\\u000a\u007f")");
  EXPECT_EQ(quote_json(std::string(1, '\0')), R"("\u0000")");
}

TEST(QuoteJson, IsReadBackByOtherParsers) {
  for (int byte = 0; byte < 0x80; ++byte) {
    const std::string text = cat("a", std::string(1, static_cast<char>(byte)), "\xc3\xa9");
    EXPECT_EQ(nlohmann::json::parse(quote_json(text)), text) << byte;
  }
}

TEST(IsUtf8, LooksAtEveryByte) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("abc\xff"));
  EXPECT_FALSE(is_utf8("\xc3\xa9\xc3"));
}

}  // namespace
}  // namespace podqos::codec
