#include <algorithm>
#include <cstddef>
#include <numeric>

#include "common/base/text.h"
#include "common/codec/settings_json.h"

namespace podqos::codec {

namespace {

// Longer names are not typing mistakes, and the cost is quadratic.
constexpr std::size_t kMaxLength = 64;

bool same_letter(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return lower(a) == lower(b);
}

/// Levenshtein distance, ignoring letter case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row.front();
    row.front() = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (same_letter(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Whether `part` is a likely abbreviation of `whole`: a piece of it, or most of it with letters
/// left out, as cpuQuota of cpuCFSQuota.
bool stands_for(std::string_view part, std::string_view whole) {
  constexpr std::size_t kLeast = 3;
  if (part.size() < kLeast || part.size() > whole.size()) return false;
  if (!std::ranges::search(whole, part, same_letter).empty()) return true;
  std::string_view rest = part;
  for (const char c : whole)
    if (!rest.empty() && same_letter(rest.front(), c)) rest.remove_prefix(1);
  return rest.empty() && part.size() * 2 > whole.size();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > kMaxLength) return {};
  std::string_view nearest;
  // The most mistakes in typing, and one more. In three letters it is one: with two, "foo" would be
  // near "log".
  std::size_t least = name.size() <= 3 ? 2 : std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  if (!nearest.empty()) return std::string{nearest};
  for (const std::string_view candidate : known)
    if (stands_for(name, candidate) && (nearest.empty() || candidate.size() < nearest.size()))
      nearest = candidate;
  return std::string{nearest};
}

std::string hint_for(std::string_view name, const std::vector<std::string_view>& known,
                     std::string_view prefix) {
  const std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) return cat("; did you mean ", prefix, nearest, "?");
  std::string hint;
  for (const std::string_view candidate : known)
    hint += cat(hint.empty() ? "; expected one of " : ", ", candidate);
  return hint;
}

}  // namespace podqos::codec
