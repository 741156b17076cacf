#include "ctl/configure/toml.h"

#include <algorithm>
#include <ranges>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::ctl {
namespace {

/// Dots in a key. toml++ recurses once for each part of "a.b.c", when it parses and when it frees,
/// and bounds that only from 3.4 on, too late where values are nested. Those it bounds itself.
constexpr std::size_t kMaxDots = 64;

/// Where the string that begins here ends; quotes directly behind its end are part of it.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool is_long = text.substr(at, 3) == std::string(3, quote);
  const std::string_view end = text.substr(at, is_long ? 3 : 1);
  for (at += end.size(); at < text.size() && !text.substr(at).starts_with(end); ++at)
    if (quote == '"' && text[at] == '\\') ++at;
  return text.find_first_not_of(quote, at);
}

/// Where a key has a dot too many; the end of the text, or beyond, if none has.
std::size_t find_long_key(std::string_view text) {
  std::size_t dots = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (std::string_view{"\n=,[]{}"}.contains(c)) dots = 0;
    if (c == '.' && ++dots > kMaxDots) break;
    if (c == '"' || c == '\'')
      at = end_of_string(text, at);
    else
      at = c == '#' ? text.find('\n', at) : at + 1;
  }
  return at;
}

}  // namespace

std::optional<std::vector<std::string>> TomlValue::strings() const {
  const toml::array* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> found;
  for (const toml::node& each : *list)
    found.push_back(each.value_exact<std::string>().value_or(""));
  return found;
}

bool TomlValue::lists(std::string_view element) const {
  const auto found = strings();
  return found && std::ranges::find(*found, element) != found->end();
}

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  const auto invalid = [&](std::size_t line, std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", line, ": ", why));
  };
  // toml++ reads ahead, and names the line where it was then.
  std::size_t number = 0;
  for (const auto line : std::views::split(text, '\n')) {
    ++number;
    if (!codec::is_utf8({line.begin(), line.end()})) return invalid(number, "is not UTF-8");
  }
  if (const std::size_t at = find_long_key(text); at < text.size())
    return invalid(static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n')) + 1,
                   cat("a key has more than ", kMaxDots, " dots"));
  auto parsed = toml::parse(text);
  if (parsed) return TomlDocument{.file = file, .values = std::move(parsed).table()};
  return invalid(parsed.error().source().begin.line, printable(parsed.error().description(), 300));
}

TomlValue TomlDocument::at(std::string_view path) const {
  const toml::node& top = values;
  toml::node_view<const toml::node> found{top};
  std::size_t line = 1;
  for (const std::string& key : parts_of(path, '/')) {
    const toml::table* table = found.as_table();
    found = found[key];
    if (!found) break;
    line = table->find(key)->first.source().begin.line;
  }
  return {.node = found, .file = file, .place = cat(file, ":", line)};
}

}  // namespace podqos::ctl
