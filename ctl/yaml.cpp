#include "ctl/yaml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include <nlohmann/json.hpp>
#include <yaml.h>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// Plain words as Kubernetes' YAML 1.1 parser reads them (sigs.k8s.io/yaml).
constexpr std::string_view kTrueWords = "true True TRUE yes Yes YES on On ON y Y";
constexpr std::string_view kFalseWords = "false False FALSE no No NO off Off OFF n N";
constexpr std::string_view kNullWords = "~ null Null NULL";

/// An integer of 64 bits in Go's syntax, 0x1f, 0o17, 017 or 0b101, in decimal digits.
std::optional<std::string> prefixed_integer(std::string_view digits) {
  if (digits.size() < 2 || digits.front() != '0') return std::nullopt;
  const char kind = static_cast<char>(digits[1] | 0x20);
  const int base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
  digits.remove_prefix(base != 8 || kind == 'o' ? 2 : 1);
  std::uint64_t value = 0;
  const auto [last, error] = std::from_chars(digits.begin(), digits.end(), value, base);
  if (error != std::errc{} || last != digits.end()) return std::nullopt;
  return std::to_string(value);
}

/// A number as Kubernetes' parser reads it, such as 1.50, 0644, 0x1f, +5, 1_000 or .5, digit by
/// digit, in base ten; nullopt for other text.
/// @note resolve() of go.yaml.in/yaml/v2, which sigs.k8s.io/yaml uses
std::optional<std::string> number_of(std::string_view text) {
  if (text.starts_with('_')) return std::nullopt;
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != '_'; });
  std::string_view digits = plain;
  const std::string_view sign = digits.starts_with('-') ? "-" : "";
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (const auto integer = prefixed_integer(digits)) return cat(sign, *integer);
  double value = 0;
  const auto [last, error] = std::from_chars(digits.begin(), digits.end(), value);
  const bool is_number = error == std::errc{} && last == digits.end();
  // "inf" and "nan" are words.
  if (!is_number || (!is_digit(digits.front()) && digits.front() != '.')) return std::nullopt;
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

JsonNode node_of(Kind kind, std::string_view raw) {
  JsonNode node;
  node.kind = kind;
  node.raw = raw;
  return node;
}

/// What a value takes of the bounds.
struct Extent {
  std::size_t values = 1;  ///< with those below it
  std::size_t depth = 0;   ///< levels of objects and arrays
};
// NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
Extent extent_of(const JsonNode& node) {
  Extent extent;
  for (const JsonNode& child : node.children) {
    const Extent below = extent_of(child);
    extent.values += below.values;
    extent.depth = std::max(extent.depth, below.depth);
  }
  if (node.kind == Kind::kArray || node.kind == Kind::kObject) ++extent.depth;
  return extent;
}

