#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/cli/raw_terminal.h"
#include "ctl/cli/table.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {

/// A column behind the name.
struct TopColumn {
  std::string_view word;     ///< for --sort
  std::string_view heading;  ///< fewer than `width` columns: the one that sorts has a mark
  std::size_t width;
  int rank;  ///< those with a higher one are left out first where the screen is too narrow
  std::string_view meaning;  ///< for help
  std::optional<std::int64_t> (*value)(const UsageEntry& entry);
  std::string (*text)(std::int64_t value);  ///< at most `width` columns
};
/// All columns, from left to right.
[[nodiscard]] std::span<const TopColumn> top_columns();
/// The index of a column; nullopt if no column has this word.
[[nodiscard]] std::optional<std::size_t> find_column(std::string_view word);

/// The colour of what someone should look at: OOM kills, throttling, most of a limit in use.
[[nodiscard]] Colour colour_of(const TopColumn& column, std::int64_t value);

/// What keys are for.
enum class TopMode : std::uint8_t {
  kRows,
  kHelp,
  kFilterPrompt,  ///< text to look for is typed
};

/// What a person has chosen.
struct TopView {
  std::optional<std::size_t> sort = 0;  ///< a column; nullopt: the name
  bool reversed = false;
  bool tree = true;  ///< else containers only, with their full names
  UsageFilter filter = {};
  std::chrono::milliseconds delay{2000};
  TopMode mode = TopMode::kRows;
  std::string input = {};  ///< typed at the prompt
  std::size_t first = 0;   ///< row at the top of the screen
  friend bool operator==(const TopView&, const TopView&) = default;
};

/// Parses the seconds between two samples, "0.5"; from 0.1 to 3600.
[[nodiscard]] Result<std::chrono::milliseconds> parse_delay(std::string_view text);

/// A row of the table.
struct TopRow {
  std::size_t entry = 0;
  std::size_t depth = 0;  ///< in the tree; 0 without
  friend bool operator==(const TopRow&, const TopRow&) = default;
};
/// The rows in order. Trees and tiers stay in theirs, pods and containers are sorted within what
/// they are in: largest first, and last those whose value is not known.
[[nodiscard]] std::vector<TopRow> rows_of(const std::vector<UsageEntry>& entries,
                                          const TopView& view);

/// The whole table: what is shown, the heading, and a line for each row, each of at most `width`
/// columns and without a newline.
[[nodiscard]] std::vector<std::string> format_top(const UsageSample& sample, const TopView& view,
                                                  std::size_t width, ColourMode mode);

/// A screen that is drawn.
struct TopScreen {
  std::vector<std::string> lines;  ///< at most as many as there is room for
  std::size_t first = 0;           ///< of the view, where the last page ends at the last row
};
/// As much of the table as fits, or the help, and a line for keys or the prompt.
[[nodiscard]] TopScreen draw_top(const UsageSample& sample, const TopView& view, ScreenSize size,
                                 ColourMode mode);

/// What to do after a key.
enum class TopAction : std::uint8_t { kDraw, kSample, kQuit };

/// A key that was pressed.
enum class TopKey : std::uint8_t {
  kCharacter,
  kEnter,
  kEscape,
  kBackspace,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
};
struct KeyPress {
  TopKey key = TopKey::kCharacter;
  char character = '\0';
  friend bool operator==(const KeyPress&, const KeyPress&) = default;
};
/// Whether the bytes end within a sequence, whose rest a slow line has not brought yet. So does a
/// pressed Esc.
[[nodiscard]] bool is_cut_off(std::string_view bytes);
/// What a terminal sends, as keys; sequences of other keys and bytes that are not ASCII are left
/// out.
/// @note ECMA-48, and xterm's ctlseqs.
[[nodiscard]] std::vector<KeyPress> parse_keys(std::string_view bytes);

/// Changes the view as the key says.
/// @param page  rows on the screen
[[nodiscard]] TopAction apply_key(const KeyPress& press, std::size_t page, TopView& view);

}  // namespace podqos::ctl
