#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "ctl/cli/json.h"
#include "ctl/configure/lines.h"
#include "ctl/explain/document.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;

/// The JSON of a file's bytes: without a byte order mark, an empty object for an empty file.
std::string_view daemon_text(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  return trimmed(bytes).empty() ? "{}" : bytes;
}

/// The error of the line of `inner`, a view into `text`; without the name of the file in front.
template <class... Parts>
std::unexpected<Error> refuse_at(std::string_view text, std::string_view inner,
                                 const Parts&... why) {
  const std::string_view before{text.begin(), inner.begin()};
  return refuse(":", std::ranges::count(before, '\n') + 1, ": ", why...);
}

/// The member `key` of an object; nullptr if it is absent or null, which dockerd takes for absent;
/// an error if it is there twice.
Result<const JsonNode*> find_member(std::string_view text, const JsonNode& object,
                                    std::string_view key) {
  const JsonNode* const last = json_at(object, key);
  if (last == nullptr || object.find(key, codec::MemberNames::kExact) != nullptr) return last;
  return refuse_at(text, last->raw_key, "duplicate key \"", key, "\"");
}

/// The values as text, indented as `like` is: by the space in front of its first member, or on one
/// line if there is no line break.
std::string format_like(const Json& values, std::string_view like) {
  const std::size_t quote = like.find('"');
  const std::size_t begin = like.substr(0, quote).rfind('\n') + 1;
  const int size = quote == std::string_view::npos ? 2
                   : begin == 0                    ? -1
                                                   : static_cast<int>(quote - begin);
  const char fill = like.substr(begin).starts_with('\t') ? '\t' : ' ';
  return values.dump(size, fill, false, Json::error_handler_t::replace) + "\n";
}

/// Whether the runtime's path is the wrapper's.
bool is_wrapper(const JsonNode& podqos) {
  const JsonNode* const path = json_at(podqos, "path");
  return path != nullptr && path->kind == JsonNode::Kind::kString && path->text == kWrapperPath;
}

/// What is to become of daemon.json.
struct DaemonEdit {
  bool undo = false;
  bool set_default = false;
};

/// The members of daemon.json that concern podqos, in its text; nullptr where absent.
struct DaemonMembers {
  std::string_view text;
  const JsonNode* chosen = nullptr;   ///< "default-runtime"
  const JsonNode* podqos = nullptr;   ///< among "runtimes"
  const JsonNode* program = nullptr;  ///< of the chosen one, its "path"

  [[nodiscard]] bool is_default() const { return chosen != nullptr && chosen->text == kHandler; }
};

Result<DaemonMembers> find_members(std::string_view text, const JsonNode& tree) {
  if (tree.kind != JsonNode::Kind::kObject) return refuse_at(text, tree.raw, "is not an object");
  DaemonMembers found{.text = text};
  PODQOS_ASSIGN(found.chosen, find_member(text, tree, "default-runtime"));
  PODQOS_ASSIGN(const JsonNode* const runtimes, find_member(text, tree, "runtimes"));
  if (runtimes == nullptr) return found;
  if (runtimes->kind != JsonNode::Kind::kObject)
    return refuse_at(text, runtimes->raw_key, "\"runtimes\" is not an object");
  PODQOS_ASSIGN(found.podqos, find_member(text, *runtimes, kHandler));
  if (found.chosen == nullptr) return found;
  PODQOS_ASSIGN(const JsonNode* const chosen, find_member(text, *runtimes, found.chosen->text));
  if (chosen != nullptr) found.program = json_at(*chosen, "path");
  return found;
}

/// Refuses what its owner has to change.
Status check_registration(const DaemonMembers& found, DaemonEdit edit) {
  if (found.podqos != nullptr && !is_wrapper(*found.podqos)) {
    auto refused = refuse_at(found.text, found.podqos->raw_key, "a runtime \"", kHandler,
                             "\" is there already, and is not ", kWrapperPath,
                             ": correct or remove it by hand");
    refused.error().code = ErrorCode::kAlreadyExists;
    return refused;
  }
  if (!edit.set_default || found.chosen == nullptr || found.is_default()) return {};
  const std::string_view name = found.chosen->text;
  const std::string_view program = found.program == nullptr ? name : found.program->text;
  if (has_word("runc crun", leaf_of(program))) return {};
  return refuse_at(found.text, found.chosen->raw_key, "the default runtime is \"", printable(name),
                   "\"", program == name ? "" : cat(" (", printable(program), ")"),
                   ", which podqos-runtime calls only if \"runtimes\" of podqos.json names it; "
                   "write \"default-runtime\": \"",
                   kHandler, "\" there by hand");
}

/// The values with podqos's registration, or without it.
Json with_registration(Json values, DaemonEdit edit, bool is_default) {
  values.merge_patch(Json::parse(edit.undo ? R"({"runtimes": {"podqos": null}})" : kDockerDaemon));
  if (values["runtimes"].empty()) values.erase("runtimes");
  if (edit.set_default) values["default-runtime"] = kHandler;
  if (edit.undo && is_default) values.erase("default-runtime");
  return values;
}

/// What registration, or its removal, makes of a file; the same bytes if that is done already.
/// @return an error without the name of the file in front
Result<std::string> edited(const std::string& bytes, DaemonEdit edit) {
  const std::string_view text = daemon_text(bytes);
  const auto tree = codec::parse_json_tree(text, {.bytes = kMaxInput});
  if (!tree) return fail(tree.error().code, cat(": ", tree.error().message));
  PODQOS_ASSIGN(const DaemonMembers found, find_members(text, *tree));
  if (edit.undo) {
    if (found.podqos == nullptr) return bytes;
    if (!is_wrapper(*found.podqos) || found.podqos->children.size() != 1)
      return refuse_at(text, found.podqos->raw_key, "the runtime \"", kHandler,
                       "\" is not as podqosctl writes it; remove it by hand");
  } else {
    PODQOS_TRY(check_registration(found, edit));
    if (found.podqos != nullptr && (found.is_default() || !edit.set_default)) return bytes;
  }
  return format_like(with_registration(Json::parse(text), edit, found.is_default()), text);
}

}  // namespace

/// Driver and default runtime are the daemon's to tell (ask_docker()): its options count, too.
Result<EngineSettings> inspect_docker(Setup& /*setup*/) {
  return EngineSettings{};
}

Status plan_docker(Setup& setup) {
  const std::string file = setup.config_file();
  const std::string by_hand =
      cat("; add to \"runtimes\" by hand: \"", kHandler, "\": {\"path\": \"", kWrapperPath, "\"}");
  PODQOS_TRY(add_change(
      setup,
      {.path = file,
       .what = cat(setup.set_default ? "default " : "", "runtime \"podqos\""),
       .backup = !setup.undo},
      setup.undo ? "" : by_hand,
      [&](const auto& text) {
        auto made = edited(text.value_or(""), {setup.undo, setup.set_default});
        if (!made) made.error().message.insert(0, file);
        return made;
      },
      [](const FileChange& change, const std::string& backup) {
        return edited(backup, {}) == change.before.text ||
               edited(backup, {.set_default = true}) == change.before.text;
      }));
  if (!setup.undo && !setup.changed())
    setup.notes.push_back(cat(file, ": podqos is registered there already"));
  return {};
}

}  // namespace podqos::ctl
