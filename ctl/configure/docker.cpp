#include "ctl/configure/docker.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

constexpr const char* kDaemonJson = "/etc/docker/daemon.json";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kJsonSpace = " \t\r\n";

/// What the file has to say.
nlohmann::json wanted() {
  return {{"runtimes", {{kHandler, {{"path", kWrapperPath}}}}}};
}

/// ", add by hand" and the member, for the end of an error.
std::string add_by_hand() {
  return cat("; add to \"runtimes\" by hand: \"", kHandler, "\": {\"path\": \"", kWrapperPath,
             "\"}");
}

/// "FILE:LINE: " of a view into `text`.
std::string daemon_json_place(std::string_view text, std::string_view inner) {
  const std::string_view before{text.begin(), inner.begin()};
  return cat(kDaemonJson, ":", std::ranges::count(before, '\n') + 1, ": ");
}

/// The member `key` of the object, nullptr if it is absent; an error if it is there twice.
Result<const JsonNode*> find_member(std::string_view text, const JsonNode& object,
                                    std::string_view key) {
  const JsonNode* found = nullptr;
  for (const JsonNode& member : object.children) {
    if (member.key != key) continue;
    if (found != nullptr) {
      return fail(ErrorCode::kInvalidArgument, cat(daemon_json_place(text, member.raw_key), "\"",
                                                   key, "\" stands here a second time"));
    }
    found = &member;
  }
  return found;
}

/// daemon.json, as far as podqos has to do with it: members of the tree, or nullptr.
struct DaemonJson {
  codec::JsonTree tree;
  const JsonNode* runtimes = nullptr;
  const JsonNode* podqos = nullptr;           ///< in runtimes
  const JsonNode* default_runtime = nullptr;  ///< "default-runtime"
};

/// Parses what is not empty.
/// @param text  must outlive the result
Result<DaemonJson> parse_daemon_json(std::string_view text) {
  auto tree = codec::parse_json_tree(text, {.bytes = kMaxInput});
  if (!tree) return fail(std::move(tree).error().with_context(kDaemonJson));
  DaemonJson found{.tree = std::move(*tree)};
  if (found.tree.kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument,
                cat(daemon_json_place(text, found.tree.raw), "is not an object"));
  auto runtimes = find_member(text, found.tree, "runtimes");
  if (!runtimes) return fail(std::move(runtimes).error());
  auto default_runtime = find_member(text, found.tree, "default-runtime");
  if (!default_runtime) return fail(std::move(default_runtime).error());
  found.runtimes = *runtimes;
  found.default_runtime = *default_runtime;
  // dockerd takes null for absent.
  if (found.runtimes != nullptr && found.runtimes->is_null()) found.runtimes = nullptr;
  if (found.runtimes == nullptr) return found;
  if (found.runtimes->kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument, cat(daemon_json_place(text, found.runtimes->raw_key),
                                                 "\"runtimes\" is not an object"));
  auto podqos = find_member(text, *found.runtimes, kHandler);
  if (!podqos) return fail(std::move(podqos).error());
  found.podqos = *podqos;
  return found;
}

/// Line break and indentation of an object's members; "" if they stand on one line.
std::string_view indentation_of(const JsonNode& object) {
  if (object.children.empty()) return {};
  const std::string_view space{object.raw.begin() + 1, object.children.front().raw_key.begin()};
  return space.contains('\n') ? space : std::string_view{};
}

/// An object with one member as lines below one that is indented by `indentation`, or on one line.
std::string nested(std::string_view key, const std::string& value, std::string_view indentation,
                   std::string_view unit) {
  const std::string member = cat("\"", key, "\": ", value);
  if (indentation.empty()) return cat("{", member, "}");
  return cat("{", indentation, unit, member, indentation, "}");
}

/// What one level is indented by, in an object whose members are indented by `indentation`.
std::string_view unit_of(std::string_view top_indentation) {
  const std::size_t newline = top_indentation.rfind('\n');
  return newline == std::string_view::npos ? std::string_view{}
                                           : top_indentation.substr(newline + 1);
}

/// The text with podqos's runtime, which it does not have yet.
Result<std::string> with_runtime(std::string_view text, const DaemonJson& found) {
  const std::string path = cat("\"", kWrapperPath, "\"");
  const std::string_view top = indentation_of(found.tree);
  const std::string_view unit = unit_of(top);
  if (found.runtimes != nullptr) {
    const std::vector<std::string> parent = {"runtimes"};
    const std::string_view inner = indentation_of(*found.runtimes);
    return json_set(text, parent, kHandler, nested("path", path, inner, unit));
  }
  const std::string inner = top.empty() ? "" : cat(top, unit);
  return json_set(text, {}, "runtimes",
                  nested(kHandler, nested("path", path, inner, unit), top, unit));
}

/// The text without a member of an object in it, and without the comma that belongs to it.
std::string without_member(std::string_view text, const JsonNode& object, const JsonNode& member) {
  const JsonNode& first = object.children.front();
  const JsonNode& last = object.children.back();
  const char* begin = member.raw_key.begin();
  const char* end = member.raw.end();
  if (&member != &last) {
    end = std::next(&member)->raw_key.begin();
  } else if (&member != &first) {
    begin = std::prev(&member)->raw.end();
  } else {
    begin = object.raw.begin() + 1;
    end = object.raw.end() - 1;
  }
  return cat(std::string_view{text.begin(), begin}, std::string_view{end, text.end()});
}

/// The text without podqos's runtime, and without the "runtimes" that it leaves empty.
std::string without_runtime(std::string_view text, const DaemonJson& found) {
  if (found.runtimes->children.size() == 1)
    return without_member(text, found.tree, *found.runtimes);
  return without_member(text, *found.runtimes, *found.podqos);
}

