#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/configure/lines.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

constexpr const char* kPodmanDropIns = "/etc/containers/containers.conf.d";
constexpr const char* kPodmanDropIn = "/etc/containers/containers.conf.d/50-podqos.conf";
/// What the package makes (packaging/removal/register-with-podman), and where it leads.
constexpr const char* kPodmanLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
constexpr const char* kPodmanLinked = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";
/// From this version on a list can be appended to; older ones refuse to run beside kPodmanLinked.
constexpr Version kAppending{.major = 4, .minor = 8};
/// The directory with precreate.
constexpr const char* kPrecreate = "/usr/share/podqos/podman-hooks.d";

DefaultRuntime default_runtime() {
  return {.path = "engine/runtime",
          .header = "engine",
          .runtimes = "engine/runtimes",
          .program = "",
          .built_in = "crun runc"};
}

Status read_podman(Setup& setup) {
  return read_all_others(
      setup, {"/usr/share/containers/containers.conf", "/etc/containers/containers.conf"},
      kPodmanDropIns, ".conf", Depth::kOne);
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

/// @param link  the change of the package's link
Status plan_podman_hooks(Setup& setup, FileChange link) {
  if (!setup.version) return refuse("Podman's version is unknown; set it with --engine-version");
  const TomlValue named = setup.at("engine/hooks_dir");
  if (named.lists(kPrecreate)) {
    note_by_hand(setup, named);
    return {};
  }
  if (*setup.version < kAppending) {
    PODQOS_ASSIGN(auto directories, hook_directories(named));
    return add_lines(setup, {.path = kPodmanDropIn,
                             .text = podman_lines(std::move(directories)),
                             .what = std::move(link.what)});
  }
  if (!setup.files.exists(kPodmanLinked))
    return refuse(kPodmanLinked, " is missing: install the package podqos again");
  link.after = {.kind = FileState::Kind::kLink, .text = kPodmanLinked};
  setup.changes.push_back(std::move(link));
  // Written for an older Podman, it would name the same directory again.
  return remove_lines(setup, kPodmanDropIn);
}

Status plan_podman_removal(Setup& setup, FileChange link, bool is_linked) {
  PODQOS_TRY(read_podman(setup));
  PODQOS_TRY(check_not_default(setup, "engine/runtime"));
  PODQOS_TRY(remove_lines(setup, kPodmanDropIn));
  if (setup.files.exists(kPackagedHook))
    setup.notes.push_back(cat(kPackagedHook,
                              " stays: it is the package's, and counts annotated containers "
                              "without placing them; \"enabled\": false in "
                              "/etc/podqos/podqos.json switches podqos off for all engines"));
  if (!is_linked) return {};
  setup.changes.push_back(std::move(link));
  setup.notes.push_back(cat("an upgrade of the package makes ", kPodmanLink,
                            " again; an empty file in its place prevents that"));
  return {};
}

/// Where Podman looks for hooks, by all files as they are, podqos's lines included.
struct HookDirectories {
  std::vector<std::string> paths = {kCommonHooks};
  std::string place = "/etc/containers/containers.conf:1";  ///< of the last file that names any
};

/// @note containers/common pkg/config: once {append=true} was read, lists of later files are
///       appended, too.
Result<HookDirectories> find_hook_directories(const Setup& setup) {
  HookDirectories found;
  bool appends = false;
  for (const TomlDocument& each : setup.documents) {
    PODQOS_ASSIGN(const auto text, setup.files.follow(each.file));
    PODQOS_ASSIGN(const auto document, TomlDocument::parse(text.value_or(""), each.file));
    const TomlValue named = document.at("engine/hooks_dir");
    const auto listed = named.strings();
    if (!listed) continue;
    for (const toml::node& element : *named.node.as_array())
      if (const auto* attributes = element.as_table())
        appends = (*attributes)["append"].value_or(appends);
    if (!appends) found.paths.clear();
    std::ranges::remove_copy(*listed, std::back_inserter(found.paths), "");
    found.place = named.place;
  }
  return found;
}

}  // namespace

Result<EngineSettings> inspect_podman(Setup& setup) {
  setup.documents.clear();
  PODQOS_TRY(read_podman(setup));
  const std::string manager = setup.at("engine/cgroup_manager").text();
  EngineSettings found{.driver = manager == "cgroupfs"  ? core::Driver::kCgroupfs
                                 : manager == "systemd" ? core::Driver::kSystemd
                                                        : cgroup::machine_driver(),
                       .is_default = is_default(setup, default_runtime().path)};
  PODQOS_ASSIGN(const auto hooks, find_hook_directories(setup));
  check_left_out_hooks(setup, hooks.place, hooks.paths, found);
  const bool is_wanted = setup.files.exists(kPodmanLink) || setup.files.exists(kPodmanDropIn);
  if (is_wanted && std::ranges::find(hooks.paths, kPrecreate) == hooks.paths.end())
    found.checks.push_back({"podman", "hooks", Outcome::kProblem,
                            cat(hooks.place, ": hooks_dir leaves out ", kPrecreate,
                                ", so that podqos places no containers"),
                            cat("add \"", kPrecreate, "\" to that list")});
  return found;
}

Status plan_podman(Setup& setup) {
  PODQOS_ASSIGN(const auto there, setup.files.read(kPodmanLink));
  const bool is_linked = there.kind == FileState::Kind::kLink && there.text == kPodmanLinked;
  FileChange link{.path = kPodmanLink,
                  .before = there,
                  .after = {},
                  .what = "precreate hook and runtime \"podqos\""};
  if (setup.undo) return plan_podman_removal(setup, std::move(link), is_linked);
  if (there.exists() && !is_linked)
    return refuse(kPodmanLink, ":1: registration disabled by this file; delete it to enable");
  if (is_linked && setup.version && *setup.version < kAppending)
    return refuse(kPodmanLink, ":1: Podman before ", format_version(kAppending),
                  " refuses to run beside this file; remove it");
  if (is_linked)
    setup.notes.push_back(cat(kPodmanLink, ": registered already, as the package does it"));
  if (is_linked && !setup.set_default) return {};
  PODQOS_TRY(read_podman(setup));
  if (is_linked)
    return add_lines(setup, {.path = kPodmanDropIn,
                             .what = "default runtime \"podqos\"",
                             .default_runtime = default_runtime()});
  if (setup.method == Method::kHooks) return plan_podman_hooks(setup, std::move(link));
  return add_lines(setup, {.path = kPodmanDropIn,
                           .text = podman_lines({}),
                           .what = cat(setup.set_default ? "default " : "", "runtime \"podqos\""),
                           .table = cat("engine/runtimes/", kHandler),
                           .default_runtime = default_runtime()});
}

}  // namespace podqos::ctl
