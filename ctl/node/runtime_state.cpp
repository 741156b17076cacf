#include "ctl/node/runtime_state.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_place.h"
#include "common/sys/directory.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kMaxState = std::size_t{1} << 20U;

/// A positive integer under the first of the names that is there.
std::optional<std::int64_t> positive_in(const codec::JsonPlace& state,
                                        std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto number = state.integer(name, 1); number && *number) return *number;
  return std::nullopt;
}

/// runc has it among the labels of the configuration.
std::string bundle_in(const codec::JsonPlace& state) {
  std::string bundle;
  if (state.read_text("bundle", bundle) && !bundle.empty()) return bundle;
  constexpr std::string_view kLabel = "bundle=";
  const codec::JsonNode* labels = state.node()->at("/config/labels");
  for (const codec::JsonNode& label :
       labels == nullptr ? std::span<const codec::JsonNode>{} : std::span{labels->children})
    if (label.text.starts_with(kLabel)) return std::string{label.text.substr(kLabel.size())};
  return bundle;
}

/// The names of its subdirectories; none if it cannot be read.
std::vector<std::string> names_in(const std::string& path) {
  const auto directory = sys::Directory::open(path);
  if (!directory) return {};
  return directory->subdirectories().value_or(std::vector<std::string>{});
}

/// What a runtime has noted in a container's directory; nullopt if it has no process.
/// @return kNotFound if the directory has gone
Result<std::optional<RuntimeContainer>> read_state(const std::string& path, const std::string& id) {
  PODQOS_ASSIGN(const auto directory, sys::Directory::open(path));
  for (const char* file : {"state.json", "status"}) {
    const auto text = directory.read_file(file, kMaxState);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text) return fail(text.error());
    auto state = parse_runtime_state(id, *text);
    if (!state) return fail(std::move(state).error().with_context(cat(path, "/", file)));
    return state;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> runtime_roots() {
  std::vector<std::string> found = {"/run/runc", "/run/crun", "/run/youki", kCrioRuntimeRoot};
  // Containerd's and Docker's have one for each namespace.
  std::vector<std::string> parents = {"/run/containerd/runc"};
  for (const std::string& name : names_in("/run/docker"))
    if (name.starts_with("runtime-")) parents.push_back(cat("/run/docker/", name));
  for (const std::string& parent : parents)
    for (const std::string& name : names_in(parent))
      found.push_back(cat(parent, "/", name));
  return found;
}

bool is_noted(const std::string& id, const std::vector<std::string>& roots) {
  return std::ranges::any_of(roots, [&](const std::string& root) {
    return ::access(cat(root, "/", id).c_str(), F_OK) == 0;
  });
}

Result<std::optional<RuntimeContainer>> parse_runtime_state(std::string id, std::string_view text) {
  PODQOS_ASSIGN(const auto tree, codec::parse_json_tree(text, {.bytes = kMaxState}));
  const codec::JsonPlace state{tree};
  const auto pid = positive_in(state, {"pid", "init_process_pid"});
  if (!pid) return std::nullopt;
  const auto start_time = positive_in(state, {"process-start-time", "init_process_start"});
  std::string bundle = bundle_in(state);
  if (!bundle.starts_with('/'))
    return fail(ErrorCode::kInvalidArgument, "the path of the bundle is missing");
  return RuntimeContainer{
      .id = std::move(id),
      .bundle = std::move(bundle),
      .pid = Pid{*pid},
      .start_time = start_time ? std::optional{StartTime{*start_time}} : std::nullopt};
}

RuntimeStates read_runtime_states(const std::set<std::string, std::less<>>& known,
                                  std::size_t most) {
  RuntimeStates found;
  for (const std::string& parent : runtime_roots()) {
    for (const std::string& id : names_in(parent)) {
      if (known.contains(id)) continue;
      found.complete = found.containers.size() < most;
      if (!found.complete) return found;
      auto state = read_state(cat(parent, "/", id), id);
      if (state && *state)
        found.containers.push_back(**std::move(state));
      else if (!state && state.error().code != ErrorCode::kNotFound)
        found.unread.emplace_back(id, std::move(state).error());
    }
  }
  return found;
}

}  // namespace podqos::ctl
