#include "ctl/view/top_view.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/text.h"
#include "common/core/pods/pod_name.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kNameWidth = 24;    ///< that the name has at least, if the screen is as wide
constexpr std::int64_t kMuch = 750;       ///< thousandths of a limit that are shown in yellow
constexpr std::int64_t kCritical = 900;   ///< in red
constexpr std::int64_t kThrottled = 250;  ///< in red, and anything above 0 in yellow

/// Puts what is in `parent` behind it, and so on.
void add_rows(const std::vector<std::vector<std::size_t>>& within,
              const std::vector<std::size_t>& siblings, std::size_t depth,
              std::vector<TopRow>& rows) {
  for (const std::size_t entry : siblings) {
    rows.push_back({.entry = entry, .depth = depth});
    add_rows(within, within[entry], depth + 1, rows);
  }
}

/// Sorts entries of one kind, which are in the order of their names.
void sort_entries(const std::vector<UsageEntry>& entries, const TopView& view,
                  std::vector<std::size_t>& indices) {
  if (view.sort) {
    const TopColumn& column = top_columns()[*view.sort];
    std::ranges::stable_sort(indices, [&](std::size_t a, std::size_t b) {
      const auto left = column.value(entries[a]);
      const auto right = column.value(entries[b]);
      if (!left || !right) return left.has_value() && !right.has_value();
      return view.reversed ? *left < *right : *left > *right;
    });
  } else if (view.reversed) {
    std::ranges::reverse(indices);
  }
}

/// `text`, which is ASCII, in exactly `width` columns. What is longer is cut in the middle, since a
/// name may begin or end as others do.
std::string fit_left(std::string text, std::size_t width) {
  if (text.size() > width && width > 0) text.replace(width / 2, text.size() - width + 1, "~");
  text.resize(width, ' ');
  return text;
}
/// The lines, which have no colours, without what does not fit.
std::vector<std::string> cut(std::vector<std::string> lines, std::size_t width) {
  for (std::string& line : lines)
    line.resize(std::min(line.size(), width));
  return lines;
}
std::string fit_right(const std::string& text, std::size_t width) {
  return cat(std::string(width - std::min(width, text.size()), ' '), text);
}

/// The columns that there is room for beside the name, the one that sorts among them.
std::vector<std::size_t> columns_in(std::size_t width, const TopView& view) {
  const auto columns = top_columns();
  std::vector<std::size_t> order(columns.size());
  std::ranges::copy(std::views::iota(std::size_t{0}, columns.size()), order.begin());
  std::ranges::stable_sort(order, {}, [&](std::size_t column) {
    return view.sort == column ? 0 : columns[column].rank;
  });
  std::vector<std::size_t> chosen;
  std::size_t used = kNameWidth;
  for (const std::size_t column : order) {
    used += columns[column].width + 1;
    if (used > width) break;
    chosen.push_back(column);
  }
  std::ranges::sort(chosen);
  return chosen;
}

