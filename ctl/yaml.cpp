#include "ctl/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <spanstream>
#include <string>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "ctl/json_text.h"

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

/// Whether `text` is a number by JSON's grammar (RFC 8259, section 6).
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
    if (!is_digits(power)) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos) {
    if (!is_digits(text.substr(point + 1))) return false;
    text = text.substr(0, point);
  }
  return is_digits(text) && (text.size() == 1 || text.front() != '0');
}

/// The decimal text of an integer of Go's syntax: 0x1f, 0o17, 017, 0b101; nullopt for other text,
/// and for integers beyond 64 bits.
std::optional<std::string> prefixed_integer(std::string_view digits) {
  if (digits.size() < 2 || digits.front() != '0') return std::nullopt;
  constexpr std::array kBases = {std::pair{'x', 16}, std::pair{'o', 8}, std::pair{'b', 2}};
  const char kind = static_cast<char>(digits[1] | 0x20);
  const auto* const base = std::ranges::find(kBases, kind, &std::pair<char, int>::first);
  const bool named = base != kBases.end();
  digits.remove_prefix(named ? 2 : 1);
  std::uint64_t value = 0;
  const auto [last, error] =
      std::from_chars(digits.begin(), digits.end(), value, named ? base->second : 8);
  if (error != std::errc{} || last != digits.end()) return std::nullopt;
  return std::to_string(value);
}

/// "007.50e3" as a JSON number, "7.50e3"; nullopt unless it is one of YAML 1.1 without sign.
std::optional<std::string> decimal_number(std::string_view text) {
  const std::string_view power = text.substr(std::min(text.find_first_of("eE"), text.size()));
  text.remove_suffix(power.size());
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string_view whole = text.substr(0, point);
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  if (whole.empty() && fraction.empty()) return std::nullopt;
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  std::string number =
      cat(whole.empty() ? "0" : whole, fraction.empty() ? "" : ".", fraction, power);
  if (!is_json_number(number)) return std::nullopt;
  return number;
}

/// A number that Kubernetes' parser reads and JSON spells otherwise, such as 0644, 0x1f, +5, 1_000
/// or .5, as JSON; nullopt for other text.
/// @note resolve() of go.yaml.in/yaml/v2, which sigs.k8s.io/yaml uses
std::optional<std::string> number_of_go(std::string_view text) {
  if (text.empty() || !std::string_view{"+-.0123456789"}.contains(text.front()))
    return std::nullopt;
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != '_'; });
  std::string_view digits = plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  auto number = prefixed_integer(digits);
  if (!number) number = decimal_number(digits);
  if (!number) return std::nullopt;
  return negative && *number != "0" ? cat("-", *number) : *number;
}

/// The JSON value of a plain scalar.
std::string plain_json(std::string_view text) {
  if (is_one_of(kNullWords, text)) return "null";
  if (is_one_of(kTrueWords, text)) return "true";
  if (is_one_of(kFalseWords, text)) return "false";
  if (is_json_number(text)) return std::string{text};
  return number_of_go(text).value_or(json_quote(text));
}

