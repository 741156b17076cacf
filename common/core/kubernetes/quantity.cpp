#include "common/core/kubernetes/quantity.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>

#include "common/base/text.h"
#include "common/base/units.h"

namespace podqos::core {

namespace {

using Nano = Quantity::Nano;

constexpr Nano kNanoPerUnit = Quantity::kNanoPerUnit;
constexpr Nano kNanoMax = std::numeric_limits<Nano>::max();
constexpr Nano kNanoMin = std::numeric_limits<Nano>::min();
constexpr int kNanoDigits = 9;
/// Kubernetes caps quantities with a binary suffix at 2^63-1 units.
constexpr Nano kBinaryMax = Nano{kInt64Max} * kNanoPerUnit;

/// Factor of a suffix: 10^decimal * 2^binary.
struct Scale {
  int decimal = 0;
  int binary = 0;
};

/// Parts of a quantity's text; `whole` and `fraction` have digits only.
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view suffix;
};

std::string_view read_digits(std::string_view& text) {
  const auto length = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

Parts split(std::string_view text) {
  Parts parts;
  if (text.starts_with('+') || text.starts_with('-')) {
    parts.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  parts.whole = read_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = read_digits(text);
  }
  parts.suffix = text;
  return parts;
}

/// 1 for the first of the letters, 0 for none of them.
int place_of(char letter, std::string_view letters) {
  return static_cast<int>(letters.find(letter) + 1);
}

/// Returns nullopt for an unknown suffix or an exponent out of range.
std::optional<Scale> parse_suffix(std::string_view suffix) {
  if (suffix.empty()) return Scale{};
  const char letter = suffix.front();
  suffix.remove_prefix(1);
  if (suffix.empty()) {
    const int power = place_of(letter, "kMGTPE") - place_of(letter, "mun");
    return power == 0 ? std::nullopt : std::optional{Scale{.decimal = 3 * power}};
  }
  if (suffix == "i") {
    const int power = place_of(letter, "KMGTPE");
    return power == 0 ? std::nullopt : std::optional{Scale{.binary = 10 * power}};
  }
  if (letter != 'e' && letter != 'E') return std::nullopt;
  if (suffix.starts_with('+')) {
    suffix.remove_prefix(1);
    if (suffix.starts_with('-')) return std::nullopt;
  }
  const auto exponent = parse_int(suffix);
  if (!exponent || *exponent > kMaxQuantityExponent || *exponent < -kMaxQuantityExponent)
    return std::nullopt;
  return Scale{.decimal = static_cast<int>(*exponent)};
}

/// number * 10 + digit, saturating.
Nano append_digit(Nano number, char digit) {
  const bool overflows = __builtin_mul_overflow(number, Nano{10}, &number) ||
                         __builtin_add_overflow(number, Nano{digit - '0'}, &number);
  return overflows ? kNanoMax : number;
}

/// whole.fraction * 10^decimal in billionths, rounded up.
Nano scale_decimal(const Parts& parts, int decimal) {
  const std::string digits = cat(parts.whole, parts.fraction);
  // Number of digits before the point after conversion to billionths.
  const auto signed_kept = std::ssize(parts.whole) + decimal + kNanoDigits;
  const auto kept = static_cast<std::size_t>(std::max<std::ptrdiff_t>(signed_kept, 0));
  Nano number = 0;
  for (std::size_t i = 0; i < kept; ++i)
    number = append_digit(number, i < digits.size() ? digits[i] : '0');
  const bool inexact = digits.find_first_not_of('0', kept) != std::string::npos;
  return inexact && number != kNanoMax ? number + 1 : number;
}

/// whole.fraction * 2^binary in billionths, rounded up, at most 2^63-1 units.
Nano scale_binary(const Parts& parts, int binary) {
  const Nano multiplier = kNanoPerUnit << static_cast<unsigned>(binary);
  Nano whole = 0;
  for (const char digit : parts.whole)
    whole = append_digit(whole, digit);
  if (whole > kBinaryMax / multiplier) return kBinaryMax;
  // From the last digit to the first: repeated floor division gives the floor of the exact
  // quotient, so it suffices to remember whether there was a remainder.
  Nano fraction = 0;
  bool inexact = false;
  for (auto i = parts.fraction.size(); i > 0; --i) {
    fraction += multiplier * (parts.fraction[i - 1] - '0');
    inexact = inexact || fraction % 10 != 0;
    fraction /= 10;
  }
  return std::min((whole * multiplier) + fraction + Nano{inexact ? 1 : 0}, kBinaryMax);
}

/// number / divisor, rounded away from zero.
Nano divide_outwards(Nano number, Nano divisor) {
  const Nano rest = number % divisor;
  return (number / divisor) + int{rest > 0} - int{rest < 0};
}

std::int64_t saturate(Nano number) {
  return static_cast<std::int64_t>(std::clamp<Nano>(number, kInt64Min, kInt64Max));
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  if (text.empty() || text.size() > kMaxQuantityLength)
    return fail(ErrorCode::kInvalidArgument,
                cat("quantity \"", printable(text), "\" has ", text.size(), " characters, 1 to ",
                    kMaxQuantityLength, " are allowed"));
  const Parts parts = split(text);
  const auto scale = parse_suffix(parts.suffix);
  if (!scale)
    return fail(
        ErrorCode::kInvalidArgument,
        cat("\"", printable(text),
            "\" is not a quantity: expected a decimal number, optionally with one of n u m k M G T "
            "P E Ki Mi Gi Ti Pi Ei or an exponent within ±",
            kMaxQuantityExponent));
  const Nano size = scale->binary != 0 ? scale_binary(parts, scale->binary)
                                       : scale_decimal(parts, scale->decimal);
  return Quantity{parts.negative ? -size : size};
}

std::int64_t Quantity::value() const {
  return saturate(divide_outwards(nano_, kNanoPerUnit));
}

std::int64_t Quantity::milli_value() const {
  return saturate(divide_outwards(nano_, kNanoPerMilli));
}

Quantity Quantity::rounded_to_milli() const {
  Nano rounded = divide_outwards(nano_, kNanoPerMilli);
  // Only values at the ends of the range overflow; they are returned unchanged.
  return __builtin_mul_overflow(rounded, kNanoPerMilli, &rounded) ? *this : Quantity{rounded};
}

std::string Quantity::format_decimal() const {
  // Digit by digit, as the library formats no 128 bits.
  std::string whole;
  for (Nano rest = nano_; rest != 0 || whole.size() <= kNanoDigits; rest /= 10)
    whole.insert(0, 1, static_cast<char>('0' + std::abs(static_cast<int>(rest % 10))));
  std::string fraction = whole.substr(whole.size() - kNanoDigits);
  whole.resize(whole.size() - kNanoDigits);
  fraction.resize(fraction.find_last_not_of('0') + 1);
  return cat(nano_ < 0 ? "-" : "", whole, fraction.empty() ? "" : ".", fraction);
}

Quantity operator+(Quantity a, Quantity b) {
  Nano sum = 0;
  if (__builtin_add_overflow(a.nano_, b.nano_, &sum)) sum = a.nano_ > 0 ? kNanoMax : kNanoMin;
  return Quantity{sum};
}

}  // namespace podqos::core
