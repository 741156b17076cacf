#include "common/codec/oci_state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// podqos's bounds; the runtime-spec has none.
constexpr std::size_t kMaxIdSize = 1024;
constexpr std::size_t kMaxBundleSize = 4096;

/// Printable ASCII without space: an id appears in log lines.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// Reads the members of a state that podqos knows; errors name the member and its position.
class StateReader {
 public:
  explicit StateReader(std::string_view text) : text_(text) {}

  Result<OciState> read(const JsonNode& root);

 private:
  using Reader = Status (StateReader::*)(const JsonNode& value);

  Status read_id(const JsonNode& value);
  Status read_pid(const JsonNode& value);
  Status read_bundle(const JsonNode& value);
  Status read_annotations(const JsonNode& value);
  /// Reads one member with `reader`, unless it is absent or null.
  Status read_member(const JsonNode& root, std::string_view name, Kind kind, Reader reader);
  /// @param part  the name or value that the error is about
  [[nodiscard]] std::unexpected<Error> refuse(std::string_view name, std::string_view part,
                                              std::string_view problem,
                                              ErrorCode code = ErrorCode::kInvalidArgument) const {
    return fail(code, cat(printable(name), " at ", format_position(text_, part), ": ", problem));
  }

  std::string_view text_;
  OciState state_;
};

Status StateReader::read_member(const JsonNode& root, std::string_view name, Kind kind,
                                Reader reader) {
  const JsonNode* found = nullptr;
  for (const JsonNode& member : root.children) {
    if (member.key != name) continue;
    if (found != nullptr) return refuse(name, member.raw_key, "member is repeated");
    found = &member;
  }
  if (found == nullptr || found->is_null()) return {};
  if (found->kind != kind) {
    return refuse(name, found->raw,
                  cat("expected ", format_kind(kind), ", found ", format_kind(found->kind)));
  }
  return (this->*reader)(*found);
}

Status StateReader::read_id(const JsonNode& value) {
  const std::string_view text = value.text;
  if (text.size() > kMaxIdSize)
    return refuse("id", value.raw, cat("longer than ", kMaxIdSize, " bytes"));
  if (!is_printable(text)) {
    return refuse("id", value.raw, cat("\"", printable(text), "\" contains unprintable bytes"));
  }
  state_.id = text;
  return {};
}

Status StateReader::read_pid(const JsonNode& value) {
  const auto number = parse_int(value.text);
  if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
    return refuse("pid", value.raw,
                  cat("expected an integer from 0 to 2147483647, found ", printable(value.text)));
  }
  // crun writes 0 in poststop, where runc omits the member.
  if (*number != 0) state_.pid = Pid{*number};
  return {};
}

Status StateReader::read_bundle(const JsonNode& value) {
  if (value.text.size() > kMaxBundleSize)
    return refuse("bundle", value.raw, cat("longer than ", kMaxBundleSize, " bytes"));
  if (value.text.contains('\0')) return refuse("bundle", value.raw, "contains a NUL byte");
  state_.bundle = value.text;
  return {};
}

Status StateReader::read_annotations(const JsonNode& value) {
  for (const JsonNode& member : value.children) {
    if (!is_known_annotation(member.key)) continue;
    const std::string key{member.key};
    if (state_.annotations.contains(key))
      return refuse(key, member.raw_key, "annotation is repeated");
    if (member.kind != Kind::kString) return refuse(key, member.raw, "expected a string");
    if (member.text.size() > kMaxAnnotationSize) {
      return refuse(key, member.raw, cat("longer than ", kMaxAnnotationSize, " bytes"),
                    ErrorCode::kTooLarge);
    }
    if (state_.annotations.size() == kMaxKnownAnnotations) {
      return refuse("annotations", member.raw,
                    cat("more than ", kMaxKnownAnnotations, " that podqos reads"),
                    ErrorCode::kTooLarge);
    }
    state_.annotations.emplace(key, member.text);
  }
  return {};
}

Result<OciState> StateReader::read(const JsonNode& root) {
  if (root.kind != Kind::kObject) return refuse("state", root.raw, "expected an object");
  struct Field {
    std::string_view name;
    Kind kind;
    Reader reader;
  };
  static constexpr std::array<Field, 4> kFields{{
      {"id", Kind::kString, &StateReader::read_id},
      {"pid", Kind::kNumber, &StateReader::read_pid},
      {"bundle", Kind::kString, &StateReader::read_bundle},
      {"annotations", Kind::kObject, &StateReader::read_annotations},
  }};
  for (const auto& [name, kind, reader] : kFields) {
    if (Status status = read_member(root, name, kind, reader); !status)
      return fail(std::move(status).error());
  }
  if (state_.id.empty()) return fail(ErrorCode::kInvalidArgument, "id is missing or empty");
  return std::move(state_);
}

}  // namespace

Result<OciState> parse_oci_state(std::string_view text) {
  const auto is_read = [](std::string_view parent, std::string_view name) {
    return parent.empty() && name == "annotations";
  };
  const auto tree = parse_json_tree(text, {.bytes = kMaxStateSize, .is_read = is_read});
  auto state = tree ? StateReader{text}.read(*tree) : fail(tree.error());
  if (!state) return fail(std::move(state).error().with_context("OCI state"));
  return state;
}

}  // namespace podqos::codec
