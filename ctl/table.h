#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"

namespace podqos::ctl {

/// A number of bytes in the largest binary unit, with at most one decimal and "~" in front if
/// digits were cut: "3Gi", "1.5Gi", "~1.1Gi", "64Mi", "0", "1023".
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Colours and attributes of ECMA-48 (SGR).
enum class Colour : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };

/// One field of a table; the colour does not count for its width.
struct Cell {
  std::string text;
  Colour colour = Colour::kNone;
};

/// A cell without naming its members.
[[nodiscard]] inline Cell cell(std::string text, Colour colour = Colour::kNone) {
  return {.text = std::move(text), .colour = colour};
}

/// "1 pod", "2 pods".
[[nodiscard]] std::string format_count(std::int64_t number, std::string_view noun);

using Row = std::vector<Cell>;
/// A row of column names.
[[nodiscard]] Row heading(std::initializer_list<std::string_view> names);

/// Whether output has escape sequences.
enum class ColourMode : std::uint8_t { kPlain, kColoured };

/// The mode for the value of --color: "auto", "always" or "never". auto means colours if standard
/// output is a terminal, NO_COLOR is unset (https://no-color.org) and TERM is not "dumb".
[[nodiscard]] ColourMode colour_mode(std::string_view word);
/// The cell's text, in colour if `mode` says so.
[[nodiscard]] std::string paint(const Cell& cell, ColourMode mode);

/// Formats rows with aligned columns, two blanks apart, and no trailing blanks. A UTF-8 character
/// counts as one column. Rows may have different numbers of cells.
[[nodiscard]] std::string format_table(const std::vector<Row>& rows, ColourMode mode);

/// The texts with `separator` between them.
[[nodiscard]] std::string join(const std::vector<std::string>& texts, std::string_view separator);

/// Breaks a line between words into lines of at most `width` columns, each with a newline. All but
/// the first begin with `indent`; a longer word is not broken. Bytes are counted as columns.
[[nodiscard]] std::string fold(std::string line, std::string_view indent, std::size_t width);

}  // namespace podqos::ctl
