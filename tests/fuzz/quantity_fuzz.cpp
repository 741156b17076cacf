#include <cstdint>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/kubernetes/quantity.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::core::Quantity;
using podqos::fuzz::require;

/// Away from the ends of int64, where results are held.
bool is_inside(std::int64_t value) {
  return value > podqos::kInt64Min + 1 && value < podqos::kInt64Max - 1;
}

/// Rounded away from zero: at least the quantity, and by less than one step.
void check_rounding(const Quantity& quantity, std::int64_t rounded,
                    Quantity (*make)(std::int64_t)) {
  if (!is_inside(rounded)) return;
  const int sign = quantity.sign();
  require((rounded > 0) - (rounded < 0) == sign);
  if (sign > 0) require(make(rounded) >= quantity && make(rounded - 1) < quantity);
  if (sign < 0) require(make(rounded) <= quantity && make(rounded + 1) > quantity);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(bytes, size);
  const auto quantity = Quantity::parse(text);
  if (!quantity) {
    require(quantity.error().code == podqos::ErrorCode::kInvalidArgument);
    return 0;
  }
  require(size <= podqos::core::kMaxQuantityLength);
  require(Quantity::parse(quantity->format_decimal()) == *quantity);
  require(quantity->is_zero() == (quantity->sign() == 0));
  require(*quantity + Quantity{} == *quantity);
  check_rounding(*quantity, quantity->value(), Quantity::from_units);
  check_rounding(*quantity, quantity->milli_value(), Quantity::from_milli);
  if (is_inside(quantity->milli_value()))
    require(quantity->rounded_to_milli() == Quantity::from_milli(quantity->milli_value()));
  const std::string negated =
      text.starts_with('-') ? std::string{text.substr(1)} : podqos::cat("-", text);
  if (const auto opposite = Quantity::parse(negated); opposite && !text.starts_with('+'))
    require(opposite->sign() == -quantity->sign());
  return 0;
}
