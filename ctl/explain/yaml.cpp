#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include <yaml.h>

#include "common/base/text.h"
#include "ctl/explain/document.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// Plain words as Kubernetes' YAML 1.1 parser reads them (sigs.k8s.io/yaml).
constexpr std::string_view kTrueWords = "true True TRUE yes Yes YES on On ON y Y";
constexpr std::string_view kFalseWords = "false False FALSE no No NO off Off OFF n N";
constexpr std::string_view kNullWords = "~ null Null NULL";

/// A number as Kubernetes' parser reads it, such as 1.50, 0644, 0x1f, 0b101, +5, 1_000 or .5, digit
/// by digit, in base ten; nullopt for other text.
/// @note resolve() of go.yaml.in/yaml/v2, which sigs.k8s.io/yaml uses
std::optional<std::string> number_of(std::string_view text) {
  std::string plain{text};
  std::erase(plain, '_');
  std::string_view digits = plain;
  const std::string_view sign = digits.starts_with('-') ? "-" : "";
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  // "inf" and "nan" are words.
  if (text.starts_with('_') || digits.empty() || (!is_digit(digits[0]) && digits[0] != '.'))
    return std::nullopt;
  const auto is_whole = [](std::string_view part, auto& value, auto form) {
    const auto [last, error] = std::from_chars(part.begin(), part.end(), value, form);
    return error == std::errc{} && last == part.end();
  };
  if (digits[0] == '0' && digits.size() > 1) {
    const char kind = static_cast<char>(digits[1] | 0x20);
    const int base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
    std::uint64_t value = 0;
    if (is_whole(digits.substr(base != 8 || kind == 'o' ? 2 : 1), value, base))
      return cat(sign, value);
  }
  double value = 0;
  if (!is_whole(digits, value, std::chars_format::general)) return std::nullopt;
  return cat(sign, digits);
}

/// The type of a plain scalar, whose text becomes JSON's.
Kind resolve(std::string& text) {
  if (text.empty() || has_word(kNullWords, text)) return Kind::kNull;
  const bool is_true = has_word(kTrueWords, text);
  if (is_true || has_word(kFalseWords, text)) {
    text = is_true ? "true" : "false";
    return Kind::kBoolean;
  }
  auto number = number_of(text);
  if (!number) return Kind::kString;
  text = *std::move(number);
  return Kind::kNumber;
}