/// Makes documents of libyaml's events.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size(); ++at)
      if ((static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U) offsets_.push_back(at);
    offsets_.push_back(text.size());
    ::yaml_parser_initialize(&parser_);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes are unsigned
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    ::yaml_parser_set_input_string(&parser_, bytes, text.size());
    ::yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    ::yaml_event_delete(&event_);
    ::yaml_parser_delete(&parser_);
  }

  Result<std::vector<Document>> read() {
    do {
      ::yaml_event_delete(&event_);
      if (::yaml_parser_parse(&parser_, &event_) == 0) return fail(syntax_error());
      if (auto added = add(); !added)
        return fail(
            std::move(added).error().with_context(cat("line ", event_.start_mark.line + 1)));
    } while (event_.type != YAML_STREAM_END_EVENT);
    return std::move(documents_);
  }

 private:
  /// A sequence or map that is being read.
  struct Open {
    JsonNode node;
    std::string anchor;
    std::optional<JsonNode> key;                     ///< in a map: of the value that comes next
    std::map<std::string_view, std::size_t> places;  ///< in a map: indices of its members
  };

  [[nodiscard]] Error syntax_error() const {
    std::string_view problem = parser_.problem == nullptr ? "cannot be read" : parser_.problem;
    if (problem.ends_with("<document start>"))
      problem = "documents must be separated by a line \"---\"";
    std::size_t line = parser_.problem_mark.line;
    if (parser_.error == YAML_READER_ERROR)
      line = static_cast<std::size_t>(
          std::ranges::count(text_.substr(0, parser_.problem_offset), '\n'));
    return {ErrorCode::kInvalidArgument, cat("line ", line + 1, ": ", problem)};
  }

  /// libyaml counts characters.
  [[nodiscard]] std::size_t byte_of(const yaml_mark_t& mark) const {
    return offsets_[std::min(mark.index, offsets_.size() - 1)];
  }

  Status add() {
    const std::size_t begin = byte_of(event_.start_mark);
    const std::string_view raw = text_.substr(begin, byte_of(event_.end_mark) - begin);
    switch (event_.type) {
      case YAML_DOCUMENT_START_EVENT: start_document(begin); return {};
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event_.data.scalar;
        std::string text{characters(scalar.value), scalar.length};
        const bool typed = scalar.plain_implicit != 0 && !awaits_key();
        JsonNode node = node_of(typed ? resolve(text) : Kind::kString, raw);
        node.text = documents_.back().tree.keep(std::move(text));
        PODQOS_TRY(take(1));
        return place(std::move(node), characters(scalar.anchor));
      }
      case YAML_SEQUENCE_START_EVENT:
        return open(node_of(Kind::kArray, raw), event_.data.sequence_start.anchor);
      case YAML_MAPPING_START_EVENT:
        return open(node_of(Kind::kObject, raw), event_.data.mapping_start.anchor);
      case YAML_ALIAS_EVENT: return place_alias(characters(event_.data.alias.anchor), raw);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        Open ended = std::move(open_.back());
        open_.pop_back();
        ended.node.raw = {ended.node.raw.begin(), raw.end()};
        return place(std::move(ended.node), ended.anchor);
      }
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT: return {};
    }
    return {};
  }

  /// @param begin  of a document; the first has what stands before it, too
  void start_document(std::size_t begin) {
    if (documents_.empty()) begin = 0;
    const std::string_view text = text_.substr(begin);
    if (!documents_.empty()) {
      std::string_view& last = documents_.back().text;
      last.remove_suffix(text.size());
    }
    documents_.push_back({.text = text, .tree = {}});
    anchors_.clear();
    left_ = codec::kMaxJsonValues - copied_;
  }

  /// Counts values. Aliases repeat what they refer to: a few lines can expand to billions.
  Status take(std::size_t values) {
    if (values > left_)
      return fail(ErrorCode::kTooLarge,
                  cat("has more than ", codec::kMaxJsonValues, " values, aliases expanded"));
    left_ -= values;
    return {};
  }
  [[nodiscard]] Status check_depth(std::size_t below) const {
    if (open_.size() + below <= codec::kMaxJsonDepth) return {};
    return fail(ErrorCode::kTooLarge, cat("nests deeper than ", codec::kMaxJsonDepth));
  }

  Status open(JsonNode node, const yaml_char_t* name) {
    PODQOS_TRY(check_depth(1));
    PODQOS_TRY(take(1));
    std::string anchor{characters(name)};
    anchors_.erase(anchor);  // it does not contain itself
    open_.push_back(
        {.node = std::move(node), .anchor = std::move(anchor), .key = {}, .places = {}});
    return {};
  }

  Status place_alias(std::string_view anchor, std::string_view raw) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      return fail(ErrorCode::kInvalidArgument, cat("unknown anchor ", printable(anchor)));
    const Extent extent = extent_of(found->second);
    PODQOS_TRY(check_depth(extent.depth));
    PODQOS_TRY(take(extent.values));
    copied_ += extent.values;
    JsonNode node = found->second;
    node.raw = raw;
    return place(std::move(node), "");
  }

  [[nodiscard]] bool awaits_key() const {
    return !open_.empty() && open_.back().node.kind == Kind::kObject && !open_.back().key;
  }

  /// Gives a complete value to what is being read.
  Status place(JsonNode node, std::string_view anchor) {
    if (!anchor.empty()) {
      PODQOS_TRY(take(extent_of(node).values));
      anchors_.insert_or_assign(std::string{anchor}, node);
    }
    if (open_.empty()) {
      static_cast<JsonNode&>(documents_.back().tree) = std::move(node);
      return {};
    }
    Open& parent = open_.back();
    if (parent.node.kind == Kind::kArray) {
      parent.node.children.push_back(std::move(node));
      return {};
    }
    if (awaits_key()) {
      if (node.kind == Kind::kArray || node.kind == Kind::kObject)
        return fail(ErrorCode::kInvalidArgument, "has a key that is not a scalar");
      parent.key = std::move(node);
      return {};
    }
    const JsonNode key = *std::exchange(parent.key, std::nullopt);
    if (key.raw == "<<") return merge(parent, std::move(node));
    node.key = key.text;
    node.raw_key = key.raw;
    return put(parent, std::move(node));
  }

  /// Adds a member to a map. As Kubernetes' parser does, unlike YAML's draft for merge keys, a
  /// later one replaces an earlier one. Only a map's own keys, not merged ones, have to be unique.
  /// @note mapping() and merge() of go.yaml.in/yaml/v2 decode.go
  static Status put(Open& map, JsonNode member) {
    std::vector<JsonNode>& members = map.node.children;
    const auto [place, is_new] = map.places.try_emplace(member.key, members.size());
    if (is_new) members.emplace_back();
    JsonNode& earlier = members[place->second];
    if (!earlier.raw_key.empty() && !member.raw_key.empty())
      return fail(ErrorCode::kInvalidArgument, cat("repeats the key ", printable(member.key)));
    earlier = std::move(member);
    return {};
  }

  /// Adds the members of the value of a merge key: of a map, or of several, of which the first
  /// counts most. They have no JsonNode::raw_key.
  static Status merge(Open& map, JsonNode value) {
    const bool several = value.kind == Kind::kArray;
    std::vector<JsonNode> maps =
        several ? std::move(value.children) : std::vector{std::move(value)};
    for (JsonNode& each : maps | std::views::reverse) {
      if (each.kind != Kind::kObject)
        return fail(ErrorCode::kInvalidArgument,
                    "has a merge key (<<) whose value is neither a map nor a list of maps");
      for (JsonNode& member : each.children) {
        member.raw_key = {};
        PODQOS_TRY(put(map, std::move(member)));
      }
    }
    return {};
  }

  std::string_view text_;
  std::vector<std::size_t> offsets_;  ///< of the characters, and the end
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Document> documents_;
  std::vector<Open> open_;  ///< the innermost last
  std::map<std::string, JsonNode, std::less<>> anchors_;
  std::size_t left_ = 0;    ///< values that the document may still have
  std::size_t copied_ = 0;  ///< values that aliases stand for, in all documents
};

