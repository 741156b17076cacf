#include "hook/edit_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::hook {

namespace {

/// The members that podqos edits, and their parents.
enum class Node : std::uint8_t {
  kOther,
  kRoot,
  kLinux,
  kResources,
  kCpu,
  kMemory,
  kPids,
  kProcess,
  kHooks,
  kUnified,  // objects
  kHugepages,
  kCreateRuntime,
  kPoststop,  // lists
  kCgroupsPath,
  kInteger,
  kQuotedInteger  // scalars
};

struct Member {
  Node parent;
  std::string_view name;
  Node node;
};

constexpr std::array<Member, 19> kMembers = {{
    {Node::kRoot, "linux", Node::kLinux},
    {Node::kRoot, "process", Node::kProcess},
    {Node::kRoot, "hooks", Node::kHooks},
    {Node::kLinux, "cgroupsPath", Node::kCgroupsPath},
    {Node::kLinux, "resources", Node::kResources},
    {Node::kResources, "cpu", Node::kCpu},
    {Node::kResources, "memory", Node::kMemory},
    {Node::kResources, "pids", Node::kPids},
    {Node::kResources, "hugepageLimits", Node::kHugepages},
    {Node::kResources, "unified", Node::kUnified},
    {Node::kUnified, "memory.swap.max", Node::kQuotedInteger},
    {Node::kUnified, "memory.oom.group", Node::kQuotedInteger},
    {Node::kCpu, "shares", Node::kInteger},
    {Node::kCpu, "quota", Node::kInteger},
    {Node::kCpu, "period", Node::kInteger},
    {Node::kMemory, "limit", Node::kInteger},
    {Node::kPids, "limit", Node::kInteger},
    {Node::kProcess, "oomScoreAdj", Node::kInteger},
    {Node::kHooks, "createRuntime", Node::kCreateRuntime},
}};

/// The node of a member by its parent and name; kOther for one that podqos does not edit.
Node child_of(Node parent, std::string_view name) {
  if (parent == Node::kOther) return Node::kOther;
  if (parent == Node::kHooks && name == "poststop") return Node::kPoststop;
  const auto found = std::ranges::find_if(kMembers, [&](const Member& member) {
    return member.parent == parent && member.name == name;
  });
  return found == kMembers.end() ? Node::kOther : found->node;
}

bool is_list(Node node) {
  return node == Node::kHugepages || node == Node::kCreateRuntime || node == Node::kPoststop;
}

/// Scans JSON's structure, not its values. After anything unexpected sound() stays false.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool sound() const { return sound_; }
  [[nodiscard]] bool at_end() const { return sound_ && at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void fail() { sound_ = false; }

  void skip_space() {
    while (accept(' ') || accept('\t') || accept('\r') || accept('\n')) {
    }
  }
  bool accept(char c) {
    if (!sound_ || peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  bool accept_text(std::string_view expected) {
    if (!sound_ || !text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  /// The raw text between the quotes.
  std::string_view string() {
    expect('"');
    const std::size_t begin = at_;
    std::size_t end = text_.find('"', begin);
    while (end != std::string_view::npos && is_escaped(begin, end))
      end = text_.find('"', end + 1);
    if (end == std::string_view::npos) fail();
    if (!sound_) return {};
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  /// A number, true, false or null: all bytes up to the next structural character.
  void literal() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !std::string_view{" \t\r\n,:{}[]\""}.contains(text_[at_]))
      ++at_;
    if (at_ == begin) fail();
  }

 private:
  /// Whether the byte at `end` follows an odd number of backslashes.
  [[nodiscard]] bool is_escaped(std::size_t begin, std::size_t end) const {
    std::size_t at = end;
    while (at > begin && text_[at - 1] == '\\')
      --at;
    return (end - at) % 2 != 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

/// A range of white space where members or elements may be inserted into an object or array.
struct Gap {
  std::size_t from;
  std::size_t to;
  Node node;
  bool behind_value;  ///< the inserted text must start with a comma
};

/// A scalar that may be replaced, as a range of offsets.
struct Scalar {
  std::size_t begin;
  std::size_t end;
  Node node;
};

/// Nesting up to which the scan recurses.
constexpr int kMaxDepth = 128;

/// The gaps and scalars of the members that podqos edits, in one config.json.
class Places {
 public:
  static std::optional<Places> find(std::string_view config) {
    Places places;
    Cursor cursor{config};
    cursor.skip_space();
    places.value(cursor, Node::kRoot, 0);
    cursor.skip_space();
    if (!cursor.at_end()) return std::nullopt;
    return places;
  }

  [[nodiscard]] const Gap* gap_at(std::size_t at) const {
    const auto found =
        std::ranges::find_if(gaps_, [&](const Gap& gap) { return gap.from <= at && at <= gap.to; });
    return found == gaps_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Scalar* scalar_at(std::size_t begin, std::size_t end) const {
    const auto found = std::ranges::find_if(
        scalars_, [&](const Scalar& s) { return s.begin == begin && s.end == end; });
    return found == scalars_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has(Node parent, std::string_view name) const {
    return std::ranges::find(present_, std::pair{parent, name}) != present_.end();
  }

 private:
  void value(Cursor& cursor, Node node, int depth) {
    if (depth > kMaxDepth) cursor.fail();
    if (!cursor.sound()) return;
    const std::size_t begin = cursor.at();
    if (cursor.accept('{')) {
      members(cursor, is_list(node) ? Node::kOther : node, '}', depth);
    } else if (cursor.accept('[')) {
      members(cursor, is_list(node) ? node : Node::kOther, ']', depth);
    } else {
      if (cursor.peek() == '"') {
        cursor.string();
      } else {
        cursor.literal();
      }
      if (node != Node::kOther)
        scalars_.push_back({.begin = begin, .end = cursor.at(), .node = node});
    }
  }

  void members(Cursor& cursor, Node node, char close, int depth) {
    bool first = true;
    while (cursor.sound()) {
      const std::size_t from = cursor.at();
      cursor.skip_space();
      const bool ends = cursor.peek() == close;
      // Only the gap at the end: elsewhere a leading comma would not be valid.
      if (ends && node != Node::kOther) {
        gaps_.push_back({.from = from, .to = cursor.at(), .node = node, .behind_value = !first});
      }
      if (cursor.accept(close)) return;
      if (!first) {
        cursor.expect(',');
        cursor.skip_space();
      }
      first = false;
      Node child = Node::kOther;
      if (close == '}') {
        const std::string_view name = cursor.string();
        if (node != Node::kOther) present_.emplace_back(node, name);
        child = child_of(node, name);
        cursor.skip_space();
        cursor.expect(':');
        cursor.skip_space();
      }
      value(cursor, child, depth + 1);
    }
  }

  std::vector<Gap> gaps_;
  std::vector<Scalar> scalars_;
  std::vector<std::pair<Node, std::string_view>> present_;
};

/// Checks inserted text against the grammar of what podqos writes: no white space, known members.
class Inserted {
 public:
  Inserted(std::string_view text, std::string_view cgroups_path,
           const codec::HookRegistration& hooks)
      : cursor_(text), cgroups_path_(cgroups_path), hooks_(hooks) {}

  bool is_value(Node node) {
    value(node);
    return cursor_.at_end();
  }

  bool is_members(const Gap& gap, const Places& places) {
    if (gap.behind_value) cursor_.expect(',');
    if (is_list(gap.node)) {
      elements(gap.node);
    } else {
      for (const std::string_view name : members(gap.node)) {
        if (places.has(gap.node, name)) cursor_.fail();
      }
    }
    return cursor_.at_end();
  }

 private:
  std::string_view member(Node parent) {
    const std::string_view name = cursor_.string();
    const Node node = child_of(parent, name);
    cursor_.expect(':');
    value(node);
    return name;
  }

  void value(Node node) {
    switch (node) {
      case Node::kOther: cursor_.fail(); return;
      case Node::kInteger: integer(); return;
      case Node::kQuotedInteger:
        cursor_.expect('"');
        integer();
        cursor_.expect('"');
        return;
      case Node::kCgroupsPath:
        // Compared byte by byte: an escape could encode a path that the caller has not checked.
        if (!cursor_.accept_text(codec::quote_json(cgroups_path_))) cursor_.fail();
        return;
      case Node::kHugepages:
      case Node::kCreateRuntime:
      case Node::kPoststop: list(node); return;
      case Node::kRoot:
      case Node::kLinux:
      case Node::kResources:
      case Node::kCpu:
      case Node::kMemory:
      case Node::kPids:
      case Node::kProcess:
      case Node::kHooks:
      case Node::kUnified: object(node); return;
    }
  }

  void object(Node node) {
    cursor_.expect('{');
    static_cast<void>(members(node));
    cursor_.expect('}');
  }

  /// Reads members and returns their names. A repeated name, which would hide the first, fails.
  std::vector<std::string_view> members(Node parent) {
    std::vector<std::string_view> names;
    do {
      const std::string_view name = member(parent);
      if (std::ranges::find(names, name) != names.end()) cursor_.fail();
      names.push_back(name);
    } while (cursor_.accept(','));
    return names;
  }

  void list(Node node) {
    cursor_.expect('[');
    elements(node);
    cursor_.expect(']');
  }

  void elements(Node node) {
    do {
      element(node);
    } while (cursor_.accept(','));
  }

  void element(Node node) {
    if (node != Node::kHugepages) {
      const std::string_view stage = node == Node::kCreateRuntime ? "createRuntime" : "poststop";
      if (!cursor_.accept_text(codec::hook_literal(hooks_, stage))) cursor_.fail();
      return;
    }
    if (!cursor_.accept_text(R"({"pageSize":)")) cursor_.fail();
    if (!is_page_size(cursor_.string())) cursor_.fail();
    if (!cursor_.accept_text(R"(,"limit":)")) cursor_.fail();
    integer();
    cursor_.expect('}');
  }

  void integer() {
    cursor_.accept('-');
    int digits = 0;
    while (cursor_.sound() && cursor_.peek() >= '0' && cursor_.peek() <= '9') {
      cursor_.accept(cursor_.peek());
      ++digits;
    }
    constexpr int kMaxDigits = 19;
    if (digits == 0 || digits > kMaxDigits) cursor_.fail();
  }

  static bool is_page_size(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view unit = text.substr(digits);
    return digits > 0 &&
           (unit == "B" || unit == "KB" || unit == "MB" || unit == "GB" || unit == "TB");
  }

  Cursor cursor_;
  std::string_view cgroups_path_;
  const codec::HookRegistration& hooks_;
};

}  // namespace

Status check_splices(const std::vector<codec::Splice>& splices, std::string_view config,
                     std::string_view cgroups_path, const codec::HookRegistration& hooks) {
  const auto places = Places::find(config);
  if (!places)
    return fail(ErrorCode::kConflict,
                "the parser process requested an edit of a config.json that is not a JSON object");
  const Gap* filled = nullptr;
  for (const codec::Splice& splice : splices) {
    Inserted inserted{splice.text, cgroups_path, hooks};
    bool fits = false;
    if (splice.begin == splice.end) {
      const Gap* gap = places->gap_at(splice.begin);
      // Two insertions at one position would need a comma between them.
      fits = gap != nullptr && gap != filled && inserted.is_members(*gap, *places);
      filled = gap;
    } else if (const Scalar* scalar = places->scalar_at(splice.begin, splice.end)) {
      // podqos never changes a number that the engine has set.
      const std::string_view old = config.substr(splice.begin, splice.end - splice.begin);
      const bool unset = old == "null" || old == "0" || old == "-0";
      fits = (unset || scalar->node == Node::kCgroupsPath) && inserted.is_value(scalar->node);
    }
    if (!fits) {
      return fail(ErrorCode::kConflict,
                  cat("the parser process requested an edit that podqos never makes: \"",
                      printable(splice.text), "\""));
    }
  }
  return {};
}

}  // namespace podqos::hook
