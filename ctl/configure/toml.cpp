#include "ctl/configure/toml.h"

#include <algorithm>
#include <ranges>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::ctl {
namespace {

/// How much of `text` a string takes that begins there.
std::size_t string_length(std::string_view text) {
  const std::string quotes(3, text[0]);
  const bool is_long = text.starts_with(quotes);
  const std::string_view end = std::string_view{quotes}.substr(0, is_long ? 3 : 1);
  for (std::size_t at = end.size(); at < text.size(); ++at) {
    if (text.substr(at).starts_with(end)) return at + end.size();
    if (text[at] == '\n' && !is_long) return at;
    if (text[at] == '\\' && text[0] == '"') ++at;
  }
  return text.size();
}

/// The first line with more than kMaxLevels keys or brackets within each other, counted from 1; 0
/// if there is none. toml++ recurses once for each, when it parses and when it frees, and bounds
/// those of keys only in newer versions.
std::size_t find_too_deep(std::string_view text) {
  std::size_t line = 1;
  std::size_t dots = 0;
  std::size_t brackets = 0;
  while (!text.empty()) {
    std::size_t size = 1;
    switch (text[0]) {
      case '"':
      case '\'': size = string_length(text); break;
      case '#': size = std::min(text.find('\n'), text.size()); break;
      case '[':
      case '{': ++brackets; break;
      case ']':
      case '}': brackets -= std::min(brackets, std::size_t{1}); break;
      case '.': ++dots; break;
      default: break;
    }
    if (std::string_view{"\n=,[]{}"}.contains(text[0])) dots = 0;
    if (dots > TomlDocument::kMaxLevels || brackets > TomlDocument::kMaxLevels) return line;
    line += static_cast<std::size_t>(std::ranges::count(text.substr(0, size), '\n'));
    text.remove_prefix(size);
  }
  return 0;
}

}  // namespace

std::optional<bool> TomlValue::flag() const {
  return node == nullptr ? std::nullopt : node->value_exact<bool>();
}

std::string TomlValue::text() const {
  return node == nullptr ? "" : node->value_exact<std::string>().value_or("");
}

bool TomlValue::lists(std::string_view element) const {
  const toml::array* list = node == nullptr ? nullptr : node->as_array();
  return list != nullptr && std::ranges::any_of(*list, [&](const toml::node& each) {
           return each.value_exact<std::string_view>() == element;
         });
}

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  const auto refuse = [&](std::size_t line, std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", line, ": ", why));
  };
  // toml++ reads ahead, and names the line where it was then.
  std::size_t number = 0;
  for (const auto line : std::views::split(text, '\n')) {
    ++number;
    if (!codec::is_utf8(std::string_view{line.begin(), line.end()}))
      return refuse(number, "is not UTF-8");
  }
  if (const std::size_t line = find_too_deep(text); line != 0)
    return refuse(line, cat("nested deeper than ", kMaxLevels, " levels"));
  toml::parse_result parsed = toml::parse(text);
  if (parsed.failed())
    return refuse(parsed.error().source().begin.line, printable(parsed.error().description(), 300));
  return TomlDocument{.file = file, .values = std::move(parsed).table()};
}

TomlValue TomlDocument::at(std::string_view path) const {
  TomlValue found{.node = &values, .file = file, .place = {}};
  std::size_t line = 1;
  for (const std::string& key : parts_of(path, '/')) {
    const toml::table* table = found.node->as_table();
    const auto entry = table == nullptr ? values.end() : table->find(key);
    found.node = table == nullptr || entry == table->end() ? nullptr : &entry->second;
    if (!found) break;
    line = entry->first.source().begin.line;
  }
  found.place = cat(file, ":", line);
  return found;
}

TomlValue last_of(const std::vector<TomlDocument>& documents, std::string_view path) {
  TomlValue last;
  for (const TomlDocument& document : documents)
    if (TomlValue found = document.at(path)) last = std::move(found);
  return last;
}

}  // namespace podqos::ctl
