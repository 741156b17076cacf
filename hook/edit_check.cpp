#include "hook/edit_check.h"

#include <algorithm>
#include <string>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "hook/former_config.h"
#include "hook/json_cursor.h"

namespace podqos::hook {

namespace {

/// Checks inserted text against the grammar of what podqos writes: no white space, known members.
class Inserted {
 public:
  Inserted(std::string_view text, std::string_view cgroups_path,
           const codec::HookRegistration& hooks)
      : cursor_(text), cgroups_path_(cgroups_path), hooks_(hooks) {}

  bool is_value(EditNode node) {
    value(node);
    return cursor_.at_end();
  }

  bool is_members(const Gap& gap, const EditPlaces& places) {
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
  std::string_view member(EditNode parent) {
    const std::string_view name = cursor_.string();
    const EditNode node = child_of(parent, name);
    cursor_.expect(':');
    value(node);
    return name;
  }

  void value(EditNode node) {
    switch (node) {
      case EditNode::kOther:
      case EditNode::kHugepage:
      case EditNode::kOfHugepage: cursor_.fail(); return;
      case EditNode::kInteger: integer(); return;
      case EditNode::kQuotedInteger:
        cursor_.expect('"');
        integer();
        cursor_.expect('"');
        return;
      case EditNode::kCgroupsPath:
        // Compared byte by byte: an escape could encode a path that the caller has not checked.
        if (!cursor_.accept_text(codec::quote_json(cgroups_path_))) cursor_.fail();
        return;
      case EditNode::kHugepages:
      case EditNode::kCreateRuntime:
      case EditNode::kPoststop:
      case EditNode::kEditRecord: list(node); return;
      case EditNode::kRoot:
      case EditNode::kLinux:
      case EditNode::kResources:
      case EditNode::kCpu:
      case EditNode::kMemory:
      case EditNode::kPids:
      case EditNode::kProcess:
      case EditNode::kHooks:
      case EditNode::kUnified: object(node); return;
    }
  }

  void object(EditNode node) {
    cursor_.expect('{');
    static_cast<void>(members(node));
    cursor_.expect('}');
  }

  /// Reads members and returns their names. A repeated name, which would hide the first, fails.
  std::vector<std::string_view> members(EditNode parent) {
    std::vector<std::string_view> names;
    do {
      const std::string_view name = member(parent);
      if (std::ranges::find(names, name) != names.end()) cursor_.fail();
      names.push_back(name);
    } while (cursor_.accept(','));
    return names;
  }

  void list(EditNode node) {
    cursor_.expect('[');
    elements(node);
    cursor_.expect(']');
  }

  void elements(EditNode node) {
    do {
      element(node);
    } while (cursor_.accept(','));
  }

  /// What it says is checked once it is applied: see check_record().
  void recorded() {
    if (!cursor_.accept_text(R"({"at":)")) cursor_.fail();
    cursor_.string();
    for (const std::string_view name : {R"(,"is":)", R"(,"was":)"}) {
      if (!cursor_.accept_text(name)) continue;
      if (cursor_.peek() == '"') {
        cursor_.string();
      } else {
        cursor_.literal();
      }
    }
    cursor_.expect('}');
  }

  void element(EditNode node) {
    if (node == EditNode::kEditRecord) return recorded();
    if (node != EditNode::kHugepages) {
      const std::string_view stage =
          node == EditNode::kCreateRuntime ? "createRuntime" : "poststop";
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

  JsonCursor cursor_;
  std::string_view cgroups_path_;
  const codec::HookRegistration& hooks_;
};

}  // namespace

Status check_splices(const std::vector<codec::Splice>& splices, const EditPlaces& places,
                     std::string_view cgroups_path, const codec::HookRegistration& hooks) {
  if (!places.sound())
    return fail(ErrorCode::kConflict,
                "the parser process requested an edit of a config.json that is not a JSON object");
  const Gap* filled = nullptr;
  for (const codec::Splice& splice : splices) {
    Inserted inserted{splice.text, cgroups_path, hooks};
    bool fits = false;
    if (splice.begin == splice.end) {
      const Gap* gap = places.gap_at(splice.begin);
      // Two insertions at one position would need a comma between them.
      fits = gap != nullptr && gap != filled && inserted.is_members(*gap, places);
      filled = gap;
    } else if (const Scalar* scalar = places.scalar_at(splice.begin, splice.end)) {
      // podqos never changes a number that the engine has set.
      const std::string_view old = places.config().substr(splice.begin, splice.end - splice.begin);
      fits = (is_unset(old) || scalar->node == EditNode::kCgroupsPath) &&
             inserted.is_value(scalar->node);
    }
    if (!fits) {
      return fail(ErrorCode::kConflict,
                  cat("the parser process requested an edit that podqos never makes: \"",
                      printable(splice.text), "\""));
    }
  }
  return {};
}

Status check_record(std::string_view edited, const EditPlaces& places) {
  const std::string former = former_config(std::string{edited});
  const EditPlaces found{former, places.names()};
  if (found.sound() && found.sets_the_same(places)) return {};
  return fail(ErrorCode::kConflict,
              "the parser process recorded an edit that it does not make: the next one would "
              "replace a value of the engine");
}

}  // namespace podqos::hook
