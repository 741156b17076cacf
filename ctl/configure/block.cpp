#include "ctl/configure/block.h"

#include <algorithm>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kRemark =
    " (podqosctl configure writes these lines anew; --undo removes them)";

std::string begin_mark(std::string_view name) {
  return cat("# podqos: begin ", name);
}

std::string end_mark(std::string_view name) {
  return cat("# podqos: end ", name);
}

/// Whether a line is `mark`, perhaps with a remark behind it.
bool is_mark(std::string_view line, std::string_view mark) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with(mark)) return false;
  line.remove_prefix(mark.size());
  return line.empty() || line.front() == ' ';
}

/// Collects the marks of one block.
class MarkFinder {
 public:
  MarkFinder(std::string_view name, const std::string& file)
      : begin_mark_(begin_mark(name)), end_mark_(end_mark(name)), file_(file) {}

  /// Takes the next line.
  /// @param begin  offset of the line
  /// @param end    offset after its newline
  Status take(std::string_view line, std::size_t begin, std::size_t end) {
    ++number_;
    if (is_mark(line, begin_mark_)) {
      if (begin_) return misplaced(begin_mark_, "stands here a second time");
      begin_ = begin;
      begin_line_ = number_;
    } else if (is_mark(line, end_mark_)) {
      if (!begin_ || end_) return misplaced(end_mark_, "has no begin above it");
      end_ = end;
    }
    return {};
  }

  Result<std::optional<BlockRange>> finish() {
    number_ = begin_line_;
    if (begin_ && !end_) {
      auto error = misplaced(begin_mark_, "has no end below it");
      return fail(std::move(error).error());
    }
    if (!begin_) return std::nullopt;
    return BlockRange{.begin = *begin_, .end = *end_};
  }

 private:
  [[nodiscard]] Status misplaced(std::string_view mark, std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument,
                cat(file_, ":", number_, ": \"", mark, "\" ", what,
                    "; remove podqos's lines there by hand, both marks included"));
  }

  std::string begin_mark_;
  std::string end_mark_;
  const std::string& file_;
  std::size_t number_ = 0;
  std::size_t begin_line_ = 0;
  std::optional<std::size_t> begin_;
  std::optional<std::size_t> end_;
};

/// How the first line ends.
std::string_view newline_of(std::string_view text) {
  const std::size_t newline = text.find('\n');
  return newline != std::string_view::npos && newline > 0 && text[newline - 1] == '\r' ? "\r\n"
                                                                                       : "\n";
}

std::string format_block(std::string_view name, std::string_view body, std::string_view newline) {
  const std::string lines = cat(begin_mark(name), kRemark, "\n", body, end_mark(name), "\n");
  std::string out;
  for (const char c : lines) {
    if (c == '\n')
      out += newline;
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<std::optional<BlockRange>> find_block(std::string_view text, std::string_view name,
                                             const std::string& file) {
  MarkFinder finder{name, file};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    const std::size_t end = std::min(newline + 1, text.size());
    if (auto taken = finder.take(text.substr(begin, newline - begin), begin, end); !taken)
      return fail(std::move(taken).error());
    begin = end;
  }
  return finder.finish();
}

Result<std::string> put_block(std::string_view text, std::string_view name, std::string_view body,
                              const std::string& file) {
  auto range = find_block(text, name, file);
  if (!range) return fail(std::move(range).error());
  const std::string_view newline = newline_of(text);
  const std::string block = format_block(name, body, newline);
  if (*range) return cat(text.substr(0, (*range)->begin), block, text.substr((*range)->end));
  const bool ends = text.empty() || text.ends_with('\n');
  return cat(text, ends ? "" : newline, block);
}

Result<std::string> without_block(std::string_view text, std::string_view name,
                                  const std::string& file) {
  auto range = find_block(text, name, file);
  if (!range) return fail(std::move(range).error());
  if (!*range) return std::string{text};
  return cat(text.substr(0, (*range)->begin), text.substr((*range)->end));
}

}  // namespace podqos::ctl
