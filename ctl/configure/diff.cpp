#include "ctl/configure/diff.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kContext = 3;

/// Lines with their newline; the last may have none.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

std::string shown(const FileState& state) {
  return state.kind == FileState::Kind::kLink ? cat("-> ", state.text, "\n") : state.text;
}

/// "12,3" of a hunk's head: first line and number of lines; diff(1) counts from 0 where there are
/// none.
std::string format_range(std::size_t begin, std::size_t count) {
  return cat(count == 0 ? begin : begin + 1, ",", count);
}

/// Collects the lines of a hunk.
class Hunk {
 public:
  explicit Hunk(ColourMode mode) : mode_(mode) {}

  void add(char sign, std::string_view line, Colour colour = Colour::kNone) {
    const bool ends = line.ends_with('\n');
    if (ends) line.remove_suffix(1);
    out_ += paint({.text = cat(std::string_view{&sign, 1}, line), .colour = colour}, mode_);
    out_ += ends ? "\n" : "\n\\ No newline at end of file\n";
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  ColourMode mode_;
  std::string out_;
};

}  // namespace

std::string format_diff(const FileChange& change, const std::string& root, ColourMode mode) {
  const std::string old_text = shown(change.before);
  const std::string new_text = shown(change.after);
  const auto before = lines_of(old_text);
  const auto after = lines_of(new_text);
  const auto [old_differs, new_differs] = std::ranges::mismatch(before, after);
  const auto same = static_cast<std::size_t>(old_differs - before.begin());
  std::size_t tail = 0;
  while (tail < std::min(before.size(), after.size()) - same &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  const std::size_t begin = same - std::min(same, kContext);
  const std::size_t old_end = before.size() - tail;
  const std::size_t new_end = after.size() - tail;
  const std::size_t trailing = std::min(tail, kContext);
  Hunk hunk{mode};
  for (std::size_t i = begin; i < same; ++i)
    hunk.add(' ', before[i]);
  for (std::size_t i = same; i < old_end; ++i)
    hunk.add('-', before[i], Colour::kRed);
  for (std::size_t i = same; i < new_end; ++i)
    hunk.add('+', after[i], Colour::kGreen);
  for (std::size_t i = old_end; i < old_end + trailing; ++i)
    hunk.add(' ', before[i]);
  const auto head = [&](std::string_view sign, const FileState& state) {
    const bool absent = state.kind == FileState::Kind::kAbsent;
    const std::string path = absent ? "/dev/null" : cat(root, change.path);
    return paint({.text = cat(sign, " ", path), .colour = Colour::kBold}, mode) + "\n";
  };
  const std::string range = cat("@@ -", format_range(begin, old_end + trailing - begin), " +",
                                format_range(begin, new_end + trailing - begin), " @@");
  return cat(head("---", change.before), head("+++", change.after),
             paint({.text = range, .colour = Colour::kCyan}, mode), "\n", hunk.text());
}

}  // namespace podqos::ctl
