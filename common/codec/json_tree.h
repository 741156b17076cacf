#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"

namespace podqos::codec {

/// How the names of members are compared.
enum class MemberNames : std::uint8_t {
  kExact,
  kAnyCase,  ///< as Go's encoding/json does, which reads "CPU" as "cpu"
};

/// Whether `key` is taken for the name of the member `name`.
/// @note Go's encoding/json folds as Unicode does: U+017F equals s, U+212A equals k.
[[nodiscard]] bool is_named(std::string_view key, std::string_view name, MemberNames names);

/// A JSON value from untrusted input. The tree is lossless: numbers keep their exact text, and
/// objects keep all members in order, duplicates included. Views are valid as long as the tree and
/// the text it was parsed from.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string_view key;      ///< name in the parent object
  std::string_view text;     ///< value of a string, digits of a number, "true" or "false"
  std::string_view raw_key;  ///< bytes of the name in the parsed text, with its quotes
  std::string_view raw;      ///< bytes of the value in the parsed text, without space around it
  /// Members of an object or elements of an array, in order.
  std::vector<JsonNode> children;

  /// Whether the value is the literal null.
  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  /// The member `name`, also if it is null; nullptr if it is absent or repeated.
  [[nodiscard]] const JsonNode* find(std::string_view name,
                                     MemberNames names = MemberNames::kAnyCase) const;
  /// The value at a JSON pointer without escapes (RFC 6901), "" for this one; nullptr as find().
  [[nodiscard]] const JsonNode* at(std::string_view pointer,
                                   MemberNames names = MemberNames::kAnyCase) const;
};

/// The tree of a whole text, and the strings of it that are not stored verbatim there (escapes). It
/// is moved, not copied.
class JsonTree : public JsonNode {
 public:
  /// Stores a string.
  /// @return a view that is valid as long as the tree, also after a move.
  std::string_view keep(std::string text) {
    return *kept_.emplace_back(std::make_unique<std::string>(std::move(text)));
  }

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
};

/// Where a part of a text begins, such as JsonNode::raw, for people: "byte 13", or "line 7, column
/// 3" in a text of several lines; each counted from 1, columns in characters of UTF-8.
/// @param part  may be empty, also at the end of the text
[[nodiscard]] std::string format_position(std::string_view text, std::string_view part);

/// "null", "boolean", "number", "string", "array" or "object".
[[nodiscard]] std::string_view format_kind(JsonNode::Kind kind);
/// A value for people, in one line: a string in quotes, a number, of the others the kind.
[[nodiscard]] std::string describe(const JsonNode& node);

/// An error of code kInvalidArgument, whose message is put together as by cat().
template <class... Parts>
[[nodiscard]] std::unexpected<Error> refuse_value(const Parts&... why) {
  return fail(ErrorCode::kInvalidArgument, cat(why...));
}

/// Whether comments are an error or white space. Where they are white space, as in files that
/// people write, a comma behind the last member or element is, too.
enum class JsonComments : std::uint8_t { kRefuse, kIgnore };

/// What is taken beside valid JSON.
enum class JsonRules : std::uint8_t {
  kStrict,  ///< nothing
  /// What Go's encoding/json takes, and so runc, also in members that are not read: numbers of any
  /// size, and what is not valid Unicode in strings, as U+FFFD (decode.go, unquoteBytes).
  kGo,
};

/// Levels of nested objects and arrays in the formats that podqos reads.
constexpr std::size_t kMaxJsonDepth = 64;

/// Most values that are stored of a text from an untrusted source. Each takes about a hundred bytes
/// of memory, and as few as three of text. Of a config.json podqos stores some hundred, however
/// many mounts and syscalls it has; of the spec of a large pod some thousand.
constexpr std::size_t kMaxJsonValues = 100'000;
/// For a bound that another one or the source of the text makes unnecessary.
constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

/// Limits of the parser.
struct JsonBounds {
  /// Length of the text; nesting of objects and arrays; members and elements in the tree.
  std::size_t bytes = std::size_t{1} << 20U;
  std::size_t depth = kMaxJsonDepth;
  std::size_t values = kMaxJsonValues;
  JsonComments comments = JsonComments::kRefuse;  ///< kIgnore accepts // and /* */
  JsonRules rules = JsonRules::kStrict;
  /// Whether anything in a member with this name is read, in an object that is the member `parent`,
  /// "" for the root and for elements; nullptr: in all. The others are checked like all text, but
  /// get no children, so that what `values` bounds is what podqos reads.
  bool (*is_read)(std::string_view parent, std::string_view name) = nullptr;
};

/// Parses a text.
/// @param text  must outlive the tree
/// @return kTooLarge beyond the bounds; kInvalidArgument for invalid JSON. Both with the position
/// (see format_position()) and the reason.
[[nodiscard]] Result<JsonTree> parse_json_tree(std::string_view text,
                                               const JsonBounds& bounds = {});

/// What was read of a text before its first syntax error.
struct JsonPrefix {
  /// Complete members and elements only. `raw` of what contains the error is empty.
  JsonTree tree;
  std::optional<Error> error;  ///< as parse_json_tree(); nullopt if the text is JSON
};

/// As parse_json_tree(), but keeps what was read before a syntax error.
[[nodiscard]] JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds = {});

}  // namespace podqos::codec
