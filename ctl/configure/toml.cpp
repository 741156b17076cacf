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

using Lines = std::map<TomlPath, std::size_t>;

/// Turns toml++'s values into JSON and notes where each table and value begins.
class Reader {
 public:
  explicit Reader(Lines& lines) : lines_(lines) {}

  // NOLINTBEGIN(misc-no-recursion): as deep as the parser has been, which recurses, too
  nlohmann::json read_table(const toml::table& table) {
    auto object = nlohmann::json::object();
    for (const auto& [key, node] : table) {
      path_.emplace_back(key.str());
      lines_.emplace(path_, key.source().begin.line);
      object[path_.back()] = read(node);
      path_.pop_back();
    }
    return object;
  }

 private:
  nlohmann::json read(const toml::node& node) {
    if (const auto* table = node.as_table()) return read_table(*table);
    if (const auto* array = node.as_array()) return read_array(*array);
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return number->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* truth = node.as_boolean()) return truth->get();
    return "date or time";
  }

  /// The tables of an array have no place of their own: the path names the array.
  nlohmann::json read_array(const toml::array& array) {
    auto list = nlohmann::json::array();
    for (const toml::node& node : array)
      list.push_back(read(node));
    return list;
  }
  // NOLINTEND(misc-no-recursion)

  Lines& lines_;
  TomlPath path_;
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
  // toml++ reads ahead, and names the line where it was then.
  if (const std::size_t line = first_line_of_other_bytes(text); line != 0)
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", line, ": is not UTF-8"));
  const toml::parse_result parsed = toml::parse(text);
  if (parsed.failed()) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorCode::kInvalidArgument, cat(file, ":", error.source().begin.line, ": ",
                                                 printable(error.description(), 300)));
  }
  TomlDocument document;
  document.file_ = file;
  document.values_ = Reader{document.lines_}.read_table(parsed.table());
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

std::string TomlDocument::place_of(TomlPath path) const {
  for (; !path.empty(); path.pop_back())
    if (const auto found = lines_.find(path); found != lines_.end())
      return cat(file_, ":", found->second);
  return cat(file_, ":1");
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
