#include "ctl/cli/since.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/base/utc_time.h"

namespace podqos::ctl {

namespace {

constexpr std::int64_t kMillis = 1000;

std::tm local_time(UnixMillis time) {
  const std::time_t seconds = time.value() / kMillis;
  std::tm parts{};
  static_cast<void>(::localtime_r(&seconds, &parts));
  return parts;
}

UnixMillis time_of(std::tm parts) {
  parts.tm_isdst = -1;
  return UnixMillis{std::mktime(&parts) * kMillis};
}

/// "10m" in milliseconds.
std::optional<UnixMillis> parse_span(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> kUnits{
      {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86'400}, {"w", 604'800}}};
  constexpr std::int64_t kMost = 1'000'000'000;  // of a unit: no overflow
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const auto number = parse_int(text.substr(0, digits));
  for (const auto& [unit, seconds] : kUnits) {
    if (number && *number <= kMost && text.substr(digits) == unit)
      return UnixMillis{*number * seconds * kMillis};
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnixMillis> parse_since(const std::string& text, UnixMillis now) {
  std::string_view span = text;
  if (span.ends_with(" ago")) span.remove_suffix(std::string_view{" ago"}.size());
  if (span.starts_with('-')) span.remove_prefix(1);
  if (const auto before = parse_span(span)) return now - *before;
  if (const auto utc = parse_utc(text)) return utc;
  if (text.starts_with('@')) {
    const auto seconds = parse_int(std::string_view{text}.substr(1));
    return seconds ? std::optional{UnixMillis{mul_div(*seconds, kMillis, 1)}} : std::nullopt;
  }
  std::tm midnight = local_time(now);
  midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
  if (text == "today") return time_of(midnight);
  if (text == "yesterday") {
    --midnight.tm_mday;
    return time_of(midnight);
  }
  for (const char* const form : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                 "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"}) {
    std::tm parts = midnight;
    const char* const end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return time_of(parts);
  }
  return std::nullopt;
}

std::string format_local(UnixMillis time) {
  const std::tm parts = local_time(time);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%b %d %H:%M:%S", &parts);
  return {text.data(), size};
}

}  // namespace podqos::ctl