/// Converts a node tree to JSON text within the bounds on nesting and size.
class Converter {
 public:
  /// Appends one value.
  /// @return kTooLarge beyond the bounds; kInvalidArgument for keys that JSON cannot have.
  Status append(const YAML::Node& node, std::size_t depth) {
    if (depth > codec::kMaxJsonDepth)
      return fail(ErrorCode::kTooLarge, cat("nests deeper than ", codec::kMaxJsonDepth));
    // Aliases share their node: a few lines can expand to billions of values.
    if (++nodes_ > kMaxYamlNodes || out_.size() > kMaxInput)
      return fail(ErrorCode::kTooLarge, cat("expands to more than ", kMaxYamlNodes, " values"));
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: out_ += "null"; return {};
      case YAML::NodeType::Scalar: append_scalar(node); return {};
      case YAML::NodeType::Sequence: return append_sequence(node, depth);
      case YAML::NodeType::Map: return append_map(node, depth);
    }
    return {};
  }
  std::string release() { return std::move(out_); }

 private:
  /// Appends a scalar; only a plain one can be anything but a string.
  void append_scalar(const YAML::Node& node) {
    // "?" is the tag of a plain scalar, "!" of a quoted one.
    const bool plain = node.Tag() == "?" || node.Tag().empty();
    out_ += plain ? plain_json(node.Scalar()) : json_quote(node.Scalar());
  }

  /// Appends a sequence as an array.
  Status append_sequence(const YAML::Node& node, std::size_t depth) {
    out_ += '[';
    bool first = true;
    for (const auto& element : node) {
      if (!std::exchange(first, false)) out_ += ',';
      if (auto status = append(element, depth + 1); !status) return status;
    }
    out_ += ']';
    return {};
  }

  /// A member of a map, its own or merged into it.
  struct Member {
    std::string key;
    YAML::Node value;
    bool merged = false;
  };

  /// Appends a map as an object; keys have to be unique scalars.
  Status append_map(const YAML::Node& node, std::size_t depth) {
    std::vector<Member> members;
    if (auto status = collect(node, depth, members); !status) return status;
    out_ += '{';
    bool first = true;
    for (const Member& member : members) {
      if (!std::exchange(first, false)) out_ += ',';
      out_ += cat(json_quote(member.key), ":");
      if (auto status = append(member.value, depth + 1); !status) return status;
    }
    out_ += '}';
    return {};
  }

  /// Adds the members of a map and of the maps that it merges. As Kubernetes' parser does, unlike
  /// YAML's draft for merge keys, a later one replaces an earlier one, merged or not.
  /// @note mapping() and merge() of go.yaml.in/yaml/v2 decode.go
  Status collect(const YAML::Node& map, std::size_t depth, std::vector<Member>& members) {
    std::map<std::string, std::size_t, std::less<>> places;
    for (const auto& member : map) {
      auto found = found_in(member.first, member.second, depth);
      if (!found) return fail(std::move(found).error());
      for (const Member& each : *found) {
        const auto [place, is_new] = places.emplace(each.key, members.size());
        if (is_new) members.push_back({.key = each.key, .value = {}, .merged = true});
        if (auto status = replace(members[place->second], each); !status) return status;
      }
    }
    return {};
  }

  /// One entry of a map: itself, or what a merge key brings.
  Result<std::vector<Member>> found_in(const YAML::Node& key, const YAML::Node& value,
                                       std::size_t depth) {
    if (!key.IsScalar()) return fail(ErrorCode::kInvalidArgument, "has a key that is not a scalar");
    std::vector<Member> found;
    if (key.Scalar() != "<<" || key.Tag() != "?") {
      found.push_back({.key = key.Scalar(), .value = value});
    } else if (auto status = collect_merged(value, depth, found); !status) {
      return fail(std::move(status).error());
    }
    return found;
  }

  /// @return kInvalidArgument if both are the map's own.
  static Status replace(Member& earlier, const Member& later) {
    if (!earlier.merged && !later.merged)
      return fail(ErrorCode::kInvalidArgument, cat("repeats the key ", printable(later.key)));
    earlier.value.reset(later.value);
    earlier.merged = later.merged;
    return {};
  }

  /// Adds the members of the value of a merge key: a map, or several, of which the first counts
  /// most.
  Status collect_merged(const YAML::Node& value, std::size_t depth, std::vector<Member>& members) {
    if (depth > codec::kMaxJsonDepth)
      return fail(ErrorCode::kTooLarge, cat("nests deeper than ", codec::kMaxJsonDepth));
    std::vector<YAML::Node> maps;
    if (value.IsSequence()) {
      std::ranges::copy(value, std::back_inserter(maps));
    } else {
      maps.push_back(value);
    }
    std::set<std::string, std::less<>> seen;
    for (const YAML::Node& map : maps) {
      if (!map.IsMap())
        return fail(ErrorCode::kInvalidArgument,
                    "has a merge key (<<) whose value is neither a map nor a list of maps");
      std::vector<Member> merged;
      if (auto status = collect(map, depth + 1, merged); !status) return status;
      // Maps that merge maps that merge maps can expand to billions.
      nodes_ += merged.size() + 1;
      if (nodes_ > kMaxYamlNodes)
        return fail(ErrorCode::kTooLarge, cat("expands to more than ", kMaxYamlNodes, " values"));
      for (Member& each : merged) {
        if (!seen.insert(each.key).second) continue;
        each.merged = true;
        members.push_back(std::move(each));
      }
    }
    return {};
  }

  std::string out_;
  std::size_t nodes_ = 0;
};

/// Whether a line starts a document (YAML 1.2, section 9.1.2).
bool is_separator(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || line[3] == ' ' || line[3] == '\t' ||
                                     line[3] == '\r' || line[3] == '\n');
}

/// Splits before each "---" line. Each part comes with the number of its first line, from 0.
std::vector<std::pair<std::string_view, int>> split(std::string_view text) {
  std::vector<std::pair<std::string_view, int>> parts;
  std::size_t begin = 0;
  int begin_line = 0;
  int line = 0;
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

/// Throws at the second document of a text. yaml-cpp before 0.9 reads nothing of a comma outside of
/// brackets, and makes documents of it until memory ends.
class SingleDocument final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (begin_ == mark.pos) throw YAML::ParserException(mark, "unexpected character");
    if (begin_) throw YAML::ParserException(mark, "documents must be separated by a line \"---\"");
    begin_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  std::optional<int> begin_;  ///< position of the first document
};

/// Throws unless the text has one document, or none.
void check_single_document(std::string_view text) {
  std::ispanstream stream{text};
  YAML::Parser parser{stream};
  SingleDocument handler;
  while (parser.HandleNextDocument(handler)) {
  }
}

/// Converts one document.
/// @param first_line  number of its first line in the stream, counted from 0, for messages
/// @return "" for a document that is empty or null.
Result<std::string> convert(std::string_view part, int first_line) {
  // yaml-cpp reports errors as exceptions, which are converted here.
  try {
    const std::string text{part};
    check_single_document(text);
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) return std::string{};
    Converter converter;
    if (auto status = converter.append(document, 0); !status)
      return fail(std::move(status).error().with_context(
          cat("document that begins on line ", first_line + 1)));
    return converter.release();
  } catch (const YAML::Exception& exception) {
    return fail(ErrorCode::kInvalidArgument,
                cat("line ", first_line + exception.mark.line + 1, ": ", exception.msg));
  }
}

}  // namespace

Result<std::vector<YamlDocument>> parse_yaml(std::string_view text) {
  // A document nests one level deeper as JSON.
  constexpr codec::JsonBounds kBounds{
      .bytes = codec::kUnbounded, .depth = codec::kMaxJsonDepth + 1, .values = codec::kUnbounded};
  if (text.size() > kMaxInput)
    return fail(ErrorCode::kTooLarge, cat("input is larger than ", kMaxInput, " bytes"));
  std::vector<YamlDocument> documents;
  for (const auto& [part, line] : split(text)) {
    auto json = convert(part, line);
    if (!json) return fail(std::move(json).error());
    // Numbers are copied; no parser of JSON takes one such as 1e400.
    if (auto tree = codec::parse_json_tree(*json, kBounds); !json->empty() && !tree)
      return fail(
          std::move(tree).error().with_context(cat("document that begins on line ", line + 1)));
    documents.push_back({.text = std::string{part}, .json = std::move(*json)});
  }
  return documents;
}

}  // namespace podqos::ctl
