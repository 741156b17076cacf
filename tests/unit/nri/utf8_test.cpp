#include "nri/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace podqos::nri {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct Utf8Case {
  std::string name;
  std::string_view text;
  std::string_view want;
};
class ValidUtf8 : public TestWithParam<Utf8Case> {};

TEST_P(ValidUtf8, KeepsCharactersAndReplacesTheRest) {
  EXPECT_EQ(valid_utf8(GetParam().text, 100), GetParam().want);
}

constexpr std::string_view kNul{"a\0b", 3};

INSTANTIATE_TEST_SUITE_P(Table, ValidUtf8,
                         ValuesIn<Utf8Case>({
                             {"Empty", "", ""},
                             {"Ascii", "pod \"a\"\n", "pod \"a\"\n"},
                             {"Nul", kNul, kNul},
                             {"TwoBytes", "\xc3\xa4", "\xc3\xa4"},
                             {"ThreeBytes", "\xe2\x82\xac", "\xe2\x82\xac"},
                             {"FourBytes", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
                             {"LastCharacter", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
                             {"BeyondTheLast", "\xf4\x90\x80\x80", "????"},
                             {"Surrogate", "\xed\xa0\x80", "???"},
                             {"BeforeSurrogates", "\xed\x9f\xbf", "\xed\x9f\xbf"},
                             {"OverlongSlash", "\xc0\xaf", "??"},
                             {"OverlongThree", "\xe0\x9f\xbf", "???"},
                             {"OverlongFour", "\xf0\x8f\xbf\xbf", "????"},
                             {"LoneContinuation", "a\x80z", "a?z"},
                             {"CutOff", "a\xe2\x82", "a??"},
                             {"CutOffByAscii", "\xe2\x82z\xc3z", "??z?z"},
                             {"NoByteOfUtf8", "\xfe\xff\xf8", "???"},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(ValidUtf8Limit, CutsBetweenCharacters) {
  EXPECT_EQ(valid_utf8("abc\xe2\x82\xac", 6), "abc\xe2\x82\xac");
  EXPECT_EQ(valid_utf8("abc\xe2\x82\xac", 5), "abc");
  EXPECT_EQ(valid_utf8("abc\xff", 3), "abc");
  EXPECT_EQ(valid_utf8("abc", 0), "");
}

}  // namespace
}  // namespace podqos::nri