/// Formats rows of a table.
class TopTable {
 public:
  TopTable(const UsageSample& sample, const TopView& view, std::size_t width, ColourMode mode)
      : entries_(&sample.entries),
        view_(&view),
        mode_(mode),
        rows_(ctl::rows_of(sample.entries, view)),
        columns_(columns_in(width, view)) {
    std::size_t others = 0;
    for (const std::size_t column : columns_)
      others += top_columns()[column].width + 1;
    std::size_t longest = kNameWidth;
    for (const TopRow& row : rows_)
      longest = std::max(longest, label_of(row).size());
    name_width_ = std::min(longest, width - std::min(width, others));
  }

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }

  [[nodiscard]] std::string heading() const {
    std::string line = fit_left(view_->sort ? "NAME" : ">NAME", name_width_);
    for (const std::size_t column : columns_) {
      const TopColumn& shown = top_columns()[column];
      // The one that sorts stands out also without colours.
      const std::string text = cat(view_->sort == column ? ">" : "", shown.heading);
      line += cat(" ", fit_right(text, shown.width));
    }
    return paint(cell(std::move(line), Colour::kDim), mode_);
  }

  [[nodiscard]] std::string line(std::size_t number) const {
    const TopRow& row = rows_[number];
    const UsageEntry& entry = (*entries_)[row.entry];
    const bool group = entry.kind == EntryKind::kTree || entry.kind == EntryKind::kTier;
    const Colour colour = group                           ? Colour::kCyan
                          : entry.kind == EntryKind::kPod ? Colour::kBold
                                                          : Colour::kNone;
    std::string line = paint(cell(fit_left(label_of(row), name_width_), colour), mode_);
    for (const std::size_t column : columns_) {
      const TopColumn& shown = top_columns()[column];
      const auto value = shown.value(entry);
      line += cat(" ", paint(cell(fit_right(value ? shown.text(*value) : "-", shown.width),
                                  value ? colour_of(shown, *value) : Colour::kNone),
                             mode_));
    }
    return line;
  }

 private:
  /// In a tree the last part of the name is enough.
  [[nodiscard]] std::string label_of(const TopRow& row) const {
    const auto name = view_->tree ? ctl::label_of : full_name;
    return cat(std::string(row.depth, ' '), printable(name(*entries_, row.entry)));
  }

  const std::vector<UsageEntry>* entries_;
  const TopView* view_;
  ColourMode mode_;
  std::vector<TopRow> rows_;
  std::vector<std::size_t> columns_;
  std::size_t name_width_ = 0;
};

/// "2 s", "0.5 s", rounded to tenths.
std::string seconds_text(std::chrono::milliseconds time) {
  constexpr std::int64_t kTenth = 100;
  const std::int64_t tenths = (time.count() + kTenth / 2) / kTenth;
  return cat(core::Quantity::from_milli(tenths * kTenth).format_decimal(), " s");
}

/// What is shown: "podqos top: 2 pods, 3 containers, 2 s, by cpu; only Burstable, "web"".
std::string title_of(const UsageSample& sample, const TopView& view) {
  const auto count = [&](EntryKind kind) {
    return std::ranges::count(sample.entries, kind, &UsageEntry::kind);
  };
  std::vector<std::string> only;
  if (view.filter.tier) only.emplace_back(core::format_qos_class(*view.filter.tier));
  if (!view.filter.pod_namespace.empty())
    only.push_back(cat("namespace ", printable(view.filter.pod_namespace)));
  if (!view.filter.text.empty()) only.push_back(cat("\"", printable(view.filter.text), "\""));
  return cat("podqos top: ", format_count(count(EntryKind::kPod), "pod"), ", ",
             format_count(count(EntryKind::kContainer), "container"), ", ",
             seconds_text(std::chrono::milliseconds{sample.interval_ms}), ", by ",
             view.sort ? top_columns()[*view.sort].word : "name", view.reversed ? " reversed" : "",
             only.empty() ? "" : cat("; only ", join(only, ", ")));
}

/// Title, heading, and rows from the first one of the view on.
std::vector<std::string> lines_of(const UsageSample& sample, const TopView& view,
                                  const TopTable& table, std::size_t width,
                                  std::size_t page = std::numeric_limits<std::size_t>::max()) {
  std::vector<std::string> lines = cut({title_of(sample, view)}, width);
  lines.push_back(table.rows() == 0 ? cut({"no pods"}, width).front() : table.heading());
  for (std::size_t i = view.first; i < table.rows() && i - view.first < page; ++i)
    lines.push_back(table.line(i));
  return lines;
}

