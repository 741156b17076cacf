#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "ctl/configure/lines.h"
#include "ctl/json.h"
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
constexpr std::string_view kHooksKey = "engine/hooks_dir";
constexpr std::string_view kHooksAndRuntime = "precreate hook and runtime \"podqos\"";

Status read_podman(Setup& setup) {
  PODQOS_ASSIGN(auto paths, setup.files.list(kPodmanDropIns));
  std::erase_if(paths, [](const std::string& path) { return !path.ends_with(".conf"); });
  paths.insert(paths.begin(), {kPodmanShipped, kPodmanConfig});
  for (const std::string& path : paths)
    PODQOS_TRY(read_others(setup, path));
  return {};
}

bool is_our_link(const FileState& state) {
  return state.kind == FileState::Kind::kLink && state.text == kPodmanLinked;
}

/// Whether the package's link, or one like it, is there.
/// @return an error for an operator's file in its place, which keeps podqos from being registered,
///         and for a Podman that refuses to run beside it.
Result<bool> is_linked(const Setup& setup) {
  PODQOS_ASSIGN(const auto state, setup.files.read(kPodmanLink));
  if (!state.exists()) return false;
  if (!is_our_link(state))
    return refuse(kPodmanLink, ":1: registration disabled by this file; delete it to enable");
  if (setup.version && *setup.version < kAppending)
    return refuse(kPodmanLink, ":1: Podman before ", format_version(kAppending),
                  " refuses to run beside this file; remove it");
  return true;
}

/// The directories of hooks for a Podman that cannot append to a list: all others, and podqos's.
Result<std::vector<std::string>> hook_directories(const TomlValue& named) {
  if (!named) return std::vector<std::string>{kCommonHooks, kPrecreate};
  if (named.file > kPodmanDropIn && named.file.starts_with(kPodmanDropIns))
    return refuse(named.place, ": hooks_dir is set after ", kPodmanDropIn, "; add \"", kPrecreate,
                  "\" to that list by hand");
  auto directories = named.strings();
  // "" stands for an element that is not a string.
  if (!directories || std::ranges::count(*directories, "") != 0)
    return refuse(named.place, ": hooks_dir is not a list of directories");
  directories->emplace_back(kPrecreate);
  return *std::move(directories);
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
Status plan_podman_link(Setup& setup) {
  if (!setup.files.exists(kPodmanLinked))
    return refuse(kPodmanLinked, " is missing: install the package podqos again");
  PODQOS_ASSIGN(auto before, setup.files.read(kPodmanLink));
  setup.changes.push_back({.path = kPodmanLink,
                           .before = std::move(before),
                           .after = {.kind = FileState::Kind::kLink, .text = kPodmanLinked},
                           .what = std::string{kHooksAndRuntime}});
  // Written for an older Podman, it would name the same directory again.
  return remove_lines(setup, kPodmanDropIn);
}

Status plan_podman_hooks(Setup& setup) {
  if (!setup.version) return refuse("Podman's version is unknown; set it with --engine-version");
  const TomlValue named = setup.at(kHooksKey);
  if (named.lists(kPrecreate)) {
    setup.notes.push_back(already_there(named.place));
    return {};
  }
  if (*setup.version >= kAppending) return plan_podman_link(setup);
  PODQOS_ASSIGN(auto directories, hook_directories(named));
  return add_lines(setup, {.path = kPodmanDropIn,
                           .text = podman_lines(std::move(directories)),
                           .what = std::string{kHooksAndRuntime}});
}

Status plan_podman_removal(Setup& setup) {
  PODQOS_TRY(read_podman(setup));
  PODQOS_TRY(check_not_default(setup, "engine/runtime"));
  PODQOS_TRY(remove_lines(setup, kPodmanDropIn));
  if (setup.files.exists(kPodmanPackagedHook))
    setup.notes.push_back(cat(kPodmanPackagedHook,
                              " stays: it is the package's, and counts annotated containers "
                              "without placing them; \"enabled\": false in "
                              "/etc/podqos/podqos.json switches podqos off for all engines"));
  PODQOS_ASSIGN(auto link, setup.files.read(kPodmanLink));
  if (!is_our_link(link)) return {};
  setup.changes.push_back({.path = kPodmanLink,
                           .before = std::move(link),
                           .after = {},
                           .what = std::string{kHooksAndRuntime}});
  setup.notes.push_back(cat("an upgrade of the package makes ", kPodmanLink,
                            " again; an empty file in its place prevents that"));
  return {};
}

}  // namespace

Status plan_podman(Setup& setup) {
  if (setup.undo) return plan_podman_removal(setup);
  PODQOS_ASSIGN(const bool linked, is_linked(setup));
  if (linked) {
    setup.notes.push_back(cat(kPodmanLink, ": registered already, as the package does it"));
    return {};
  }
  PODQOS_TRY(read_podman(setup));
  if (setup.method == Method::kHooks) return plan_podman_hooks(setup);
  PODQOS_ASSIGN(const bool there, is_there_by_hand(setup, cat("engine/runtimes/", kHandler), ""));
  if (there) return {};
  return add_lines(setup,
                   {.path = kPodmanDropIn, .text = podman_lines({}), .what = "runtime \"podqos\""});
}

}  // namespace podqos::ctl
