#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/codec/oci_schema.h"
#include "hook/json_cursor.h"

namespace podqos::hook {

/// The members that podqos edits, and their parents.
enum class EditNode : std::uint8_t {
  kOther,
  kRoot,
  kLinux,
  kResources,
  kCpu,
  kMemory,
  kPids,
  kProcess,
  kHooks,
  kUnified,
  kHugepage,  // objects
  kHugepages,
  kCreateRuntime,
  kPoststop,
  kEditRecord,  // lists
  kCgroupsPath,
  kInteger,
  kQuotedInteger,
  kOfHugepage  // scalars
};

/// The node of a member by its parent and name; kOther for one that podqos does not edit.
[[nodiscard]] EditNode child_of(EditNode parent, std::string_view name,
                                codec::MemberNames names = codec::MemberNames::kExact);
/// Whether the node is an array.
[[nodiscard]] bool is_list(EditNode node);

/// A range of white space where members or elements may be inserted into an object or array.
struct Gap {
  std::size_t from;
  std::size_t to;
  EditNode node;
  bool behind_value;  ///< the inserted text must start with a comma
};

/// A scalar of a member that podqos edits, as a range of offsets.
struct Scalar {
  std::size_t begin;
  std::size_t end;
  EditNode node;
  EditNode parent;
  std::string_view name;
};

/// Whether the text of a scalar stands for a value that the engine has not set.
[[nodiscard]] bool is_unset(std::string_view scalar);

/// The gaps and scalars of the members that podqos edits, in one config.json. They are found by a
/// scan that only follows braces, strings and member names.
class EditPlaces {
 public:
  /// @param config  the bytes of config.json; must outlive this object
  explicit EditPlaces(std::string_view config,
                      codec::MemberNames names = codec::MemberNames::kAnyCase);

  [[nodiscard]] codec::MemberNames names() const { return names_; }
  [[nodiscard]] std::string_view config() const { return config_; }
  /// False for a config.json that is not one JSON value; there are no places then.
  [[nodiscard]] bool sound() const { return sound_; }
  /// The gap around this offset; nullptr if there is none.
  [[nodiscard]] const Gap* gap_at(std::size_t at) const;
  /// The scalar at exactly this range; nullptr if there is none.
  [[nodiscard]] const Scalar* scalar_at(std::size_t begin, std::size_t end) const;
  /// Whether all scalars that are set have the same values in both.
  [[nodiscard]] bool sets_the_same(const EditPlaces& other) const;
  /// Whether an object that podqos edits has a member of this name.
  [[nodiscard]] bool has(EditNode parent, std::string_view name) const;

 private:
  void value(JsonCursor& cursor, EditNode parent, std::string_view name, EditNode node, int depth);
  void members(JsonCursor& cursor, EditNode node, char close, int depth);

  std::string_view config_;
  codec::MemberNames names_;
  bool sound_ = false;
  std::vector<Gap> gaps_;
  std::vector<Scalar> scalars_;
  std::vector<std::pair<EditNode, std::string_view>> present_;
};

}  // namespace podqos::hook
