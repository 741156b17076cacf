#include "ctl/table.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::array kBinaryUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::int64_t kBinaryStep = 1024;
/// Blanks between two columns.
constexpr std::size_t kGap = 2;

/// Characters of a UTF-8 text: every byte but the continuations.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// The SGR parameters of ECMA-48, in the order of Colour.
constexpr std::array kCodes = {"", "1", "2", "31", "32", "33", "36"};
static_assert(kCodes.size() == static_cast<std::size_t>(Colour::kCyan) + 1);

/// The width of the widest cell of each column.
std::vector<std::size_t> column_widths(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i].text));
  }
  return widths;
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  const std::int64_t value = bytes.value();
  if (value < 0) return std::to_string(value);
  std::size_t unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < kBinaryUnits.size() && value / scale >= kBinaryStep) {
    scale *= kBinaryStep;
    ++unit;
  }
  const std::int64_t rest = value % scale;
  const std::int64_t tenths = mul_div(rest, 10, scale);
  // rest * 10 % scale, halved on both sides: it must not overflow for exbibytes.
  const bool exact = rest * 5 % std::max<std::int64_t>(scale / 2, 1) == 0;
  return cat(exact ? "" : "~", value / scale, tenths == 0 ? "" : cat(".", tenths),
             kBinaryUnits.at(unit));
}

std::string format_count(std::int64_t number, std::string_view noun) {
  return cat(number, " ", noun, number == 1 ? "" : "s");
}

Row heading(std::initializer_list<std::string_view> names) {
  Row row;
  for (const std::string_view name : names)
    row.push_back(cell(std::string{name}, Colour::kDim));
  return row;
}

ColourMode colour_mode(std::string_view word) {
  if (word == "always") return ColourMode::kColoured;
  // NOLINTBEGIN(concurrency-mt-unsafe): podqosctl has one thread
  const char* const term = std::getenv("TERM");
  const bool plain = word == "never" || std::getenv("NO_COLOR") != nullptr ||
                     (term != nullptr && std::string_view{term} == "dumb") ||
                     ::isatty(STDOUT_FILENO) == 0;
  // NOLINTEND(concurrency-mt-unsafe)
  return plain ? ColourMode::kPlain : ColourMode::kColoured;
}

std::string paint(const Cell& cell, ColourMode mode) {
  if (mode == ColourMode::kPlain || cell.colour == Colour::kNone) return cell.text;
  return cat("\x1b[", kCodes.at(static_cast<std::size_t>(cell.colour)), "m", cell.text, "\x1b[0m");
}

std::string format_table(const std::vector<Row>& rows, ColourMode mode) {
  const std::vector<std::size_t> widths = column_widths(rows);
  std::string out;
  for (const auto& row : rows) {
    std::size_t pending = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].text.empty())
        out += cat(std::string(std::exchange(pending, 0), ' '), paint(row[i], mode));
      pending += widths[i] - width(row[i].text) + kGap;
    }
    out += '\n';
  }
  return out;
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
  std::string out;
  for (const std::string& text : texts)
    out += cat(&text == texts.data() ? "" : separator, text);
  return out;
}

std::string fold(std::string line, std::string_view indent, std::size_t width) {
  std::string out;
  while (line.size() > width) {
    std::size_t end = line.rfind(' ', width);
    if (end == std::string::npos || end < indent.size())
      end = line.find(' ', std::max(width, indent.size()));
    if (end == std::string::npos) break;
    out += cat(line.substr(0, end), "\n");
    line.replace(0, end + 1, indent);
  }
  return cat(out, line, "\n");
}

}  // namespace podqos::ctl
