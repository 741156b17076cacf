#include <algorithm>
#include <map>
#include <string_view>

#include <gtest/gtest.h>

#include "common/base/units.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using core::Quantity;
using nlohmann::json;

/// Rows flagged `json` hold a JSON token, the others the text of a quantity.
Result<Quantity> parse_row(const json& row) {
  const auto text = row.at("in").get<std::string>();
  if (!row.value("json", false)) return Quantity::parse(text);
  const auto pod = parse_pod_spec(cat(R"({"overhead":{"cpu":)", text, "}}"));
  if (!pod) return fail(pod.error());
  return pod->overhead.at("cpu");
}

std::string without_trailing_zeros(std::string decimal) {
  if (!decimal.contains('.')) return decimal;
  decimal.erase(decimal.find_last_not_of('0') + 1);
  if (decimal.ends_with('.')) decimal.pop_back();
  return decimal;
}

/// Is |whole part of `decimal` shifted by `shift` places| certain to stay within 64 bits? Text
/// only, so that the expectation does not rest on the arithmetic under test. Numbers with 19 digits
/// are compared with the largest one.
bool fits_int64(std::string_view decimal, std::size_t shift) {
  if (decimal.starts_with('-')) decimal.remove_prefix(1);
  const auto point = decimal.find('.');
  std::string whole{decimal.substr(0, point)};
  std::string fraction{point == std::string_view::npos ? "" : decimal.substr(point + 1)};
  fraction.resize(std::max(fraction.size(), shift), '0');
  whole += fraction.substr(0, shift);
  whole.erase(0, whole.find_first_not_of('0'));
  constexpr std::string_view kMax = "9223372036854775807";
  return whole.size() < kMax.size() || (whole.size() == kMax.size() && whole <= kMax);
}

/// Negative fractions for which upstream's arbitrary-precision path adds one after truncating,
/// which leads towards or past zero. podqos rounds away from zero, as upstream does elsewhere.
struct Rounded {
  std::int64_t value;
  std::int64_t milli;
};
const std::map<std::string, Rounded, std::less<>> kUpstreamRoundsWrong{
    {"-5.084830Gi", {-5459794639, -5459794638930}},
    {"-7.01Ki", {-7179, -7178240}},
    {"-64.4Mi", {-67528295, -67528294400}},
    {"-0.5n", {-1, -1}},
    {"-26.3608222n", {-1, -1}},
};

void expect_integers(Quantity quantity, const json& row) {
  const auto decimal = row.at("decimal").get<std::string>();
  const auto saturated = decimal.starts_with('-') ? kInt64Min : kInt64Max;
  const auto wrong = kUpstreamRoundsWrong.find(row.at("in").get<std::string>());
  if (wrong != kUpstreamRoundsWrong.end()) {
    EXPECT_EQ(quantity.value(), wrong->second.value);
    EXPECT_EQ(quantity.milli_value(), wrong->second.milli);
    return;
  }
  EXPECT_EQ(quantity.value(),
            fits_int64(decimal, 0) ? row.at("value").get<std::int64_t>() : saturated);
  EXPECT_EQ(quantity.milli_value(),
            fits_int64(decimal, 3) ? row.at("milliValue").get<std::int64_t>() : saturated);
}

TEST(QuantityVectors, EveryRowIsKubernetesOrSaturates) {
  const auto rows = vectors::read_rows("quantity");
  ASSERT_EQ(rows.size(), 400U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.dump());
    const auto quantity = parse_row(row);
    ASSERT_EQ(quantity.has_value(), row.at("ok").get<bool>());
    if (!quantity) continue;
    EXPECT_EQ(quantity->sign(), row.at("sign").get<int>());
    expect_integers(*quantity, row);
    const auto decimal = row.at("decimal").get<std::string>();
    // Beyond 10^29 units a quantity stays at the end of its own range.
    if (decimal.size() < 30) {
      EXPECT_EQ(quantity->format_decimal(), without_trailing_zeros(decimal));
    }
    const auto canonical = Quantity::parse(row.at("canonical").get<std::string>());
    ASSERT_TRUE(canonical);
    EXPECT_EQ(*canonical, *quantity);
  }
}

}  // namespace
}  // namespace podqos::codec
