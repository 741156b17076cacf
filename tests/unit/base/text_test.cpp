#include "common/base/text.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/units.h"

namespace podqos {
namespace {

TEST(Cat, JoinsTextAndIntegers) {
  EXPECT_EQ(cat("pod ", std::string{"a"}, ": ", -3), "pod a: -3");
}

TEST(ParseInt, TakesWholeDecimalNumbersOnly) {
  EXPECT_EQ(parse_int("-42"), -42);
  EXPECT_EQ(parse_int("9223372036854775807"), kInt64Max);
  for (const auto* bad : {"", "-", "1x", " 1", "9223372036854775808", "0x1"})
    EXPECT_EQ(parse_int(bad), std::nullopt) << bad;
}

TEST(PlainLength, EndsAtTheFirstByteThatIsNotPlain) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyz";
  EXPECT_EQ(plain_length(plain), plain.size());
  EXPECT_EQ(plain_length(""), 0U);
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_plain = byte >= 0x20 && byte <= 0x7e && byte != '"' && byte != '\\';
    for (std::size_t at = 0; at < plain.size(); ++at) {
      std::string text = plain;
      text[at] = static_cast<char>(byte);
      EXPECT_EQ(plain_length(text), is_plain ? plain.size() : at) << byte << " at " << at;
    }
  }
}

TEST(Printable, EscapesWhatWouldBreakALogLineAndCutsAtTheLimit) {
  EXPECT_EQ(printable("a\nb\"\\\x7f"), R"(a\x0ab\"\\\x7f)");
  EXPECT_EQ(printable("abcdef", 3), "abc…");
}

TEST(Saturating, HoldsAtTheEnds) {
  EXPECT_EQ(saturating_add(kInt64Max, 1), kInt64Max);
  EXPECT_EQ(saturating_add(kInt64Min, -1), kInt64Min);
  EXPECT_EQ(saturating_add(2, 3), 5);
  EXPECT_EQ(saturating_sub(kInt64Min, 1), kInt64Min);
  EXPECT_EQ(saturating_sub(0, kInt64Min), kInt64Max);
}

TEST(MulDiv, SurvivesAProductBeyond64Bits) {
  EXPECT_EQ(mul_div(kInt64Max, 100, 100), kInt64Max);
  EXPECT_EQ(mul_div(kInt64Max, 1000, 1), kInt64Max);
  EXPECT_EQ(mul_div(-7, 1, 2), -3);
}

TEST(Error, NamesContextWhatAndCause) {
  EXPECT_EQ(Error::from_errno(2, "open /x"),
            (Error{ErrorCode::kNotFound, "open /x: No such file or directory"}));
  EXPECT_EQ((Error{ErrorCode::kIo, "b"}.with_context("a").message), "a: b");
  EXPECT_EQ(format_error_code(ErrorCode::kInvalidArgument), "invalid-argument");
  EXPECT_EQ(format_error_code(ErrorCode::kIo), "io");
}

TEST(ExactAmount, KeepsEveryByteInTheLargestUnit) {
  EXPECT_EQ(exact_amount(Bytes{0}), "0");
  EXPECT_EQ(exact_amount(Bytes{1023}), "1023");
  EXPECT_EQ(exact_amount(Bytes{1024}), "1Ki");
  EXPECT_EQ(exact_amount(Bytes{209715200}), "200Mi");
  EXPECT_EQ(exact_amount(Bytes{209715201}), "209715201");
  EXPECT_EQ(exact_amount(Bytes{3LL << 40U}), "3Ti");
  EXPECT_EQ(exact_amount(Bytes{1LL << 60U}), "1Ei");
  EXPECT_EQ(exact_amount(Bytes{-1}), "unlimited");
}

TEST(RoundedAmount, TakesTheLargestUnit) {
  EXPECT_EQ(rounded_amount(Bytes{0}), "0");
  EXPECT_EQ(rounded_amount(Bytes{1023}), "1023");
  EXPECT_EQ(rounded_amount(Bytes{64LL << 20U}), "64Mi");
  EXPECT_EQ(rounded_amount(Bytes{3LL << 30U}), "3Gi");
  EXPECT_EQ(rounded_amount(Bytes{3LL << 29U}), "1.5Gi");
  EXPECT_EQ(rounded_amount(Bytes{(1LL << 30U) + (1LL << 27U)}), "~1.1Gi");
}

TEST(FormatAmount, RoundsBesideWhatIsLongToRead) {
  EXPECT_EQ(format_amount(Bytes{64LL << 20U}), "64Mi");
  EXPECT_EQ(format_amount(Bytes{1000000}), "1000000");
  EXPECT_EQ(format_amount(Bytes{23307364LL << 10U}), "~22.2Gi (23307364Ki)");
  EXPECT_EQ(format_amount(Bytes{209715201}), "~200Mi (209715201)");
  EXPECT_EQ(format_amount(Bytes{-1'000'000'000}), "unlimited");
}

TEST(FormatAmount, HasWholeCpusAndThousandths) {
  EXPECT_EQ(format_amount(MilliCpu{0}), "0");
  EXPECT_EQ(format_amount(MilliCpu{250}), "250m");
  EXPECT_EQ(format_amount(MilliCpu{2000}), "2");
  EXPECT_EQ(format_amount(MilliCpu{2001}), "2001m");
}

TEST(ReadUntil, TakesATextApart) {
  std::string_view rest = "a::b";
  for (const char* part : {"a", "", "b"})
    EXPECT_EQ(read_until(rest, ':'), part);
  EXPECT_EQ(rest, "");
}

TEST(PartsOf, LeavesOutEmptyOnes) {
  EXPECT_EQ(parts_of(",cpu,,memory,", ','), (std::vector<std::string>{"cpu", "memory"}));
  EXPECT_EQ(parts_of("", ','), std::vector<std::string>{});
}

TEST(WithoutNewline, TakesAllOfThemOffTheEnd) {
  EXPECT_EQ(without_newline("a\nb\n\n"), "a\nb");
}

}  // namespace
}  // namespace podqos
