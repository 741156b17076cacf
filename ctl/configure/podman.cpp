#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "ctl/json_text.h"
#include "ctl/table.h"
#include "podqos_examples.h"

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

/// The list of directories of hooks.
TomlPath hooks_key() {
  return {"engine", "hooks_dir"};
}

/// Podman's files in the order in which it reads them, podqos's lines left out.
Result<std::vector<TomlDocument>> read_podman(const ConfigSource& source) {
  return read_files({kPodmanShipped, kPodmanConfig}, kPodmanDropIns, ".conf", source);
}

/// Whether the package's link, or one like it, is there.
/// @return an error for an operator's file in its place, which keeps podqos from being registered,
///         and for a Podman that refuses to run beside it.
Result<bool> is_linked(const ConfigureRequest& request, const ConfigSource& source) {
  PODQOS_ASSIGN(const auto state, source.read(kPodmanLink));
  if (state.kind == FileState::Kind::kAbsent) return false;
  if (state != FileState::link(kPodmanLinked))
    return fail(ErrorCode::kConflict,
                cat(kPodmanLink, ":1: registration disabled by this file; delete it to enable"));
  if (request.version && *request.version < kAppending)
    return fail(ErrorCode::kConflict,
                cat(kPodmanLink, ":1: Podman before ", format_version(kAppending),
                    " refuses to run beside this file; remove it"));
  return true;
}

/// The directories of hooks for a Podman that cannot append to a list: all others, and podqos's.
Result<std::vector<std::string>> hook_directories(const std::vector<TomlDocument>& documents) {
  std::vector<std::string> directories = {kCommonHooks};
  if (const TomlDocument* naming = last_with(documents, hooks_key())) {
    const std::string place = naming->place_of(hooks_key());
    if (naming->file > kPodmanDropIn && naming->file.starts_with(kPodmanDropIns))
      return fail(ErrorCode::kConflict, cat(place, ": hooks_dir is set after ", kPodmanDropIn,
                                            "; add \"", kPrecreate, "\" to that list by hand"));
    const toml::array* list = naming->at(hooks_key())->as_array();
    if (list == nullptr || (!list->empty() && !list->is_homogeneous<std::string>()))
      return fail(ErrorCode::kInvalidArgument, cat(place, ": hooks_dir is no list of strings"));
    directories.clear();
    for (const toml::node& each : *list)
      directories.push_back(*each.value_exact<std::string>());
  }
  if (std::ranges::find(directories, kPrecreate) == directories.end())
    directories.emplace_back(kPrecreate);
  return directories;
}

/// examples/podman with these directories of hooks; without directories only the runtime.
std::string podman_lines(std::vector<std::string> directories) {
  constexpr std::string_view kKey = "hooks_dir = ";
  std::string text{kPodmanRegistration};
  if (directories.empty()) return text.substr(text.find("[engine.runtimes]"));
  std::ranges::transform(directories, directories.begin(), json_quote);
  const std::size_t begin = text.find(kKey) + kKey.size();
  return text.replace(begin, text.find('\n', begin) - begin,
                      cat("[", join(directories, ", "), "]"));
}

/// Podman 4.8 and later: the link that the package makes.
Result<ConfigurePlan> plan_podman_link(const ConfigSource& source) {
  PODQOS_ASSIGN(const auto shipped, source.follow(kPodmanLinked));
  if (!shipped)
    return fail(ErrorCode::kNotFound,
                cat(kPodmanLinked, " is missing: install the package podqos again"));
  ConfigurePlan plan;
  plan.changes.push_back({.path = kPodmanLink,
                          .before = {},
                          .after = FileState::link(kPodmanLinked),
                          .what = "precreate hook and runtime \"podqos\""});
  // Written for an older Podman, it would name the same directory again.
  PODQOS_TRY(plan_own_removal(kPodmanDropIn, source, plan));
  return plan;
}

Result<ConfigurePlan> plan_podman_hooks(const ConfigureRequest& request,
                                        const std::vector<TomlDocument>& documents,
                                        const ConfigSource& source) {
  if (!request.version)
    return fail(ErrorCode::kInvalidArgument,
                "Podman's version is unknown; set it with --engine-version");
  const TomlDocument* naming = last_with(documents, hooks_key());
  if (naming != nullptr && naming->lists(hooks_key(), kPrecreate))
    return nothing_to_do(already_there(naming->place_of(hooks_key())));
  if (*request.version >= kAppending) return plan_podman_link(source);
  PODQOS_ASSIGN(auto directories, hook_directories(documents));
  return plan_own_file({.path = kPodmanDropIn,
                        .text = podman_lines(std::move(directories)),
                        .what = "precreate hook and runtime \"podqos\""},
                       source);
}

}  // namespace

Result<ConfigurePlan> plan_podman(const ConfigureRequest& request, const ConfigSource& source) {
  PODQOS_ASSIGN(const bool linked, is_linked(request, source));
  if (linked)
    return nothing_to_do(cat(kPodmanLink, ": registered already, as the package does it"));
  PODQOS_ASSIGN(const auto documents, read_podman(source));
  if (request.method == Method::kHooks) return plan_podman_hooks(request, documents, source);
  const TomlPath runtime = {"engine", "runtimes", std::string{kHandler}};
  PODQOS_ASSIGN(auto there, registered_by_hand(documents, runtime, {}));
  if (there) return *std::move(there);
  return plan_own_file(
      {.path = kPodmanDropIn, .text = podman_lines({}), .what = "runtime \"podqos\""}, source);
}

Result<ConfigurePlan> plan_podman_removal(const ConfigSource& source) {
  PODQOS_ASSIGN(const auto documents, read_podman(source));
  PODQOS_TRY(check_not_default(documents, {"engine", "runtime"}));
  ConfigurePlan plan;
  PODQOS_TRY(plan_own_removal(kPodmanDropIn, source, plan));
  PODQOS_ASSIGN(auto link, source.read(kPodmanLink));
  PODQOS_ASSIGN(const auto hook, source.follow(kPodmanPackagedHook));
  if (hook)
    plan.notes.push_back(cat(kPodmanPackagedHook,
                             " stays: it is the package's, and counts annotated containers "
                             "without placing them; \"enabled\": false in "
                             "/etc/podqos/podqos.json switches podqos off for all engines"));
  if (link == FileState::link(kPodmanLinked)) {
    plan.changes.push_back({.path = kPodmanLink,
                            .before = std::move(link),
                            .after = {},
                            .what = "precreate hook and runtime \"podqos\""});
    plan.notes.push_back(cat("an upgrade of the package makes ", kPodmanLink,
                             " again; an empty file in its place prevents that"));
  }
  return plan;
}

}  // namespace podqos::ctl
