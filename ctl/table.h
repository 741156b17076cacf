#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"

namespace podqos::ctl {

/// "3Gi", "1.5Gi", "64Mi", "0", "1023": the largest binary unit, at most one decimal, "~" in front
/// where digits were cut.
[[nodiscard]] std::string format_bytes(Bytes bytes);
/// "110m", "2", "1500m".
[[nodiscard]] std::string format_cpu(MilliCpu cpu);

enum class Colour : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };

/// One field of a table; its colour takes no room.
struct Cell {
  std::string text;
  Colour colour = Colour::kNone;
};

[[nodiscard]] inline Cell cell(std::string text, Colour colour = Colour::kNone) {
  return {.text = std::move(text), .colour = colour};
}

enum class ColourMode : std::uint8_t { kPlain, kColoured };

/// "auto", "always" or "never", as --color says it: auto is colour on a terminal unless NO_COLOR is
/// set.
[[nodiscard]] ColourMode colour_mode(std::string_view word);
[[nodiscard]] std::string paint(const Cell& cell, ColourMode mode);

/// Rows with aligned columns, two blanks between them and none at the end of a line. UTF-8 counts
/// one column a character.
[[nodiscard]] std::string format_table(const std::vector<std::vector<Cell>>& rows, ColourMode mode);

}  // namespace podqos::ctl
