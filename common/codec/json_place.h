#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

/// A value of a JSON tree and the way to it: reads members, and names in errors the path of what is
/// wrong, its position, the value and what was expected. A place must not outlive the one it was
/// reached from.
class JsonPlace {
 public:
  /// The root of a tree.
  /// @param name  of the root in errors, which paths leave out
  /// @param text  what it was parsed from; "": errors tell no positions
  explicit JsonPlace(const JsonNode& root, std::string_view name = {}, std::string_view text = {},
                     MemberNames names = MemberNames::kExact)
      : node_(&root), name_(name), text_(text), names_(names) {}

  /// Whether the value is there: members that are absent or null are not.
  [[nodiscard]] explicit operator bool() const { return node_ != nullptr; }
  [[nodiscard]] const JsonNode* node() const { return node_; }
  /// JsonNode::text; "" if the value is not there.
  [[nodiscard]] std::string_view text() const { return node_ == nullptr ? "" : node_->text; }
  /// JsonNode::children; none if the value is not there.
  [[nodiscard]] std::span<const JsonNode> children() const {
    return node_ == nullptr ? std::span<const JsonNode>{} : node_->children;
  }
  /// The place of one of children().
  [[nodiscard]] JsonPlace child(const JsonNode& node) const { return {*this, node.key, &node}; }

  /// The member `name` of any kind.
  /// @return kInvalidArgument if it is repeated: parsers differ in which one they use.
  [[nodiscard]] Result<JsonPlace> member(std::string_view name) const;
  /// The member `name`; kInvalidArgument also if it is of another kind.
  [[nodiscard]] Result<JsonPlace> member(std::string_view name, JsonNode::Kind kind) const;
  /// The member `name` as an integer; nullopt if it is not there.
  /// @return kInvalidArgument unless it is an integer within the range, without fraction or
  ///         exponent.
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view name,
                                                            std::int64_t least = kInt64Min,
                                                            std::int64_t most = kInt64Max) const;
  /// Sets `out` to the member `name`, a string, if it is there.
  [[nodiscard]] Status read_text(std::string_view name, std::string& out) const;

  /// kInvalidArgument unless the value is there and of this kind.
  [[nodiscard]] Status expect(JsonNode::Kind kind) const;
  /// "linux.resources.hugepageLimits[1]"
  [[nodiscard]] std::string path() const;
  /// "<path> at <position>: <problem>"
  [[nodiscard]] std::unexpected<Error> refuse(std::string_view problem,
                                              ErrorCode code = ErrorCode::kInvalidArgument) const;
  /// The same for a member whose name its parent has twice.
  [[nodiscard]] std::unexpected<Error> refuse_repeated() const;

 private:
  JsonPlace(const JsonPlace& parent, std::string_view name, const JsonNode* node)
      : node_(node), parent_(&parent), name_(name), text_(parent.text_), names_(parent.names_) {}

  [[nodiscard]] std::unexpected<Error> unexpected(std::string_view expected) const;

  const JsonNode* node_ = nullptr;
  const JsonPlace* parent_ = nullptr;
  std::string_view name_;
  std::string_view text_;
  MemberNames names_;
};

}  // namespace podqos::codec
