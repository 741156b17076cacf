#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::core {

/// An exact Kubernetes resource quantity: a whole number of billionths ("nano"), no floating point.
///
/// The range is about ±1.7e29 units; parse() and + saturate at its ends.
/// @note Kubernetes: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go.
class Quantity {
 public:
  __extension__ using Nano = __int128;
  static constexpr Nano kNanoPerUnit = 1'000'000'000;
  static constexpr Nano kNanoPerMilli = 1'000'000;

  constexpr Quantity() = default;
  /// A quantity of whole units (cores, bytes).
  static constexpr Quantity from_units(std::int64_t units) {
    return Quantity{units * kNanoPerUnit};
  }
  /// A quantity of thousandths (millicpu).
  static constexpr Quantity from_milli(std::int64_t milli) {
    return Quantity{milli * kNanoPerMilli};
  }

  /// Parses Kubernetes' format: [sign] digits [. digits] suffix. Digits may be missing ("." is 0).
  /// The suffix is one of n u m "" k M G T P E Ki Mi Gi Ti Pi Ei, or e/E with a signed exponent.
  /// Digits below a billionth are rounded away from zero. Values with a binary suffix saturate at
  /// 2^63-1 units, as in Kubernetes.
  /// @return kInvalidArgument with the text for any other format, for text longer than
  ///         kMaxQuantityLength and for an exponent outside ±kMaxQuantityExponent
  static Result<Quantity> parse(std::string_view text);

  /// Whole units, rounded away from zero. Saturates at int64, where Kubernetes wraps.
  [[nodiscard]] std::int64_t value() const;
  /// Thousandths, rounded away from zero. Saturates at int64, where Kubernetes wraps.
  [[nodiscard]] std::int64_t milli_value() const;
  /// Returns -1, 0 or 1.
  [[nodiscard]] constexpr int sign() const { return int{nano_ > 0} - int{nano_ < 0}; }
  /// Rounds away from zero to a whole number of thousandths.
  [[nodiscard]] Quantity rounded_to_milli() const;
  /// Plain decimal notation without exponent or suffix: "1.5", "100", "-0.001".
  [[nodiscard]] std::string format_decimal() const;

  [[nodiscard]] constexpr bool is_zero() const { return nano_ == 0; }
  /// Whether this is a whole number of units.
  [[nodiscard]] constexpr bool is_whole() const { return nano_ % kNanoPerUnit == 0; }

  /// Exact sum, saturating.
  friend Quantity operator+(Quantity a, Quantity b);
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  constexpr explicit Quantity(Nano nano) : nano_(nano) {}
  Nano nano_ = 0;
};

constexpr std::size_t kMaxQuantityLength = 64;  ///< characters; Kubernetes has no limit
constexpr int kMaxQuantityExponent = 64;        ///< of e/E; beyond it parsing would be slow

}  // namespace podqos::core
