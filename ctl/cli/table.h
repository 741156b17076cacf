#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"

namespace podqos::ctl {

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

/// Where text for people is printed.
struct Screen {
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  ColourMode colour = ColourMode::kPlain;
  std::size_t width = kUnlimited;  ///< in columns

  /// Whether there is room for what 80 columns have none for.
  [[nodiscard]] bool is_wide() const { return width >= 120; }
};

/// The columns of the terminal that is standard output, or before a pager, which reads a pipe,
/// standard error; else of $COLUMNS, which watch(1) sets; else 80 for a terminal that does not
/// tell, and Screen::kUnlimited for a file or pipe.
/// @note ioctl_tty(2) TIOCGWINSZ
[[nodiscard]] std::size_t screen_width();

/// `text` in at most `width` columns, of which the last is "…" if anything was cut off.
[[nodiscard]] std::string shorten(std::string text, std::size_t width);

/// The same with "…" before its last part, which begins with "/"; within that if it would take more
/// than two thirds, and in the middle if it takes less than a third.
[[nodiscard]] std::string shorten_middle(const std::string& text, std::size_t columns);

/// A sentence in which engines' ids have their first 12 digits, and of longer paths than 40 columns
/// only the last names are left, behind "…".
[[nodiscard]] std::string abbreviate(std::string_view sentence);
/// The sentence, abbreviated where the screen is narrow.
[[nodiscard]] std::string fitted(std::string_view sentence, const Screen& screen);

/// A line that begins with `word` in red, folded to the screen, and abbreviated where that is
/// narrow.
[[nodiscard]] std::string format_notice(std::string_view word, std::string_view text,
                                        const Screen& screen);

/// A column that may be cut off.
struct Cut {
  std::size_t column;
  std::size_t least;           ///< width that it keeps
  bool in_the_middle = false;  ///< by shorten_middle()
};

/// A line for a changed value with what it is for at its end:
/// "/podqos/kubepods/cpu.weight: 20 → 39 (root)" for "root: /podqos/kubepods/cpu.weight: 20 → 39";
/// all other text as it is.
[[nodiscard]] std::string format_change(const std::string& change, const Screen& screen);

/// Formats rows with aligned columns, two blanks apart, and no trailing blanks. A UTF-8 character
/// counts as one column. Rows may have different numbers of cells. What is too wide for the screen
/// is cut off, in each column of `cuts` as far as needed, then the last column is folded between
/// words, and columns that do not fit go to a further line.
[[nodiscard]] std::string format_table(const std::vector<Row>& rows, const Screen& screen,
                                       std::span<const Cut> cuts = {});

/// The texts with `separator` between them.
[[nodiscard]] std::string join(const std::vector<std::string>& texts, std::string_view separator);

/// Breaks a line between words, and a word that is longer than a line, into lines of at most
/// `width` columns, each with a newline. All but the first begin with `indent`. Bytes are counted
/// as columns.
[[nodiscard]] std::string fold(std::string line, std::string_view indent, std::size_t width);

}  // namespace podqos::ctl
