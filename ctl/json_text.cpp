#include "ctl/json_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

/// White space of RFC 8259, section 2.
constexpr std::string_view kSpace = " \t\r\n";

/// Offset after the string that begins at `begin`.
std::size_t skip_string(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

/// Offset of the first byte from `at` on that is not white space.
std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kSpace, at), text.size());
}

/// Offset after the value that begins at `begin`.
std::size_t skip_value(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  std::size_t at = begin;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;  // the end of the object or array around a number or word
      --depth;
      ++at;
    } else if (depth == 0) {
      return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
    } else {
      at = std::min(text.find_first_of("\"{}[]", at), text.size());
    }
    if (depth == 0) return at;
  }
  return at;
}

/// Whether objects and arrays nest deeper than kMaxDepth. Also terminates on invalid JSON.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = text.find_first_of("\"{}[]"); at < text.size();
       at = text.find_first_of("\"{}[]", at)) {
    if (text[at] == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (depth > 0) {
      --depth;
    }
    ++at;
  }
  return false;
}

/// `text` without white space at both ends.
std::string_view trimmed(std::string_view text) {
  const std::size_t begin = skip_space(text, 0);
  const std::size_t last = text.find_last_not_of(kSpace);
  return last == std::string_view::npos ? std::string_view{} : text.substr(begin, last + 1 - begin);
}

/// Offset of `inner`, a view into `outer`.
std::size_t offset_in(std::string_view outer, std::string_view inner) {
  return static_cast<std::size_t>(inner.data() - outer.data());
}

/// Inserts a new first member into an object.
std::string insert_member(std::string_view object, std::string_view key, std::string_view value) {
  const auto members = json_members(object);
  const std::size_t open = object.find('{') + 1;
  const std::string member = cat(json_quote(key), ": ", value);
  if (members.empty()) return cat(object.substr(0, open), member, object.substr(open));
  // Before the first member, with its indentation, to preserve the layout.
  const std::size_t first = offset_in(object, members.front().raw_key);
  const std::string_view space = object.substr(open, first - open);
  return cat(object.substr(0, first), member, ",", space, object.substr(first));
}

/// A SAX handler that only records the position of the first error.
class MistakeFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] std::size_t position() const { return position_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    position_ = position;
    return false;
  }

 private:
  std::size_t position_ = 0;
};

}  // namespace

Status check_json(std::string_view text, std::size_t limit) {
  if (text.size() > limit)
    return fail(ErrorCode::kTooLarge, cat("is larger than ", limit, " bytes"));
  // Before parsing: functions of this file and the parser's values recurse.
  if (too_deep(text))
    return fail(ErrorCode::kInvalidArgument, cat("nests deeper than ", kMaxDepth, " levels"));
  MistakeFinder finder;
  if (nlohmann::json::sax_parse(text, &finder)) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("is not valid JSON: error at byte ", finder.position()));
}

std::vector<JsonMember> json_members(std::string_view object) {
  std::vector<JsonMember> members;
  std::size_t at = skip_space(object, 0);
  if (at >= object.size() || object[at] != '{') return members;
  at = skip_space(object, at + 1);
  while (at < object.size() && object[at] == '"') {
    const std::size_t key_end = skip_string(object, at);
    const std::string_view raw_key = object.substr(at, key_end - at);
    const std::size_t begin = skip_space(object, skip_space(object, key_end) + 1);
    const std::size_t end = skip_value(object, begin);
    members.push_back({.key = json_text_of(raw_key).value_or(""),
                       .raw_key = raw_key,
                       .value = object.substr(begin, end - begin)});
    at = skip_space(object, end);
    if (at < object.size() && object[at] == ',') at = skip_space(object, at + 1);
  }
  return members;
}

std::vector<std::string_view> json_elements(std::string_view array) {
  std::vector<std::string_view> elements;
  std::size_t at = skip_space(array, 0);
  if (at >= array.size() || array[at] != '[') return elements;
  at = skip_space(array, at + 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = skip_value(array, at);
    elements.push_back(array.substr(at, end - at));
    at = skip_space(array, end);
    if (at < array.size() && array[at] == ',') at = skip_space(array, at + 1);
  }
  return elements;
}

std::optional<std::string_view> json_member(std::string_view object, std::string_view key) {
  std::optional<std::string_view> found;
  for (const JsonMember& member : json_members(object))
    if (member.key == key) found = member.value;
  if (found == "null") return std::nullopt;
  return found;
}

std::optional<std::string_view> json_at(std::string_view object,
                                        std::span<const std::string> path) {
  for (const std::string& key : path) {
    const auto value = json_member(object, key);
    if (!value) return std::nullopt;
    object = *value;
  }
  return object;
}

std::optional<std::string> json_text_of(std::string_view value) {
  const std::string_view text = trimmed(value);
  if (!text.starts_with('"')) return std::nullopt;
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get_ref<const std::string&>();
}

std::string json_shown(std::string_view value) {
  const auto text = json_text_of(value);
  return text ? cat("\"", printable(*text), "\"") : printable(value);
}

std::string json_quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::string> json_set(std::string_view object, std::span<const std::string> path,
                             std::string_view key, std::string_view value) {
  if (!trimmed(object).starts_with('{'))
    return fail(ErrorCode::kInvalidArgument,
                cat("cannot set ", json_quote(key), ": expected an object"));
  const std::string& name = path.empty() ? std::string{key} : path.front();
  std::string inner{value};
  const auto members = json_members(object);
  const auto found = std::ranges::find(members.rbegin(), members.rend(), name, &JsonMember::key);
  if (!path.empty()) {
    const bool present = found != members.rend() && found->value != "null";
    auto nested = json_set(present ? found->value : "{}", path.subspan(1), key, value);
    if (!nested) return fail(std::move(nested).error().with_context(name));
    inner = std::move(*nested);
  }
  if (found == members.rend()) return insert_member(object, name, inner);
  const std::size_t begin = offset_in(object, found->value);
  return cat(object.substr(0, begin), inner, object.substr(begin + found->value.size()));
}

}  // namespace podqos::ctl
