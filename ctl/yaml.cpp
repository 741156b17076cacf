#include "ctl/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "ctl/json_text.h"
#include "ctl/yaml_tree.h"

namespace podqos::ctl {
namespace {

/// Plain words as Kubernetes' YAML 1.1 parser reads them (sigs.k8s.io/yaml).
constexpr std::array kTrueWords = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                   "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array kFalseWords = {"false", "False", "FALSE", "no", "No", "NO",
                                    "off",   "Off",   "OFF",   "n",  "N"};
constexpr std::array kNullWords = {"", "~", "null", "Null", "NULL"};

/// Whether `words` contain `text`.
bool is_one_of(const auto& words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

/// Whether `text` is a non-empty run of ASCII digits.
bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// An integer of 64 bits in Go's syntax, 0x1f, 0o17, 017 or 0b101, in decimal digits.
std::optional<std::string> prefixed_integer(std::string_view digits) {
  if (digits.size() < 2 || digits.front() != '0') return std::nullopt;
  const char kind = static_cast<char>(digits[1] | 0x20);
  const bool named = kind == 'x' || kind == 'o' || kind == 'b';
  digits.remove_prefix(named ? 2 : 1);
  std::uint64_t value = 0;
  const auto [last, error] = std::from_chars(digits.begin(), digits.end(), value,
                                             kind == 'x'   ? 16
                                             : kind == 'b' ? 2
                                                           : 8);
  if (error != std::errc{} || last != digits.end()) return std::nullopt;
  return std::to_string(value);
}

/// Whether `text` is empty or the exponent of a number.
bool is_power(std::string_view text) {
  if (text.empty()) return true;
  text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return is_digits(text);
}

/// A number as Kubernetes' parser reads it, such as 1.50, 0644, 0x1f, +5, 1_000 or .5, as JSON
/// spells it, else digit by digit; nullopt for other text.
/// @note resolve() of go.yaml.in/yaml/v2, which sigs.k8s.io/yaml uses
std::optional<std::string> number_of(std::string_view text) {
  if (text.empty() || !std::string_view{"+-.0123456789"}.contains(text.front()))
    return std::nullopt;
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != '_'; });
  std::string_view digits = plain;
  const std::string_view sign = digits.starts_with('-') ? "-" : "";
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (const auto integer = prefixed_integer(digits)) return cat(sign, *integer);
  const std::string_view power = digits.substr(std::min(digits.find_first_of("eE"), digits.size()));
  digits.remove_suffix(power.size());
  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::string_view whole = digits.substr(0, point);
  const std::string_view fraction = digits.substr(std::min(point + 1, digits.size()));
  if (!is_digits(cat(whole, fraction)) || !is_power(power)) return std::nullopt;
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  return cat(sign, whole.empty() ? "0" : whole, fraction.empty() ? "" : ".", fraction, power);
}

/// The JSON value of a plain scalar.
std::string plain_json(std::string_view text) {
  if (is_one_of(kNullWords, text)) return "null";
  if (is_one_of(kTrueWords, text)) return "true";
  if (is_one_of(kFalseWords, text)) return "false";
  return number_of(text).value_or(json_quote(text));
}

/// Converts a tree to JSON text within the bounds on nesting and size.
class Converter {
 public:
  /// Appends one value.
  /// @return kTooLarge beyond the bounds; kInvalidArgument for keys that JSON cannot have.
  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
  Status append(const YamlNode& node, std::size_t depth) {
    PODQOS_TRY(check_depth(depth));
    // Aliases share their node: a few lines can expand to billions of values.
    PODQOS_TRY(count(1));
    switch (node.kind) {
      case YamlNode::Kind::kScalar:
        out_ += node.plain ? plain_json(node.text) : json_quote(node.text);
        return {};
      case YamlNode::Kind::kSequence: return append_sequence(node, depth);
      case YamlNode::Kind::kMap: return append_map(node, depth);
    }
    return {};
  }
  std::string release() { return std::move(out_); }

 private:
  static Status check_depth(std::size_t depth) {
    if (depth <= codec::kMaxJsonDepth) return {};
    return fail(ErrorCode::kTooLarge, cat("nests deeper than ", codec::kMaxJsonDepth));
  }
  Status count(std::size_t more) {
    nodes_ += more;
    if (nodes_ <= kMaxYamlNodes && out_.size() <= kMaxInput) return {};
    return fail(ErrorCode::kTooLarge, cat("expands to more than ", kMaxYamlNodes, " values"));
  }

  // NOLINTNEXTLINE(misc-no-recursion): see append()
  Status append_sequence(const YamlNode& node, std::size_t depth) {
    std::string_view before = "[";
    for (const YamlNode* element : node.children) {
      out_ += std::exchange(before, ",");
      PODQOS_TRY(append(*element, depth + 1));
    }
    out_ += node.children.empty() ? "[]" : "]";
    return {};
  }

  /// A member of a map, its own or merged into it.
  struct Member {
    std::string key;
    const YamlNode* value = nullptr;
    bool merged = false;
  };
  using Members = std::vector<Member>;

