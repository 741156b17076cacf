#include "ctl/configure/block.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kBegin = "# podqos: begin ";
constexpr std::string_view kEnd = "# podqos: end ";
constexpr std::string_view kRemark =
    " (podqosctl configure writes these lines anew; --undo removes them)";

/// The name in a line that is this mark, perhaps with a remark behind it.
std::optional<std::string_view> name_in(std::string_view line, std::string_view mark) {
  if (!line.starts_with(mark)) return std::nullopt;
  line.remove_prefix(mark.size());
  return line.substr(0, line.find_first_of(" \r\n"));
}

}  // namespace

Result<std::vector<Block>> find_blocks(std::string_view text, const std::string& file) {
  const auto misplaced = [&](std::size_t line, std::string_view mark, std::string_view name,
                             std::string_view what) {
    return fail(ErrorCode::kInvalidArgument,
                cat(file, ":", line, ": \"", mark, name, "\" ", what,
                    "; remove podqos's lines there by hand, both marks included"));
  };
  std::vector<Block> blocks;
  std::size_t opened = 0;  // line of the begin mark that has no end yet
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view content = text.substr(begin, end - begin);
    if (const auto name = name_in(content, kBegin)) {
      if (opened != 0) return misplaced(line, kBegin, *name, "is a duplicate marker");
      blocks.push_back({.name = std::string{*name}, .begin = begin, .end = 0});
      opened = line;
    } else if (const auto ended = name_in(content, kEnd)) {
      if (opened == 0 || blocks.back().name != *ended)
        return misplaced(line, kEnd, *ended, "has no begin above it");
      blocks.back().end = end;
      opened = 0;
    }
    begin = end;
  }
  if (opened != 0) return misplaced(opened, kBegin, blocks.back().name, "has no end below it");
  return blocks;
}

Result<std::string> put_block(std::string_view text, std::string_view name, std::string_view body,
                              const std::string& file) {
  PODQOS_ASSIGN(const auto blocks, find_blocks(text, file));
  const std::size_t first_end = text.find('\n');
  const bool crlf =
      first_end != std::string_view::npos && text.substr(0, first_end).ends_with('\r');
  const std::string_view newline = crlf ? "\r\n" : "\n";
  std::string lines;
  for (const char c : cat(kBegin, name, kRemark, "\n", body, kEnd, name, "\n"))
    c == '\n' ? lines += newline : lines += c;
  const auto found = std::ranges::find(blocks, name, &Block::name);
  if (found != blocks.end())
    return cat(text.substr(0, found->begin), lines, text.substr(found->end));
  return cat(text, text.empty() || text.ends_with('\n') ? "" : newline, lines);
}

Result<std::string> without_blocks(std::string text, const std::string& file) {
  PODQOS_ASSIGN(const auto blocks, find_blocks(text, file));
  for (const Block& block : std::views::reverse(blocks))
    text.erase(block.begin, block.end - block.begin);
  return text;
}

}  // namespace podqos::ctl
