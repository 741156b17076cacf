#include "common/core/kubernetes/quantity.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/units.h"

namespace podqos::core {
namespace {

Quantity quantity(std::string_view text) {
  const auto parsed = Quantity::parse(text);
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message;
    return {};
  }
  return *parsed;
}

struct FormCase {
  const char* text;
  const char* decimal;
};

TEST(Parse, TakesEveryFormOfKubernetes) {
  for (const auto& [text, decimal] : {
           FormCase{"0", "0"},
           FormCase{"+5", "5"},
           FormCase{"-5", "-5"},
           FormCase{"00.250", "0.25"},
           FormCase{".5", "0.5"},
           FormCase{"5.", "5"},
           FormCase{"1n", "0.000000001"},
           FormCase{"1u", "0.000001"},
           FormCase{"1m", "0.001"},
           FormCase{"1k", "1000"},
           FormCase{"1.5M", "1500000"},
           FormCase{"1E", "1000000000000000000"},
           FormCase{"1E3", "1000"},
           FormCase{"1e+3", "1000"},
           FormCase{"1500e-3", "1.5"},
           FormCase{"1e00", "1"},
           FormCase{"1Ki", "1024"},
           FormCase{"0.5Ki", "512"},
           FormCase{"-1.5Gi", "-1610612736"},
           FormCase{"1Ei", "1152921504606846976"},
           // A digit that is missing on both sides counts as zero.
           FormCase{".", "0"},
           FormCase{"-", "0"},
           FormCase{"m", "0"},
           FormCase{"Ki", "0"},
           FormCase{"e3", "0"},
           FormCase{"E", "0"},
       }) {
    EXPECT_EQ(quantity(text).format_decimal(), decimal) << text;
  }
}

TEST(Parse, RoundsAwayFromZeroBelowABillionth) {
  for (const auto& [text, decimal] : {
           FormCase{"0.1n", "0.000000001"},
           FormCase{"1.0000000001", "1.000000001"},
           FormCase{"-0.1n", "-0.000000001"},
           FormCase{"1e-64", "0.000000001"},
           FormCase{"9e-64", "0.000000001"},
           FormCase{"0.0000000000001Ki", "0.000000001"},
           FormCase{"1.0000000000", "1"},
       }) {
    EXPECT_EQ(quantity(text).format_decimal(), decimal) << text;
  }
}

TEST(Parse, RefusesWhatKubernetesRefuses) {
  for (const auto* text :
       {"",      " ",   " 1",   "1 ",  "K",   "1K",    "1mi",  "1Zi", "1e",  "1e+", "1e-",
        "1e+-3", "1m3", "1 Gi", "--1", "+-1", "1.2.3", "0x10", "1,5", "inf", "nan", "1e3m"}) {
    const auto parsed = Quantity::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Parse, BoundsLengthAndExponent) {
  EXPECT_TRUE(Quantity::parse(std::string(64, '1')));
  EXPECT_FALSE(Quantity::parse(std::string(65, '1')));
  EXPECT_TRUE(Quantity::parse("1e64"));
  EXPECT_FALSE(Quantity::parse("1e65"));
  EXPECT_FALSE(Quantity::parse("1e-65"));
  EXPECT_FALSE(Quantity::parse("1e2147483648"));
  EXPECT_FALSE(Quantity::parse("1e99999999999999999999"));
}

TEST(Parse, NamesTheTextMadeFitForALog) {
  EXPECT_THAT(Quantity::parse("1\n2").error().message, testing::HasSubstr(R"("1\x0a2")"));
}

TEST(Parse, HoldsBinarySuffixesAtTheLargestInteger) {
  EXPECT_EQ(quantity("8Ei").format_decimal(), "9223372036854775807");
  EXPECT_EQ(quantity("-9.5Ei").format_decimal(), "-9223372036854775807");
  EXPECT_EQ(quantity("99999999999999999999999999999999999999999999999999Ki").value(), kInt64Max);
}

struct IntegerCase {
  const char* text;
  std::int64_t value;
  std::int64_t milli;
};

TEST(Value, RoundsAwayFromZeroAndSaturates) {
  for (const auto& [text, value, milli] : {
           IntegerCase{"1500m", 2, 1500},
           IntegerCase{"-1500m", -2, -1500},
           IntegerCase{"100m", 1, 100},
           IntegerCase{"1n", 1, 1},
           IntegerCase{"-1n", -1, -1},
           IntegerCase{"9223372036854775807", kInt64Max, kInt64Max},
           IntegerCase{"9223372036854775808", kInt64Max, kInt64Max},
           IntegerCase{"-9223372036854775808", kInt64Min, kInt64Min},
           IntegerCase{"1e64", kInt64Max, kInt64Max},
           IntegerCase{"-1e64", kInt64Min, kInt64Min},
           IntegerCase{"9223372036854775.807", 9223372036854776, kInt64Max},
           IntegerCase{"9223372036854775.806", 9223372036854776, 9223372036854775806},
       }) {
    EXPECT_EQ(quantity(text).value(), value) << text;
    EXPECT_EQ(quantity(text).milli_value(), milli) << text;
  }
}

TEST(RoundedToMilli, RoundsAwayFromZero) {
  EXPECT_EQ(quantity("100u").rounded_to_milli(), quantity("1m"));
  EXPECT_EQ(quantity("-1.0001").rounded_to_milli(), quantity("-1001m"));
  EXPECT_EQ(quantity("2").rounded_to_milli(), quantity("2"));
  EXPECT_EQ(quantity("1e64").rounded_to_milli(), quantity("1e64"));
}

TEST(Compare, IsExactAndFreeOfNotation) {
  EXPECT_EQ(quantity("1Gi"), quantity("1073741824"));
  EXPECT_EQ(quantity("0.5"), quantity("500m"));
  EXPECT_LT(quantity("0.1"), quantity("100.0001m"));
  EXPECT_EQ(Quantity::from_units(-3), quantity("-3"));
  EXPECT_EQ(Quantity::from_milli(250), quantity("250m"));
}

TEST(Add, IsExactAndSaturates) {
  EXPECT_EQ((quantity("0.4m") + quantity("0.4m")).milli_value(), 1);
  EXPECT_EQ(quantity("0.1") + quantity("0.2"), quantity("0.3"));
  EXPECT_EQ(quantity("1e64") + quantity("1"), quantity("1e64"));
  EXPECT_EQ(quantity("1n") + quantity("1e64"), quantity("1e64"));
  EXPECT_EQ(quantity("-1e64") + quantity("-1") + quantity("-1"),
            quantity("-1e64") + quantity("-5"));
}

TEST(FormatDecimal, IsReadBackAtTheEndsOfTheRange) {
  EXPECT_EQ(quantity("1e64").format_decimal(), "170141183460469231731687303715.884105727");
  EXPECT_EQ(quantity("170141183460469231731687303715.884105727"), quantity("1e64"));
}

}  // namespace
}  // namespace podqos::core