std::vector<std::string> help_lines() {
  std::vector<std::string> lines = {
      "q quit                      space refresh now",
      "P by CPU, M by memory, T by throttling, O by OOM kills, N by name",
      "< > or left, right: sort by the next column; R reverse",
      "t tree or containers only   c one tier after the other",
      "/ only names with a text    Esc all again",
      "up, down, PgUp, PgDn, Home, End: scroll",
      ""};
  // The amounts themselves need no words; with them, the help would be too long.
  constexpr int kAmounts = 6;
  for (const TopColumn& column : top_columns())
    if (column.rank < kAmounts)
      lines.push_back(cat(fit_left(std::string{column.heading}, 5),
                          fit_left(std::string{column.word}, 17), column.meaning));
  lines.emplace_back("CREQ, CLIM, MREQ, MLIM: requests and limits of CPU and memory");
  return lines;
}

/// The last line of the screen.
std::string bottom_line(const TopView& view, std::size_t rows, std::size_t page) {
  const std::string input = printable(view.input);
  switch (view.mode) {
    case TopMode::kHelp: return "any key: back";
    case TopMode::kFilterPrompt: return cat("Only names with: ", input);
    case TopMode::kRows: break;
  }
  const std::size_t last = std::min(rows, view.first + page);
  return cat("h help  q quit",
             rows > page ? cat("  ", view.first + 1, "-", last, " of ", rows) : std::string{});
}

}  // namespace

Colour colour_of(const TopColumn& column, std::int64_t value) {
  if (column.word == "oom") return value > 0 ? Colour::kRed : Colour::kNone;
  if (column.word == "throttled" && value > 0)
    return value >= kThrottled ? Colour::kRed : Colour::kYellow;
  if (!column.word.ends_with("-limit") || value < kMuch) return Colour::kNone;
  return value >= kCritical ? Colour::kRed : Colour::kYellow;
}

Result<std::chrono::milliseconds> parse_delay(std::string_view text) {
  constexpr std::int64_t kLeast = 100;
  constexpr std::int64_t kMost = 3'600'000;
  const auto seconds = core::Quantity::parse(text);
  const std::int64_t millis = seconds ? seconds->milli_value() : 0;
  if (millis < kLeast || millis > kMost)
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(text), "\" seconds: expected 0.1 to 3600"));
  return std::chrono::milliseconds{millis};
}

std::vector<TopRow> rows_of(const std::vector<UsageEntry>& entries, const TopView& view) {
  std::vector<std::size_t> tops;
  std::vector<std::vector<std::size_t>> within(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!view.tree) {
      if (entries[i].kind == EntryKind::kContainer) tops.push_back(i);
    } else {
      (entries[i].kind == EntryKind::kTree ? tops : within[entries[i].parent]).push_back(i);
    }
  }
  if (!view.tree) sort_entries(entries, view, tops);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].kind != EntryKind::kTree) sort_entries(entries, view, within[i]);
  std::vector<TopRow> rows;
  rows.reserve(entries.size());
  add_rows(within, tops, 0, rows);
  return rows;
}

std::vector<std::string> format_top(const UsageSample& sample, const TopView& view,
                                    std::size_t width, ColourMode mode) {
  return lines_of(sample, view, TopTable{sample, view, width, mode}, width);
}

TopScreen draw_top(const UsageSample& sample, const TopView& view, ScreenSize size,
                   ColourMode mode) {
  constexpr std::size_t kOthers = 3;  // title, heading, bottom
  const std::size_t page = size.height - std::min(size.height, kOthers);
  const TopTable table{sample, view, size.width, mode};
  TopView shown = view;
  shown.first = std::min(view.first, table.rows() - std::min(table.rows(), page));
  std::vector<std::string> lines = view.mode == TopMode::kHelp
                                       ? cut(help_lines(), size.width)
                                       : lines_of(sample, shown, table, size.width, page);
  lines.resize(page + kOthers - 1);
  lines.push_back(cut({bottom_line(shown, table.rows(), page)}, size.width).front());
  while (lines.size() > size.height)
    lines.erase(lines.begin());
  return {.lines = std::move(lines), .first = shown.first};
}

}  // namespace podqos::ctl