  /// Appends a map as an object; keys have to be unique scalars.
  // NOLINTNEXTLINE(misc-no-recursion): see append()
  Status append_map(const YamlNode& node, std::size_t depth) {
    PODQOS_ASSIGN(const Members members, members_of(node, depth));
    std::string_view before = "{";
    for (const Member& member : members) {
      out_ += cat(std::exchange(before, ","), json_quote(member.key), ":");
      PODQOS_TRY(append(*member.value, depth + 1));
    }
    out_ += members.empty() ? "{}" : "}";
    return {};
  }

  /// The members of a map and of the maps that it merges. As Kubernetes' parser does, unlike YAML's
  /// draft for merge keys, a later one replaces an earlier one, merged or not.
  /// @note mapping() and merge() of go.yaml.in/yaml/v2 decode.go
  // NOLINTNEXTLINE(misc-no-recursion): see append()
  Result<Members> members_of(const YamlNode& map, std::size_t depth) {
    Members members;
    std::map<std::string, std::size_t, std::less<>> places;
    for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
      const YamlNode& key = *map.children[i];
      if (key.kind != YamlNode::Kind::kScalar)
        return fail(ErrorCode::kInvalidArgument, "has a key that is not a scalar");
      Members found = {{.key = key.text, .value = map.children[i + 1]}};
      if (key.is_merge_key()) {
        PODQOS_ASSIGN(found, merged_members(*map.children[i + 1], depth));
      }
      for (const Member& each : found) {
        const auto [place, is_new] = places.emplace(each.key, members.size());
        if (is_new) members.push_back(each);
        Member& earlier = members[place->second];
        if (!is_new && !earlier.merged && !each.merged)
          return fail(ErrorCode::kInvalidArgument, cat("repeats the key ", printable(each.key)));
        earlier = each;
      }
    }
    return members;
  }

  /// The members of the value of a merge key: of a map, or of several, of which the first counts
  /// most.
  // NOLINTNEXTLINE(misc-no-recursion): see append()
  Result<Members> merged_members(const YamlNode& value, std::size_t depth) {
    PODQOS_TRY(check_depth(depth));
    Members members;
    std::set<std::string, std::less<>> seen;
    const bool several = value.kind == YamlNode::Kind::kSequence;
    for (const YamlNode* map : several ? value.children : std::vector{&value}) {
      if (map->kind != YamlNode::Kind::kMap)
        return fail(ErrorCode::kInvalidArgument,
                    "has a merge key (<<) whose value is neither a map nor a list of maps");
      PODQOS_ASSIGN(Members merged, members_of(*map, depth + 1));
      // Maps that merge maps that merge maps can expand to billions.
      PODQOS_TRY(count(merged.size() + 1));
      for (Member& each : merged) {
        if (!seen.insert(each.key).second) continue;
        each.merged = true;
        members.push_back(std::move(each));
      }
    }
    return members;
  }

  std::string out_;
  std::size_t nodes_ = 0;
};

/// Whether a line starts a document (YAML 1.2, section 9.1.2).
bool is_separator(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || line[3] == ' ' || line[3] == '\t' ||
                                     line[3] == '\r' || line[3] == '\n');
}

/// Splits before each "---" line. Each part comes with the number of its first line, from 1.
std::vector<std::pair<std::string_view, std::size_t>> split(std::string_view text) {
  std::vector<std::pair<std::string_view, std::size_t>> parts;
  std::size_t begin = 0;
  std::size_t begin_line = 1;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (at > begin && is_separator(text.substr(at, end - at))) {
      parts.emplace_back(text.substr(begin, at - begin), begin_line);
      begin = at;
      begin_line = line;
    }
    at = end;
  }
  parts.emplace_back(text.substr(begin), begin_line);
  return parts;
}

/// Converts one document.
/// @param first_line  number of its first line in the stream, for messages
/// @return "" for a document that is empty or null.
Result<std::string> convert(std::string_view part, std::size_t first_line) {
  // A document nests one level deeper as JSON.
  constexpr codec::JsonBounds kBounds{
      .bytes = codec::kUnbounded, .depth = codec::kMaxJsonDepth + 1, .values = codec::kUnbounded};
  PODQOS_ASSIGN(const YamlTree tree, YamlTree::parse(part, first_line));
  if (tree.root == nullptr) return std::string{};
  Converter converter;
  auto status = converter.append(*tree.root, 0);
  std::string json = converter.release();
  if (status && json == "null") return std::string{};
  // Numbers are copied; no parser of JSON takes one such as 1e400.
  if (status)
    if (auto read = codec::parse_json_tree(json, kBounds); !read)
      status = fail(std::move(read).error());
  if (!status)
    return fail(
        std::move(status).error().with_context(cat("document that begins on line ", first_line)));
  return json;
}

}  // namespace

Result<std::vector<YamlDocument>> parse_yaml(std::string_view text) {
  if (text.size() > kMaxInput)
    return fail(ErrorCode::kTooLarge, cat("input is larger than ", kMaxInput, " bytes"));
  std::vector<YamlDocument> documents;
  for (const auto& [part, line] : split(text)) {
    PODQOS_ASSIGN(std::string json, convert(part, line));
    documents.push_back({.text = std::string{part}, .json = std::move(json)});
  }
  return documents;
}

}  // namespace podqos::ctl
