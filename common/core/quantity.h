#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::core {

/// An exact Kubernetes resource quantity: a whole number of billionths ("nano"), no floating point.
///
/// Range about ±1.7e29 units; parse() and + hold results at the ends instead of wrapping.
/// @note Kubernetes: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go.
class Quantity {
 public:
  __extension__ using Nano = __int128;

  constexpr Quantity() = default;
  /// `units` whole units (cores, bytes).
  static Quantity from_units(std::int64_t units);
  /// `milli` thousandths.
  static Quantity from_milli(std::int64_t milli);

  /// Parses Kubernetes' own format: [sign] digits [. digits] suffix; digits may be missing ("." is
  /// 0); suffix one of n u m "" k M G T P E Ki Mi Gi Ti Pi Ei or e/E with a signed exponent. Below
  /// a billionth it rounds away from zero. Binary suffixes are held at 2^63-1 as upstream does.
  /// @return kInvalidArgument, naming the text, for anything else, for text longer than
  ///         kMaxQuantityLength and for an exponent outside ±kMaxQuantityExponent.
  static Result<Quantity> parse(std::string_view text);

  /// Whole units, rounded away from zero; saturates at the ends of int64 (upstream wraps).
  [[nodiscard]] std::int64_t value() const;
  /// Thousandths, rounded away from zero; saturates at the ends of int64 (upstream wraps).
  [[nodiscard]] std::int64_t milli_value() const;
  /// -1, 0 or 1.
  [[nodiscard]] int sign() const;
  /// The same quantity rounded up (away from zero) to a whole number of thousandths.
  [[nodiscard]] Quantity rounded_to_milli() const;
  /// Plain decimal notation without exponent or suffix: "1.5", "100", "-0.001".
  [[nodiscard]] std::string format_decimal() const;

  [[nodiscard]] constexpr bool is_zero() const { return nano_ == 0; }

  friend Quantity operator+(Quantity a, Quantity b);
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  constexpr explicit Quantity(Nano nano) : nano_(nano) {}
  Nano nano_ = 0;
};

constexpr std::size_t kMaxQuantityLength = 64;
constexpr int kMaxQuantityExponent = 64;

}  // namespace podqos::core
