#include "ctl/configure/podman.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "ctl/json_text.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

constexpr const char* kPodmanShipped = "/usr/share/containers/containers.conf";
constexpr const char* kPodmanConfig = "/etc/containers/containers.conf";
constexpr const char* kPodmanDropIns = "/etc/containers/containers.conf.d";
constexpr const char* kPodmanDropIn = "/etc/containers/containers.conf.d/50-podqos.conf";
/// What the package makes (packaging/deb/debian/podqos.postinst), and where it leads.
constexpr const char* kPodmanLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
constexpr const char* kPodmanLinked = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";
/// From this version on a list can be appended to; older ones refuse to run beside kPodmanLinked.
constexpr Version kAppending{.major = 4, .minor = 8};
/// Podman's own default of hooks_dir, and the directory with precreate.
constexpr const char* kCommonHooks = "/usr/share/containers/oci/hooks.d";
/// createRuntime and poststop of the package.
constexpr const char* kPodmanPackagedHook =
    "/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json";
constexpr const char* kPrecreate = "/usr/share/podqos/podman-hooks.d";

/// One block for both ways: a table may be there only once.
constexpr std::array<std::string_view, 1> kPodmanBlocks = {"registration"};

/// The list of directories of hooks.
TomlPath hooks_key() {
  return {"engine", "hooks_dir"};
}

/// Podman's files in the order in which it reads them, podqos's lines left out.
Result<std::vector<TomlDocument>> read_podman(const ConfigSource& source) {
  std::vector<TomlDocument> documents;
  for (const char* path : {kPodmanShipped, kPodmanConfig}) {
    auto document = read_others(path, kPodmanBlocks, source);
    if (!document) return fail(std::move(document).error());
    documents.push_back(std::move(*document));
  }
  auto drop_ins = read_drop_ins(kPodmanDropIns, ".conf", kPodmanBlocks, source);
  if (!drop_ins) return fail(std::move(drop_ins).error());
  std::ranges::move(*drop_ins, std::back_inserter(documents));
  return documents;
}

/// Whether the package's link, or one like it, is there.
/// @return an error for an operator's file in its place, which keeps podqos from being registered.
Result<bool> is_linked(const ConfigSource& source) {
  const auto state = source.read(kPodmanLink);
  if (!state) return fail(state.error());
  if (state->kind == FileState::Kind::kLink && state->text == kPodmanLinked) return true;
  if (state->kind == FileState::Kind::kAbsent) return false;
  return fail(ErrorCode::kConflict, cat(kPodmanLink,
                                        ":1: this file keeps podqos from being registered; remove "
                                        "it to have podqos registered"));
}

std::string linked_note() {
  return cat(kPodmanLink, ": registered already, as the package does it");
}

/// The directories of hooks for a Podman that cannot append to a list: all others, and podqos's.
Result<std::vector<std::string>> hook_directories(const std::vector<TomlDocument>& documents) {
  std::vector<std::string> directories = {kCommonHooks};
  if (const TomlDocument* naming = last_with(documents, hooks_key())) {
    const std::string place = naming->place_of(hooks_key());
    if (naming->file() > kPodmanDropIn && naming->file().starts_with(kPodmanDropIns)) {
      return fail(ErrorCode::kConflict, cat(place, ": hooks_dir is set after ", kPodmanDropIn,
                                            "; add \"", kPrecreate, "\" to that list by hand"));
    }
    const nlohmann::json& list = *naming->at(hooks_key());
    if (!list.is_array() ||
        !std::ranges::all_of(list, [](const auto& each) { return each.is_string(); }))
      return fail(ErrorCode::kInvalidArgument, cat(place, ": hooks_dir is no list of strings"));
    directories = list.get<std::vector<std::string>>();
  }
  if (std::ranges::find(directories, kPrecreate) == directories.end())
    directories.push_back(kPrecreate);
  return directories;
}

/// Whether podqos's directory is in a list that podqosctl has not written.
bool has_precreate(const std::vector<TomlDocument>& documents) {
  const TomlDocument* naming = last_with(documents, hooks_key());
  return naming != nullptr && lists(*naming, hooks_key(), kPrecreate);
}

Result<ConfigurePlan> plan_podman_drop_in(Way way, const std::vector<std::string>& directories,
                                          const ConfigSource& source) {
  auto change = plan_block(
      {.path = kPodmanDropIn,
       .name = kPodmanBlocks.front(),
       .body = format_podman(directories),
       .what = way == Way::kHooks ? "precreate hook and runtime \"podqos\"" : "runtime \"podqos\"",
       .base = {}},
      source);
  if (!change) return fail(std::move(change).error());
  ConfigurePlan plan;
  if (*change) plan.changes.push_back(std::move(**change));
  return plan;
}

