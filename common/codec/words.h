#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace podqos::codec {

/// A word of a file format and the enumerator it stands for.
template <class T>
struct Word {
  /// Its spelling; part of the file format.
  std::string_view text;
  T value;
};

/// The word for `value`; the table must have every enumerator.
template <class Table, class T>
[[nodiscard]] std::string_view word_for(const Table& table, T value) {
  const auto* const row = std::ranges::find_if(
      table, [value](const auto& candidate) { return candidate.value == value; });
  return row == table.end() ? std::string_view{} : row->text;
}

}  // namespace podqos::codec
