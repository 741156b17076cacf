#include "ctl/configure/toml.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

/// Counts the levels of keys and brackets. toml++ recurses once for each, when it parses and when
/// it frees, and bounds those of keys only in newer versions.
class LevelScanner {
 public:
  /// The first line with more than kMaxLevels, counted from 1; 0 if there is none.
  std::size_t find_too_deep(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      at = take(text, at);
      if (dots_ > TomlDocument::kMaxLevels || brackets_ > TomlDocument::kMaxLevels) return line_;
    }
    return 0;
  }

 private:
  /// Takes what begins at `at`. @return where it ends.
  std::size_t take(std::string_view text, std::size_t at) {
    const char c = text[at];
    if (c == '"' || c == '\'') return skip_string(text, at);
    if (c == '#') return std::min(text.find('\n', at), text.size());
    if (c == '\n') ++line_;
    if (c == '[' || c == '{') ++brackets_;
    if ((c == ']' || c == '}') && brackets_ > 0) --brackets_;
    if (c == '.') ++dots_;
    if (std::string_view{"\n=,[]{}"}.contains(c)) dots_ = 0;
    return at + 1;
  }

  std::size_t skip_string(std::string_view text, std::size_t at) {
    const std::string quotes(3, text[at]);
    const bool is_long = text.substr(at, 3) == quotes;
    const std::string_view end = std::string_view{quotes}.substr(0, is_long ? 3 : 1);
    for (at += end.size(); at < text.size(); ++at) {
      if (text.substr(at, end.size()) == end) return at + end.size();
      if (text[at] == '\n' && !is_long) return at;
      if (text[at] == '\n') ++line_;
      if (text[at] == '\\' && end.front() == '"' && text.substr(at + 1, 1) != "\n") ++at;
    }
    return text.size();
  }

  std::size_t line_ = 1;
  std::size_t dots_ = 0;
  std::size_t brackets_ = 0;
};

/// The first line that is not UTF-8, counted from 1; 0 if there is none.
std::size_t first_line_of_other_bytes(std::string_view text) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!codec::is_utf8(text.substr(0, end))) return number;
    text.remove_prefix(end);
  }
  return 0;
}

}  // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  const auto refuse = [&](std::size_t line, std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", line, ": ", why));
  };
  // toml++ reads ahead, and names the line where it was then.
  if (const std::size_t line = first_line_of_other_bytes(text); line != 0)
    return refuse(line, "is not UTF-8");
  if (const std::size_t line = LevelScanner{}.find_too_deep(text); line != 0)
    return refuse(line, cat("nested deeper than ", kMaxLevels, " levels"));
  toml::parse_result parsed = toml::parse(text);
  if (parsed.failed())
    return refuse(parsed.error().source().begin.line, printable(parsed.error().description(), 300));
  return TomlDocument{.file = file, .values = std::move(parsed).table()};
}

const toml::node* TomlDocument::at(const TomlPath& path) const {
  const toml::node* found = &values;
  for (const std::string& key : path) {
    const toml::table* table = found->as_table();
    found = table == nullptr ? nullptr : table->get(key);
    if (found == nullptr) return nullptr;
  }
  return found;
}

std::optional<bool> TomlDocument::flag_at(const TomlPath& path) const {
  const toml::node* found = at(path);
  return found == nullptr ? std::nullopt : found->value_exact<bool>();
}

std::string TomlDocument::text_at(const TomlPath& path) const {
  const toml::node* found = at(path);
  return found == nullptr ? "" : found->value_exact<std::string>().value_or("");
}

bool TomlDocument::lists(const TomlPath& path, std::string_view element) const {
  const toml::node* found = at(path);
  const toml::array* list = found == nullptr ? nullptr : found->as_array();
  return list != nullptr && std::ranges::any_of(*list, [&](const toml::node& each) {
           return each.value_exact<std::string_view>() == element;
         });
}

std::string TomlDocument::place_of(const TomlPath& path) const {
  std::size_t line = 1;
  const toml::table* table = &values;
  for (const std::string& key : path) {
    const auto found = table->find(key);
    if (found == table->end()) break;
    line = found->first.source().begin.line;
    table = found->second.as_table();
    if (table == nullptr) break;
  }
  return cat(file, ":", line);
}

TomlPath below(TomlPath path, std::initializer_list<std::string_view> keys) {
  path.insert(path.end(), keys.begin(), keys.end());
  return path;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the parser has been
std::string format_toml(const toml::node& value) {
  // A string of JSON is one of TOML, see their grammars of escapes (TOML 1.0, "String").
  if (const auto* text = value.as_string()) return json_quote(text->get());
  if (const auto* truth = value.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return nlohmann::json(number->get()).dump();
  std::string list;
  const auto* table = value.as_table();
  for (const auto& [key, each] : table == nullptr ? toml::table{} : *table)
    list += cat(list.empty() ? "" : ", ", json_quote(key.str()), " = ", format_toml(each));
  if (table != nullptr) return cat("{ ", list, " }");
  const auto* array = value.as_array();
  for (const toml::node& each : array == nullptr ? toml::array{} : *array)
    list += cat(list.empty() ? "" : ", ", format_toml(each));
  return cat("[", list, "]");
}

}  // namespace podqos::ctl
