#include "ctl/cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

/// Blanks between two columns.
constexpr std::size_t kGap = 2;
/// The least width to which the last column is folded.
constexpr std::size_t kLeastFolded = 20;

/// Whether a byte of UTF-8 begins a character: every one but the continuations.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

/// Characters of a UTF-8 text.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
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

/// Makes columns narrower until the table fits, if they may be that narrow.
void fit(std::vector<std::size_t>& widths, std::span<const Cut> cuts, std::size_t screen) {
  for (const auto& [column, least, in_the_middle] : cuts) {
    const std::size_t whole =
        std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * kGap);
    if (whole <= screen) return;
    std::size_t& width = widths.at(column);
    width -= std::min(whole - screen, width - std::min(width, least));
  }
}

/// The last cell of a row in lines that begin below its first, if the screen leaves room for words.
std::string fold_below(const std::string& text, std::size_t begin, std::size_t screen) {
  if (begin + kLeastFolded > screen || begin + width(text) <= screen) return text;
  const std::string indent(begin, ' ');
  return std::string{without_newline(fold(indent + text, indent, screen)).substr(begin)};
}

/// A word in which engines' ids have their first 12 digits, in a path with "…" behind them.
std::string with_short_ids(std::string word) {
  constexpr std::size_t kIdLength = 64;
  constexpr std::size_t kShownId = 12;
  const std::string_view rest = word.starts_with('/') ? "…" : "";
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    if (i < word.size() && is_hex(word[i])) {
      ++digits;
      continue;
    }
    // Of more digits the first are those of a prefix: "pod" ends in one.
    if (digits >= kIdLength) {
      word.replace(i - kIdLength + kShownId, kIdLength - kShownId, rest);
      i -= kIdLength - kShownId - rest.size();
    }
    digits = 0;
  }
  return word;
}

std::string format_row(const Row& row, std::span<const std::size_t> widths,
                       std::span<const Cut> cuts, const Screen& screen) {
  std::string out;
  std::size_t begin = 0;  // of the column
  std::size_t pending = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool last = i + 1 == widths.size();
    if (i > 0 && begin + std::min(widths[i], last ? kLeastFolded : widths[i]) > screen.width) {
      out += out.empty() ? "" : "\n";
      begin = pending = kGap;
    }
    const auto cut = std::ranges::find(cuts, i, &Cut::column);
    Cell shown = row[i];
    shown.text = cut != cuts.end() && cut->in_the_middle ? shorten_middle(shown.text, widths[i])
                                                         : shorten(shown.text, widths[i]);
    const std::size_t used = width(shown.text);
    if (last) shown.text = fold_below(shown.text, begin, screen.width);
    if (used > 0)
      out += cat(std::string(std::exchange(pending, 0), ' '), paint(shown, screen.colour));
    pending += widths[i] - used + kGap;
    begin += widths[i] + kGap;
  }
  return out + "\n";
}

}  // namespace

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
  const bool is_plain = mode == ColourMode::kPlain || cell.colour == Colour::kNone;
  if (is_plain || cell.text.empty()) return cell.text;
  return cat("\x1b[", kCodes.at(static_cast<std::size_t>(cell.colour)), "m", cell.text, "\x1b[0m");
}

std::size_t screen_width() {
  constexpr std::size_t kUsual = 80;
  struct winsize size{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): ioctl(2) has no other form
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): podqosctl has one thread
  const char* const columns = std::getenv("COLUMNS");
  const auto number = parse_int(columns == nullptr ? "" : columns);
  if (number && *number > 0) return static_cast<std::size_t>(*number);
  return ::isatty(STDOUT_FILENO) == 0 ? Screen::kUnlimited : kUsual;
}

std::string shorten(std::string text, std::size_t width) {
  std::size_t columns = 0;
  std::size_t last = 0;  // where the character of the last column begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins_character(text[i])) continue;
    if (++columns > width) return text.replace(last, std::string::npos, width > 0 ? "…" : "");
    last = i;
  }
  return text;
}

std::string shorten_middle(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  const std::size_t slash = text.rfind('/');
  const std::size_t last = slash == std::string::npos ? text.size() : text.size() - slash;
  // Beside a short last part, the end of what stands before it tells names apart.
  const std::size_t kept = last < columns / 3 ? columns / 2 : std::min(last, columns * 2 / 3);
  std::size_t end = text.size() - kept;
  while (end < text.size() && !begins_character(text[end]))
    ++end;
  return cat(shorten(text, columns - width(text.substr(end))), text.substr(end));
}

std::string abbreviate(std::string_view sentence) {
  constexpr std::size_t kLongest = 40;
  std::string out;
  while (!sentence.empty()) {
    std::string word = with_short_ids(std::string{read_until(sentence, ' ')});
    if (word.starts_with('/') && word.size() > kLongest) {
      const std::size_t most = word.size() - kLongest + 1;
      const std::size_t next = word.find('/', most);  // where a name begins
      const std::size_t cut = next < word.size() - kLongest / 2 ? next : word.rfind('/', most);
      if (cut > 0) word.replace(0, cut, "…");
    }
    out += cat(out.empty() ? "" : " ", word);
  }
  return out;
}

std::string fitted(std::string_view sentence, const Screen& screen) {
  return screen.is_wide() ? std::string{sentence} : abbreviate(sentence);
}

std::string format_table(const std::vector<Row>& rows, const Screen& screen,
                         std::span<const Cut> cuts) {
  std::vector<std::size_t> widths = column_widths(rows);
  fit(widths, cuts, screen.width);
  std::string out;
  for (const auto& row : rows)
    out += format_row(row, widths, cuts, screen);
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
  width = std::max(width, indent.size() + 1);
  while (line.size() > width) {
    std::size_t end = line.rfind(' ', width);
    const bool between_words = end != std::string::npos && end >= indent.size();
    if (!between_words) end = width;
    while (end < line.size() && !begins_character(line[end]))
      ++end;
    if (end == line.size()) break;
    out += cat(line.substr(0, end), "\n");
    line.replace(0, between_words ? end + 1 : end, indent);
  }
  return cat(out, line, "\n");
}

std::string format_notice(std::string_view word, std::string_view text, const Screen& screen) {
  const std::string line = cat(word, fitted(text, screen));
  return cat(paint(cell(std::string{word}, Colour::kRed), screen.colour),
             fold(line, "  ", screen.width).substr(word.size()));
}

std::string format_change(const std::string& change, const Screen& screen) {
  const std::size_t path = change.find(": /");
  const bool plain = path == std::string::npos || !change.contains(" → ");
  return format_notice(
      "", plain ? change : cat(change.substr(path + 2), " (", change.substr(0, path), ")"), screen);
}

}  // namespace podqos::ctl