/// A text of libyaml's.
const char* characters(const yaml_char_t* text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes are unsigned
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

/// A recursive descent over libyaml's events.
class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size(); ++at)
      if ((static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U) offsets_.push_back(at);
    offsets_.push_back(text.size());
    ::yaml_parser_initialize(&parser_);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes are unsigned
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    ::yaml_parser_set_input_string(&parser_, bytes, text.size());
    ::yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  ~YamlReader() {
    ::yaml_event_delete(&event_);
    ::yaml_parser_delete(&parser_);
  }

  Result<std::vector<Document>> read() {
    PODQOS_TRY(next());  // the beginning of the stream
    for (;;) {
      PODQOS_TRY(next());
      if (event_.type != YAML_DOCUMENT_START_EVENT) return std::move(documents_);
      start_document();
      PODQOS_TRY(next());
      PODQOS_ASSIGN(static_cast<JsonNode&>(documents_.back().tree), value());
      PODQOS_TRY(next());  // the end of the document
    }
  }

 private:
  using Places = std::map<std::string_view, std::size_t>;  ///< of a map's members, by name

  Status next() {
    ::yaml_event_delete(&event_);
    if (::yaml_parser_parse(&parser_, &event_) != 0) return {};
    std::string_view problem = parser_.problem == nullptr ? "cannot be read" : parser_.problem;
    if (problem.ends_with("<document start>"))
      problem = "documents must be separated by a line \"---\"";
    std::size_t line = parser_.problem_mark.line;
    if (parser_.error == YAML_READER_ERROR)
      line = static_cast<std::size_t>(
          std::ranges::count(text_.substr(0, parser_.problem_offset), '\n'));
    return fail(ErrorCode::kInvalidArgument, cat("line ", line + 1, ": ", problem));
  }
  template <class... Parts>
  [[nodiscard]] std::unexpected<Error> refuse_here(ErrorCode code, const Parts&... why) const {
    return fail(code, cat("line ", event_.start_mark.line + 1, ": ", why...));
  }

  /// libyaml counts characters.
  [[nodiscard]] std::size_t byte_of(const yaml_mark_t& mark) const {
    return offsets_[std::min(mark.index, offsets_.size() - 1)];
  }
  [[nodiscard]] std::string_view raw() const {
    const std::size_t begin = byte_of(event_.start_mark);
    return text_.substr(begin, byte_of(event_.end_mark) - begin);
  }

  /// The first document has what stands before it, too.
  void start_document() {
    const std::string_view text = text_.substr(documents_.empty() ? 0 : byte_of(event_.start_mark));
    if (!documents_.empty()) documents_.back().text.remove_suffix(text.size());
    documents_.push_back({.text = text, .tree = {}, .is_yaml = true});
    anchors_.clear();
  }

  /// The value that begins with this event.
  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
  Result<JsonNode> value() {
    if (event_.type == YAML_ALIAS_EVENT) return value_of_alias();
    JsonNode node;
    node.raw = raw();
    std::string anchor;
    if (event_.type == YAML_SCALAR_EVENT) {
      const auto& scalar = event_.data.scalar;
      anchor = characters(scalar.anchor);
      std::string text{characters(scalar.value), scalar.length};
      node.kind = scalar.plain_implicit != 0 ? resolve(text) : Kind::kString;
      node.text = documents_.back().tree.keep(std::move(text));
    } else {
      const bool map = event_.type == YAML_MAPPING_START_EVENT;
      anchor =
          characters(map ? event_.data.mapping_start.anchor : event_.data.sequence_start.anchor);
      anchors_.erase(anchor);  // it does not contain itself
      node.kind = map ? Kind::kObject : Kind::kArray;
      if (++depth_ > codec::kMaxJsonDepth) return refuse_depth();
      PODQOS_TRY(map ? read_members(node) : read_elements(node));
      --depth_;
      node.raw = {node.raw.begin(), raw().end()};
    }
    if (!anchor.empty()) {
      PODQOS_TRY(count_copy(node));
      anchors_.insert_or_assign(std::move(anchor), node);
    }
    return node;
  }

  Result<JsonNode> value_of_alias() {
    const std::string anchor = characters(event_.data.alias.anchor);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      return refuse_here(ErrorCode::kInvalidArgument, "unknown anchor ", printable(anchor));
    PODQOS_TRY(count_copy(found->second));
    JsonNode node = found->second;
    node.raw = raw();
    return node;
  }

  /// Counts what is stored again: a few lines of aliases can expand to billions of values.
  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
  Status count_copy(const JsonNode& node) {
    if (++copied_ > codec::kMaxJsonValues)
      return refuse_here(ErrorCode::kTooLarge, "aliases stand for more than ",
                         codec::kMaxJsonValues, " values");
    if (depth_ > codec::kMaxJsonDepth) return refuse_depth();
    ++depth_;
    for (const JsonNode& child : node.children)
      PODQOS_TRY(count_copy(child));
    --depth_;
    return {};
  }
  [[nodiscard]] std::unexpected<Error> refuse_depth() const {
    return refuse_here(ErrorCode::kTooLarge, "nests deeper than ", codec::kMaxJsonDepth);
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
  Status read_elements(JsonNode& array) {
    for (;;) {
      PODQOS_TRY(next());
      if (event_.type == YAML_SEQUENCE_END_EVENT) return {};
      PODQOS_ASSIGN(array.children.emplace_back(), value());
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
  Status read_members(JsonNode& map) {
    Places places;
    for (;;) {
      PODQOS_TRY(next());
      if (event_.type == YAML_MAPPING_END_EVENT) return {};
      // Names are strings, whatever they look like.
      if (event_.type == YAML_SCALAR_EVENT) event_.data.scalar.plain_implicit = 0;
      PODQOS_ASSIGN(const JsonNode key, value());
      if (key.kind == Kind::kArray || key.kind == Kind::kObject)
        return refuse_here(ErrorCode::kInvalidArgument, "has a key that is not a scalar");
      PODQOS_TRY(next());
      PODQOS_ASSIGN(JsonNode member, value());
      member.key = key.text;
      member.raw_key = key.raw;
      PODQOS_TRY(key.raw == "<<" ? merge(map, places, std::move(member))
                                 : put(map, places, std::move(member)));
    }
  }

  /// Adds a member to a map. As Kubernetes' parser does, unlike YAML's draft for merge keys, a
  /// later one replaces an earlier one. Only a map's own keys, not merged ones, have to be unique.
  /// @note mapping() and merge() of go.yaml.in/yaml/v2 decode.go
  [[nodiscard]] Status put(JsonNode& map, Places& places, JsonNode member) const {
    const auto [place, is_new] = places.try_emplace(member.key, map.children.size());
    if (is_new) map.children.emplace_back();
    JsonNode& earlier = map.children[place->second];
    if (!earlier.raw_key.empty() && !member.raw_key.empty())
      return refuse_here(ErrorCode::kInvalidArgument, "repeats the key ", printable(member.key));
    earlier = std::move(member);
    return {};
  }

  /// Adds the members of the value of a merge key: of a map, or of several, of which the first
  /// counts most. They have no JsonNode::raw_key.
  [[nodiscard]] Status merge(JsonNode& map, Places& places, JsonNode value) const {
    const bool several = value.kind == Kind::kArray;
    std::vector<JsonNode> maps =
        several ? std::move(value.children) : std::vector{std::move(value)};
    for (JsonNode& each : maps | std::views::reverse) {
      if (each.kind != Kind::kObject)
        return refuse_here(ErrorCode::kInvalidArgument,
                           "has a merge key (<<) whose value is neither a map nor a list of maps");
      for (JsonNode& member : each.children) {
        member.raw_key = {};
        PODQOS_TRY(put(map, places, std::move(member)));
      }
    }
    return {};
  }

  std::string_view text_;
  std::vector<std::size_t> offsets_;  ///< of the characters, and the end
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Document> documents_;
  std::map<std::string, JsonNode, std::less<>> anchors_;
  std::size_t depth_ = 0;   ///< of what is being read
  std::size_t copied_ = 0;  ///< values that anchors and aliases stand for, in all documents
};

}  // namespace

Result<std::vector<Document>> parse_yaml(std::string_view text) {
  if (text.size() > kMaxInput)
    return fail(ErrorCode::kTooLarge, cat("input is larger than ", kMaxInput, " bytes"));
  return YamlReader{text}.read();
}

}  // namespace podqos::ctl
