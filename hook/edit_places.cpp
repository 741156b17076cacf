#include "hook/edit_places.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "common/codec/oci_edit.h"

namespace podqos::hook {

namespace {

/// Nesting up to which the scan recurses.
constexpr int kMaxDepth = 128;

struct Member {
  EditNode parent;
  std::string_view name;
  EditNode node;
};

constexpr std::array<Member, 23> kMembers = {{
    {EditNode::kRoot, "linux", EditNode::kLinux},
    {EditNode::kRoot, "process", EditNode::kProcess},
    {EditNode::kRoot, "hooks", EditNode::kHooks},
    {EditNode::kRoot, codec::kEditRecord, EditNode::kEditRecord},
    {EditNode::kLinux, "cgroupsPath", EditNode::kCgroupsPath},
    {EditNode::kLinux, "resources", EditNode::kResources},
    {EditNode::kResources, "cpu", EditNode::kCpu},
    {EditNode::kResources, "memory", EditNode::kMemory},
    {EditNode::kResources, "pids", EditNode::kPids},
    {EditNode::kResources, "hugepageLimits", EditNode::kHugepages},
    {EditNode::kResources, "unified", EditNode::kUnified},
    {EditNode::kHugepage, "pageSize", EditNode::kOfHugepage},
    {EditNode::kHugepage, "limit", EditNode::kOfHugepage},
    {EditNode::kUnified, "memory.swap.max", EditNode::kQuotedInteger},
    {EditNode::kUnified, "memory.oom.group", EditNode::kQuotedInteger},
    {EditNode::kCpu, "shares", EditNode::kInteger},
    {EditNode::kCpu, "quota", EditNode::kInteger},
    {EditNode::kCpu, "period", EditNode::kInteger},
    {EditNode::kMemory, "limit", EditNode::kInteger},
    {EditNode::kPids, "limit", EditNode::kInteger},
    {EditNode::kProcess, "oomScoreAdj", EditNode::kInteger},
    {EditNode::kHooks, "createRuntime", EditNode::kCreateRuntime},
    {EditNode::kHooks, "poststop", EditNode::kPoststop},
}};

}  // namespace

EditNode child_of(EditNode parent, std::string_view name, codec::MemberNames names) {
  if (parent == EditNode::kOther) return EditNode::kOther;
  const auto found = std::ranges::find_if(kMembers, [&](const Member& member) {
    return member.parent == parent && codec::is_member_name(name, member.name, names);
  });
  return found == kMembers.end() ? EditNode::kOther : found->node;
}

bool is_list(EditNode node) {
  return node == EditNode::kHugepages || node == EditNode::kCreateRuntime ||
         node == EditNode::kPoststop || node == EditNode::kEditRecord;
}

bool is_unset(std::string_view scalar) {
  return scalar == "null" || scalar == "0" || scalar == "-0";
}

EditPlaces::EditPlaces(std::string_view config, codec::MemberNames names)
    : config_(config), names_(names) {
  JsonCursor cursor{config};
  cursor.skip_space();
  value(cursor, EditNode::kOther, "", EditNode::kRoot, 0);
  cursor.skip_space();
  sound_ = cursor.at_end();
}

const Gap* EditPlaces::gap_at(std::size_t at) const {
  const auto found =
      std::ranges::find_if(gaps_, [&](const Gap& gap) { return gap.from <= at && at <= gap.to; });
  return found == gaps_.end() ? nullptr : &*found;
}

const Scalar* EditPlaces::scalar_at(std::size_t begin, std::size_t end) const {
  const auto found = std::ranges::find_if(
      scalars_, [&](const Scalar& s) { return s.begin == begin && s.end == end; });
  return found == scalars_.end() ? nullptr : &*found;
}

bool EditPlaces::sets_the_same(const EditPlaces& other) const {
  const auto values = [](const EditPlaces& places) {
    std::vector<std::tuple<EditNode, std::string_view, std::string_view>> set;
    for (const Scalar& scalar : places.scalars_) {
      const std::string_view text = places.config_.substr(scalar.begin, scalar.end - scalar.begin);
      if (!is_unset(text)) set.emplace_back(scalar.parent, scalar.name, text);
    }
    return set;
  };
  return values(*this) == values(other);
}

bool EditPlaces::has(EditNode parent, std::string_view name) const {
  return std::ranges::any_of(present_, [&](const auto& present) {
    return present.first == parent && codec::is_member_name(present.second, name, names_);
  });
}

void EditPlaces::value(JsonCursor& cursor, EditNode parent, std::string_view name, EditNode node,
                       int depth) {
  if (depth > kMaxDepth) cursor.fail();
  if (!cursor.sound()) return;
  const std::size_t begin = cursor.at();
  if (cursor.accept('{')) {
    members(cursor, is_list(node) ? EditNode::kOther : node, '}', depth);
  } else if (cursor.accept('[')) {
    members(cursor, is_list(node) ? node : EditNode::kOther, ']', depth);
  } else {
    if (cursor.peek() == '"') {
      cursor.string();
    } else {
      cursor.literal();
    }
    if (node != EditNode::kOther)
      scalars_.push_back(
          {.begin = begin, .end = cursor.at(), .node = node, .parent = parent, .name = name});
  }
}

void EditPlaces::members(JsonCursor& cursor, EditNode node, char close, int depth) {
  bool first = true;
  while (cursor.sound()) {
    const std::size_t from = cursor.at();
    cursor.skip_space();
    const bool ends = cursor.peek() == close;
    // Only the gap at the end: elsewhere a leading comma would not be valid.
    if (ends && node != EditNode::kOther) {
      gaps_.push_back({.from = from, .to = cursor.at(), .node = node, .behind_value = !first});
    }
    if (cursor.accept(close)) return;
    if (!first) {
      cursor.expect(',');
      cursor.skip_space();
    }
    first = false;
    EditNode child = node == EditNode::kHugepages ? EditNode::kHugepage : EditNode::kOther;
    std::string_view name;
    if (close == '}') {
      name = cursor.string();
      if (node != EditNode::kOther) present_.emplace_back(node, name);
      child = child_of(node, name, names_);
      cursor.skip_space();
      cursor.expect(':');
      cursor.skip_space();
    }
    value(cursor, node, name, child, depth + 1);
  }
}

}  // namespace podqos::hook