/// Podman 4.8 and later: the link that the package makes.
Result<ConfigurePlan> plan_podman_link(const ConfigSource& source) {
  const auto shipped = source.follow(kPodmanLinked);
  if (!shipped) return fail(shipped.error());
  if (!*shipped)
    return fail(ErrorCode::kNotFound,
                cat(kPodmanLinked, " is missing: install the package podqos again"));
  ConfigurePlan plan;
  plan.changes.push_back({.path = kPodmanLink,
                          .before = {},
                          .after = FileState::link(kPodmanLinked),
                          .what = "precreate hook and runtime \"podqos\""});
  // Written for an older Podman, it would name the same directory again.
  const BlockRemoval older{.path = kPodmanDropIn, .names = kPodmanBlocks, .bases = {}};
  if (auto done = plan_block_removal(older, source, plan); !done)
    return fail(std::move(done).error());
  return plan;
}

}  // namespace

std::string format_podman(const std::vector<std::string>& directories) {
  std::vector<std::string> quoted;
  std::ranges::transform(directories, std::back_inserter(quoted), json_quote);
  const std::string hooks =
      directories.empty() ? "" : cat("[engine]\nhooks_dir = [", join(quoted, ", "), "]\n\n");
  return cat(hooks, "[engine.runtimes]\n", kHandler, " = [\"", kWrapperPath, "\"]\n");
}

Result<ConfigurePlan> plan_podman(const ConfigureRequest& request, const ConfigSource& source) {
  const auto linked = is_linked(source);
  if (!linked) return fail(linked.error());
  if (*linked && request.version && *request.version < kAppending) {
    return fail(ErrorCode::kConflict,
                cat(kPodmanLink, ":1: Podman before ", format_version(kAppending),
                    " refuses to run beside this file; remove it"));
  }
  if (*linked) return nothing_to_do(linked_note());
  if (request.way == Way::kHooks && !request.version)
    return fail(ErrorCode::kInvalidArgument,
                "Podman's version is not known; give it with --engine-version");
  const auto documents = read_podman(source);
  if (!documents) return fail(documents.error());
  if (request.way == Way::kHooks && has_precreate(*documents)) {
    return nothing_to_do(already_there(last_with(*documents, hooks_key())->place_of(hooks_key())));
  }
  if (request.way == Way::kHooks && *request.version >= kAppending) return plan_podman_link(source);
  const TomlPath runtime = {"engine", "runtimes", std::string{kHandler}};
  if (request.way == Way::kWrapper && last_with(*documents, runtime) != nullptr) {
    const TomlDocument& by_owner = *last_with(*documents, runtime);
    if (lists(by_owner, runtime, kWrapperPath))
      return nothing_to_do(already_there(by_owner.place_of(runtime)));
    return fail(ErrorCode::kConflict, cat(by_owner.place_of(runtime), ": a runtime \"", kHandler,
                                          "\" is there already, and is not ", kWrapperPath,
                                          ": correct or remove it by hand"));
  }
  auto directories = request.way == Way::kHooks ? hook_directories(*documents)
                                                : Result<std::vector<std::string>>{};
  if (!directories) return fail(std::move(directories).error());
  return plan_podman_drop_in(request.way, *directories, source);
}

Result<ConfigurePlan> plan_podman_removal(const ConfigSource& source) {
  const auto documents = read_podman(source);
  if (!documents) return fail(documents.error());
  for (const TomlDocument& document : *documents)
    if (const auto free = check_not_default(document, {"engine", "runtime"}); !free)
      return fail(free.error());
  ConfigurePlan plan;
  const BlockRemoval removal{.path = kPodmanDropIn, .names = kPodmanBlocks, .bases = {}};
  if (auto done = plan_block_removal(removal, source, plan); !done)
    return fail(std::move(done).error());
  auto link = source.read(kPodmanLink);
  if (!link) return fail(std::move(link).error());
  const auto hook = source.follow(kPodmanPackagedHook);
  if (!hook) return fail(hook.error());
  if (*hook)
    plan.notes.push_back(cat(kPodmanPackagedHook,
                             " stays: it is the package's, and counts annotated containers "
                             "without placing them; \"enabled\": false in "
                             "/etc/podqos/podqos.json switches podqos off for all engines"));
  if (link->kind == FileState::Kind::kLink && link->text == kPodmanLinked) {
    plan.changes.push_back({.path = kPodmanLink,
                            .before = std::move(*link),
                            .after = {},
                            .what = "precreate hook and runtime \"podqos\""});
    plan.notes.push_back(cat("an upgrade of the package makes ", kPodmanLink,
                             " again; an empty file in its place prevents that"));
  }
  return plan;
}

}  // namespace podqos::ctl
