#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "ctl/configure/lines.h"
#include "ctl/document.h"
#include "ctl/json.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

constexpr const char* kDaemonJson = "/etc/docker/daemon.json";
constexpr std::string_view kRuntimesKey = "runtimes";

/// The JSON of a file's bytes: without a byte order mark, an empty object for an empty file.
std::string_view daemon_text(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  return bytes.find_first_not_of(" \t\r\n") == std::string_view::npos ? "{}" : bytes;
}

/// Refuses with the line of `inner`, a view into `text`.
template <class... Parts>
std::unexpected<Error> refuse_at(std::string_view text, std::string_view inner,
                                 const Parts&... why) {
  const std::string_view before{text.begin(), inner.begin()};
  return refuse(kDaemonJson, ":", std::ranges::count(before, '\n') + 1, ": ", why...);
}

/// The member `key` of the object; nullptr if it is absent or null, which dockerd takes for absent;
/// an error if it is there twice.
Result<const JsonNode*> find_member(std::string_view text, const JsonNode& object,
                                    std::string_view key) {
  const JsonNode* found = nullptr;
  for (const JsonNode& member : object.children) {
    if (member.key != key) continue;
    if (found != nullptr) return refuse_at(text, member.raw_key, "duplicate key \"", key, "\"");
    found = &member;
  }
  return found == nullptr || found->is_null() ? nullptr : found;
}

/// daemon.json, as far as podqos has to do with it: members of the tree, or nullptr.
struct DaemonJson {
  codec::JsonTree tree;
  const JsonNode* podqos = nullptr;           ///< in runtimes
  const JsonNode* default_runtime = nullptr;  ///< "default-runtime"
};

/// @param text  must outlive the result
Result<DaemonJson> parse_daemon_json(std::string_view text) {
  auto tree = codec::parse_json_tree(text, {.bytes = kMaxInput});
  if (!tree) return fail(std::move(tree).error().with_context(kDaemonJson));
  DaemonJson found{.tree = std::move(*tree)};
  if (found.tree.kind != Kind::kObject) return refuse_at(text, found.tree.raw, "is not an object");
  PODQOS_ASSIGN(const JsonNode* runtimes, find_member(text, found.tree, kRuntimesKey));
  PODQOS_ASSIGN(found.default_runtime, find_member(text, found.tree, "default-runtime"));
  if (runtimes == nullptr) return found;
  if (runtimes->kind != Kind::kObject)
    return refuse_at(text, runtimes->raw_key, "\"runtimes\" is not an object");
  PODQOS_ASSIGN(found.podqos, find_member(text, *runtimes, kHandler));
  return found;
}

/// The values as text, indented as `like` is: by the space in front of its first member, or on one
/// line if there is no line break.
std::string format_like(const Json& values, std::string_view like) {
  const std::size_t quote = like.find('"');
  const std::size_t begin = like.substr(0, quote).rfind('\n') + 1;
  const int size = quote == std::string_view::npos ? 2
                   : begin == 0                    ? -1
                                                   : static_cast<int>(quote - begin);
  const char fill = like[begin] == '\t' ? '\t' : ' ';
  return values.dump(size, fill, false, Json::error_handler_t::replace) + "\n";
}

/// Whether the runtime's path is the wrapper's.
bool is_wrapper(const JsonNode& podqos) {
  const JsonNode* const path = json_at(podqos, "path");
  return path != nullptr && path->kind == Kind::kString && path->text == kWrapperPath;
}

/// What registration makes of a file; the same bytes if it is there already.
Result<std::string> registered(const std::string& bytes) {
  const std::string_view text = daemon_text(bytes);
  PODQOS_ASSIGN(const auto found, parse_daemon_json(text));
  if (found.podqos != nullptr && is_wrapper(*found.podqos)) return bytes;
  if (found.podqos != nullptr)
    return refuse_at(text, found.podqos->raw_key, "a runtime \"", kHandler,
                     "\" is there already, and is not ", kWrapperPath,
                     ": correct or remove it by hand");
  Json values = Json::parse(text);
  values[kRuntimesKey][kHandler] = Json::parse(kDockerDaemon)[kRuntimesKey][kHandler];
  return format_like(values, text);
}

Status plan_docker_removal(Setup& setup) {
  PODQOS_ASSIGN(auto before, read_changeable(setup.files, kDaemonJson));
  const std::string_view text = daemon_text(before.text);
  PODQOS_ASSIGN(const auto found, parse_daemon_json(text));
  if (found.podqos == nullptr) return {};
  if (found.default_runtime != nullptr && found.default_runtime->text == kHandler)
    return refuse_at(text, found.default_runtime->raw_key, "default-runtime = \"", kHandler,
                     "\" still needs podqos; change that line first");
  if (!is_wrapper(*found.podqos) || found.podqos->children.size() != 1)
    return refuse_at(text, found.podqos->raw_key, "the runtime \"", kHandler,
                     "\" is not as podqosctl writes it; remove it by hand");
  Json values = Json::parse(text);
  values[kRuntimesKey].erase(kHandler);
  if (values[kRuntimesKey].empty()) values.erase(kRuntimesKey);
  return add_removal(setup,
                     {.path = kDaemonJson,
                      .before = before,
                      .after = before.with(format_like(values, text)),
                      .what = "runtime \"podqos\""},
                     values.empty(),
                     [&](const std::string& backup) { return registered(backup) == before.text; });
}

}  // namespace

Status plan_docker(Setup& setup) {
  if (setup.undo) return plan_docker_removal(setup);
  auto before = read_changeable(setup.files, kDaemonJson);
  auto after = before ? registered(before->text) : Result<std::string>{fail(before.error())};
  if (!after)
    return fail(after.error().code, cat(after.error().message, "; add to \"runtimes\" by hand: \"",
                                        kHandler, "\": {\"path\": \"", kWrapperPath, "\"}"));
  if (*after == before->text) {
    setup.notes.push_back(cat(kDaemonJson, ": podqos is registered there already"));
    return {};
  }
  setup.changes.push_back({.path = kDaemonJson,
                           .before = *before,
                           .after = before->with(*std::move(after)),
                           .what = "runtime \"podqos\"",
                           .backup = before->exists()});
  return {};
}

}  // namespace podqos::ctl
