#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/record.h"

// The state's file `rows`: a head, then one row for each pod. Rows are written in place. Each lies
// within a page, so that a process that is killed writes all of one or nothing.
namespace podqos::codec {

constexpr std::size_t kRowSize = sizeof(core::PodRow);  ///< of the head, too

/// The head of the file.
/// @param is_whole  false: records or rows have been lost, so that all must be compared
/// @param count  of the rows behind it, free ones included
[[nodiscard]] std::string format_rows_head(bool is_whole, std::size_t count);
/// One row; a free one has no uid.
[[nodiscard]] std::string format_row(const core::PodRow& row);

/// What a file `rows` holds.
struct Rows {
  bool is_whole = true;
  std::vector<core::PodRow> rows;  ///< by their places, free ones included
  friend bool operator==(const Rows&, const Rows&) = default;
};
/// @return nullopt if the bytes are not all of such a file, or one of another release
[[nodiscard]] std::optional<Rows> parse_rows(std::string_view bytes);

}  // namespace podqos::codec
