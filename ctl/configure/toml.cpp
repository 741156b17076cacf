#include "ctl/configure/toml.h"

#include <algorithm>
#include <utility>

// Errors are values here. A header only, for each release of a distribution has its own version of
// the library.
#define TOML_EXCEPTIONS 0
#if __has_include(<toml++/impl/preprocessor.hpp>)
#include <toml++/impl/preprocessor.hpp>  // from 3.4 on
#else
#include <toml++/impl/preprocessor.h>
#endif
// toml++ 3.3 asserts, and in a release build assumes, that a table's name begins like a name: "[=]"
// would end the program. Without that it reports the error as any other.
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::ctl {
namespace {

/// Turns toml++'s values into JSON and notes where each table and value begins.
class Reader {
 public:
  // NOLINTBEGIN(misc-no-recursion): at most kMaxLevels deep
  nlohmann::json read_table(const toml::table& table, TomlLines& lines, std::size_t levels) {
    auto object = nlohmann::json::object();
    for (const auto& [key, node] : table) {
      const std::string name{key.str()};
      TomlLines& place = lines.children[name];
      place.line = key.source().begin.line;
      object[name] = read(node, place, levels);
    }
    return object;
  }
  /// Where more than kMaxLevels were found; 0 if nowhere.
  [[nodiscard]] std::size_t too_deep() const { return too_deep_; }

 private:
  nlohmann::json read(const toml::node& node, TomlLines& lines, std::size_t levels) {
    if ((node.is_table() || node.is_array()) && levels == TomlDocument::kMaxLevels) {
      too_deep_ = lines.line;
      return {};
    }
    if (const auto* table = node.as_table()) return read_table(*table, lines, levels + 1);
    if (const auto* array = node.as_array()) return read_array(*array, lines, levels + 1);
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return number->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* truth = node.as_boolean()) return truth->get();
    return "date or time";
  }

  /// The tables of an array have no place of their own: the path names the array.
  nlohmann::json read_array(const toml::array& array, TomlLines& lines, std::size_t levels) {
    auto list = nlohmann::json::array();
    for (const toml::node& node : array)
      list.push_back(read(node, lines, levels));
    return list;
  }
  // NOLINTEND(misc-no-recursion)

  std::size_t too_deep_ = 0;
};

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

std::unexpected<Error> refuse_depth(const std::string& file, std::size_t line) {
  return fail(ErrorCode::kInvalidArgument,
              cat(file, ":", line, ": nested deeper than ", TomlDocument::kMaxLevels, " levels"));
}

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
  // toml++ reads ahead, and names the line where it was then.
  if (const std::size_t line = first_line_of_other_bytes(text); line != 0)
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", line, ": is not UTF-8"));
  if (const std::size_t line = LevelScanner{}.find_too_deep(text); line != 0)
    return refuse_depth(file, line);
  const toml::parse_result parsed = toml::parse(text);
  if (parsed.failed()) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", error.source().begin.line, ": ",
                                                 printable(error.description(), 300)));
  }
  TomlDocument document;
  document.file_ = file;
  Reader reader;
  document.values_ = reader.read_table(parsed.table(), document.lines_, 1);
  if (reader.too_deep() != 0) return refuse_depth(file, reader.too_deep());
  return document;
}

const nlohmann::json* TomlDocument::at(const TomlPath& path) const {
  const nlohmann::json* value = &values_;
  for (const std::string& key : path) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(key);
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value;
}

std::string TomlDocument::place_of(const TomlPath& path) const {
  const TomlLines* at = &lines_;
  for (const std::string& key : path) {
    const auto found = at->children.find(key);
    if (found == at->children.end()) break;
    at = &found->second;
  }
  return cat(file_, ":", std::max<std::size_t>(at->line, 1));
}

TomlPath below(TomlPath path, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    path.emplace_back(key);
  return path;
}

std::string text_at(const TomlDocument& document, const TomlPath& path) {
  const nlohmann::json* value = document.at(path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string{};
}

bool lists(const TomlDocument& document, const TomlPath& path, std::string_view element) {
  const nlohmann::json* list = document.at(path);
  if (list == nullptr || !list->is_array()) return false;
  for (const nlohmann::json& each : *list)
    if (each.is_string() && each.get_ref<const std::string&>() == element) return true;
  return false;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the parser has been
std::string format_toml(const nlohmann::json& value) {
  // A string of JSON is one of TOML, see their grammars of escapes (TOML 1.0, "String").
  if (!value.is_structured()) return value.dump();
  std::string list;
  for (const auto& [key, each] : value.items()) {
    if (!list.empty()) list += ", ";
    if (value.is_object()) list += cat(nlohmann::json(key).dump(), " = ");
    list += format_toml(each);
  }
  return value.is_object() ? cat("{ ", list, " }") : cat("[", list, "]");
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the parser has been
nlohmann::json merged(nlohmann::json values, const nlohmann::json& more) {
  if (!values.is_object() || !more.is_object()) return more;
  for (const auto& [key, value] : more.items()) {
    const auto found = values.find(key);
    values[key] = found == values.end() ? value : merged(*found, value);
  }
  return values;
}

}  // namespace podqos::ctl