/// Whether the runtime's path is the wrapper's.
bool is_wrapper(const JsonNode& podqos) {
  const JsonNode* const path = json_member(podqos, "path");
  return path != nullptr && path->kind == Kind::kString && path->text == kWrapperPath;
}

/// Whether the runtime is what podqosctl writes.
bool is_own(const JsonNode& podqos) {
  return is_wrapper(podqos) && podqos.children.size() == 1;
}

/// A file's content and the byte order mark in front of it.
struct Content {
  std::string_view mark;
  std::string_view text;
};

Content split_mark(std::string_view bytes) {
  if (!bytes.starts_with(kByteOrderMark)) return {.mark = {}, .text = bytes};
  return {.mark = kByteOrderMark, .text = bytes.substr(kByteOrderMark.size())};
}

/// What registration makes of a file; the same bytes if it is there already.
Result<std::string> registered(const std::string& bytes) {
  const auto [mark, text] = split_mark(bytes);
  if (text.find_first_not_of(kJsonSpace) == std::string_view::npos)
    return cat(mark, format_docker());
  const auto found = parse_daemon_json(text);
  if (!found) return fail(found.error());
  if (found->podqos != nullptr) {
    if (is_wrapper(*found->podqos)) return bytes;
    return fail(
        ErrorCode::kConflict,
        cat(daemon_json_place(text, found->podqos->raw_key), "a runtime \"", kHandler,
            "\" is there already, and is not ", kWrapperPath, ": correct or remove it by hand"));
  }
  auto after = with_runtime(text, *found);
  if (!after) return fail(std::move(after).error());
  const auto before_values = nlohmann::json::parse(text, nullptr, false);
  if (nlohmann::json::parse(*after, nullptr, false) != merged(before_values, wanted()))
    return fail(ErrorCode::kConflict,
                cat(kDaemonJson, ":1: podqos's lines would change what it says"));
  return cat(mark, *after);
}

Status refuse_link(const FileState& state) {
  if (state.kind != FileState::Kind::kLink) return {};
  return fail(ErrorCode::kConflict, cat(kDaemonJson, ":1: is a symlink to ", printable(state.text),
                                        ", and podqosctl changes no file through a symlink"));
}

/// Adds the change that undoes a registration to `plan`, and says what becomes of the backup.
Status add_removal(FileState before, std::string rest, const ConfigSource& source,
                   ConfigurePlan& plan) {
  const auto backup = source.read(cat(kDaemonJson, kBackupSuffix));
  if (!backup) return fail(backup.error());
  FileChange change{.path = kDaemonJson,
                    .before = std::move(before),
                    .after = FileState::file(std::move(rest)),
                    .what = "runtime \"podqos\""};
  if (backup->kind == FileState::Kind::kFile) {
    const auto again = registered(backup->text);
    change.drop_backup =
        backup->text == change.after.text || (again && *again == change.before.text);
    if (change.drop_backup)
      change.after = *backup;
    else
      plan.notes.push_back(backup_stays(kDaemonJson));
  } else if (json_tree(split_mark(change.after.text).text).children.empty()) {
    change.after = {};
  }
  plan.changes.push_back(std::move(change));
  return {};
}

}  // namespace

std::string format_docker() {
  constexpr std::string_view kUnit = "  ";
  const std::string inner = nested("path", cat("\"", kWrapperPath, "\""), "\n    ", kUnit);
  return cat(nested("runtimes", nested(kHandler, inner, "\n  ", kUnit), "\n", kUnit), "\n");
}

Result<ConfigurePlan> plan_docker(const ConfigureRequest& /*request*/, const ConfigSource& source) {
  auto state = source.read(kDaemonJson);
  if (!state) return fail(std::move(state).error());
  const auto linked = refuse_link(*state);
  auto after = linked ? registered(state->text) : Result<std::string>{fail(linked.error())};
  if (!after) return fail(after.error().code, cat(after.error().message, add_by_hand()));
  if (*after == state->text)
    return nothing_to_do(cat(kDaemonJson, ": podqos is registered there already"));
  ConfigurePlan plan;
  const bool is_new = state->kind == FileState::Kind::kAbsent;
  plan.changes.push_back({.path = kDaemonJson,
                          .before = std::move(*state),
                          .after = FileState::file(std::move(*after)),
                          .what = "runtime \"podqos\"",
                          .backup = !is_new});
  return plan;
}

Result<ConfigurePlan> plan_docker_removal(const ConfigSource& source) {
  auto state = source.read(kDaemonJson);
  if (!state) return fail(std::move(state).error());
  const auto [mark, text] = split_mark(state->text);
  ConfigurePlan plan;
  if (text.find_first_not_of(kJsonSpace) == std::string_view::npos) return plan;
  if (auto linked = refuse_link(*state); !linked) return fail(std::move(linked).error());
  const auto found = parse_daemon_json(text);
  if (!found) return fail(found.error());
  if (found->podqos == nullptr) return plan;
  if (found->default_runtime != nullptr && found->default_runtime->text == kHandler)
    return fail(ErrorCode::kConflict, cat(daemon_json_place(text, found->default_runtime->raw_key),
                                          "default-runtime = \"", kHandler,
                                          "\" still needs podqos; change that line first"));
  if (!is_own(*found->podqos)) {
    return fail(ErrorCode::kConflict,
                cat(daemon_json_place(text, found->podqos->raw_key), "the runtime \"", kHandler,
                    "\" is not as podqosctl writes it; remove it by hand"));
  }
  std::string rest = cat(mark, without_runtime(text, *found));
  if (auto added = add_removal(std::move(*state), std::move(rest), source, plan); !added)
    return fail(std::move(added).error());
  return plan;
}

}  // namespace podqos::ctl