/// The value for comparisons: the text of a number or word in brackets, unlike a string's.
// NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
nlohmann::json value_of(const JsonNode& node) {
  if (node.is_null()) return nullptr;
  if (node.kind == Kind::kString) return node.text;
  auto value = node.kind == Kind::kObject ? nlohmann::json::object() : nlohmann::json::array();
  for (const JsonNode& child : node.children) {
    if (node.kind == Kind::kObject)
      value[std::string{child.key}] = value_of(child);
    else
      value.push_back(value_of(child));
  }
  if (node.kind == Kind::kNumber || node.kind == Kind::kBoolean) value.push_back({{}, node.text});
  return value;
}

}  // namespace

Result<std::vector<Document>> parse_yaml(std::string_view text) {
  if (text.size() > kMaxInput)
    return fail(ErrorCode::kTooLarge, cat("input is larger than ", kMaxInput, " bytes"));
  return Reader{text}.read();
}

Result<std::string> insert_yaml(const Document& document, std::span<const Insertion> insertions) {
  PODQOS_ASSIGN(auto text, insert_members(document.text, document.tree, insertions, Syntax::kYaml));
  nlohmann::json expected = value_of(document.tree);
  for (const Insertion& insertion : insertions) {
    std::string pointer = cat("/", insertion.path);
    std::ranges::replace(pointer, '.', '/');
    for (const auto& [key, value] : insertion.members)
      expected[nlohmann::json::json_pointer{pointer}][key] = value;
  }
  const auto read = parse_yaml(text);
  if (!read || read->size() != 1 || value_of(read->front().tree) != expected)
    return fail(ErrorCode::kInvalidArgument, "the edited document has another value");
  return text;
}

}  // namespace podqos::ctl
