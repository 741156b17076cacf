#include "nri/events.h"

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <string_view>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

/// Major and minor version of a runtime.
struct Version {
  std::int64_t major = 0;
  std::int64_t minor = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};

/// Removes the digits at the front of `text`; nullopt if there are none, or too many for int64.
std::optional<std::int64_t> read_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_int(text.substr(0, end));
  text.remove_prefix(end);
  return number;
}

/// Parses the front of "v2.2.1", "1.34.0-dev" or "2.2.0~ds1"; nullopt for other text.
std::optional<Version> parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto major = read_number(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = read_number(text);
  if (!minor) return std::nullopt;
  return Version{.major = *major, .minor = *minor};
}

/// A range of versions with NRI 0.10 or 0.11, by ConfigureRequest.runtime_name.
struct Runtime {
  std::string_view name;
  Version first;
  Version last;
};
constexpr std::array kWithoutNriVersion = {
    Runtime{.name = "containerd", .first = {2, 2}, .last = {2, 2}},
    // 1.33 has a snapshot between 0.9 and 0.10 with these two events, but without validation.
    Runtime{.name = "cri-o", .first = {1, 33}, .last = {1, 36}},
};

}  // namespace

EventMask events_known_to(const ConfigureRequest& runtime) {
  // With any value: some builds report "0.0.0-unknown".
  if (!runtime.nri_version.empty()) return EventMask::kWithResize;
  const auto version = parse_version(runtime.runtime_version);
  if (!version) return EventMask::kOldest;
  const bool known = std::ranges::any_of(kWithoutNriVersion, [&](const Runtime& candidate) {
    return candidate.name == runtime.runtime_name && *version >= candidate.first &&
           *version <= candidate.last;
  });
  return known ? EventMask::kWithResize : EventMask::kOldest;
}

}  // namespace podqos::nri
