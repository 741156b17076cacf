#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/configure/lines.h"
#include "ctl/node/runtime_state.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

constexpr const char* kCrioDropIns = "/etc/crio/crio.conf.d";
constexpr const char* kCrioRuntimeDropIn = "/etc/crio/crio.conf.d/50-podqos.conf";
constexpr const char* kCrioNriDropIn = "/etc/crio/crio.conf.d/60-podqos-nri.conf";
/// CRI-O has NRI switched on from this version on (pkg/config/config.go, DefaultConfig).
constexpr Version kNriByDefault{.major = 1, .minor = 30};

constexpr std::string_view kRuntimes = "crio/runtime/runtimes/";
constexpr std::string_view kDefaultRuntime = "crio/runtime/default_runtime";

/// What a row of the runtime table says of the runtime itself, which is another one for podqos.
constexpr std::array<std::string_view, 7> kOfTheRuntime = {
    "runtime_path",           "runtime_type",       "runtime_root",           "runtime_config_path",
    "platform_runtime_paths", "runtime_pull_image", "inherit_default_runtime"};

/// The row of the runtime that pods get without a RuntimeClass; where conmon does not serve that
/// one (Kata), that of crun or runc, which names conmon, too. An empty one if there is none.
toml::table default_row(const Setup& setup) {
  // CRI-O's own default: crun from 1.31 on, runc before.
  for (const std::string& name :
       {setup.at(kDefaultRuntime).text(), std::string{"crun"}, std::string{"runc"}}) {
    if (name.empty() || name == kHandler) continue;
    const TomlValue found = setup.at(cat(kRuntimes, name));
    const toml::table* row = found.node.as_table();
    if (row == nullptr) continue;
    const std::string type = (*row)["runtime_type"].value_or(std::string{});
    if (type.empty() || type == "oci") return *row;
  }
  return {};
}

/// A value on one line: strings and keys in quotes, tables inline; "[]" for a date or time, which
/// no engine takes.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the parser has been
std::string format_toml(const toml::node& value) {
  // A string of JSON is one of TOML, see their grammars of escapes (TOML 1.0, "String").
  if (const auto* text = value.as_string()) return json_quote(text->get());
  if (const auto* truth = value.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return nlohmann::json(number->get()).dump();
  std::vector<std::string> parts;
  if (const auto* table = value.as_table()) {
    for (const auto& [key, each] : *table)
      parts.push_back(cat(json_quote(key.str()), " = ", format_toml(each)));
    return cat("{ ", join(parts, ", "), " }");
  }
  if (const auto* array = value.as_array())
    for (const toml::node& each : *array)
      parts.push_back(format_toml(each));
  return cat("[", join(parts, ", "), "]");
}

/// The row of examples/cri-o, and what else the default runtime's row says.
std::string runtime_lines(toml::table row) {
  for (const std::string_view key : kOfTheRuntime)
    row.erase(key);
  std::string lines{
      kCrioRuntime.substr(kCrioRuntime.find(cat("[crio.runtime.runtimes.", kHandler)))};
  for (const auto& [key, value] : row)
    lines += cat(json_quote(key.str()), " = ", format_toml(value), "\n");
  return lines;
}

/// CRI-O's containers in a runtime's directory, by their annotations; Podman's may be there as
/// well.
Result<std::ptrdiff_t> count_containers(const EngineFiles& files, const std::string& root) {
  PODQOS_ASSIGN(const auto entries, files.list(root));
  return std::ranges::count_if(entries, [&](const std::string& entry) {
    // Of runc and of crun.
    return std::ranges::any_of(std::array{"state.json", "config.json"}, [&](const char* file) {
      const auto state = files.read(cat(entry, file));
      return entry.ends_with('/') && state && state->text.contains("io.kubernetes.cri-o.");
    });
  });
}

/// Refuses a new default runtime, which keeps its state elsewhere, while containers of the present
/// one live: CRI-O, once restarted, would not find them there.
Status check_containers(const Setup& setup) {
  if (!setup.set_default || setup.restart == Restart::kForce ||
      is_default(setup, std::string{kDefaultRuntime}))
    return {};
  const std::string named = default_row(setup)["runtime_root"].value_or(std::string{});
  const auto roots =
      named.empty() ? std::vector<std::string>{"/run/crun", "/run/runc"} : std::vector{named};
  for (const std::string& root : roots) {
    PODQOS_ASSIGN(const auto containers, count_containers(setup.files, root));
    if (containers > 0)
      return refuse("containers of CRI-O's default runtime are in ", root, " (", containers,
                    "): once restarted, CRI-O would look for them in ", kCrioRuntimeRoot,
                    " and take them for ended, and a kubelet would start each once more; remove "
                    "their pods first, or use --restart=force; nothing was changed");
  }
  return {};
}

Status plan_crio_runtime(Setup& setup) {
  PODQOS_TRY(check_containers(setup));
  return add_lines(setup, {.path = kCrioRuntimeDropIn,
                           .text = runtime_lines(default_row(setup)),
                           .what = cat(setup.set_default ? "default " : "", "runtime \"podqos\""),
                           .table = cat(kRuntimes, kHandler),
                           .default_runtime = DefaultRuntime{.path = std::string{kDefaultRuntime},
                                                             .header = "crio.runtime",
                                                             .runtimes = "crio/runtime/runtimes",
                                                             .program = "/runtime_path",
                                                             .built_in = "crun runc"}});
}

Status plan_crio_nri(Setup& setup) {
  if (!setup.version) return refuse("CRI-O's version is unknown; set it with --engine-version");
  PODQOS_TRY(check_nri_switch(setup, "crio/nri", "enable_nri", true));
  PODQOS_TRY(check_nri_switch(setup, "crio/nri", "nri_disable_connections", false));
  const TomlValue enabled = setup.at("crio/nri/enable_nri");
  if (enabled || *setup.version >= kNriByDefault) return note_nri(setup, enabled);
  if (const TomlValue listen = setup.at("crio/nri/nri_listen"))
    return refuse(listen.place,
                  ": nri_listen is set, but not enable_nri; write \"enable_nri = true\" beside "
                  "it by hand");
  return add_lines(
      setup, {.path = kCrioNriDropIn, .text = std::string{kCrioNri}, .what = "table for NRI"});
}

/// What the package registers by itself.
Status plan_crio_hooks(Setup& setup) {
  if (!setup.files.exists(kPackagedHook))
    return refuse(kPackagedHook, " is missing: install the package podqos again");
  setup.notes.push_back(cat(
      kPackagedHook, ": registered already by the package; hooks alone cannot place containers"));
  return {};
}

Status plan_crio_removal(Setup& setup) {
  PODQOS_TRY(check_not_default(setup, kDefaultRuntime));
  for (const char* path : {kCrioRuntimeDropIn, kCrioNriDropIn})
    PODQOS_TRY(remove_lines(setup, path));
  // Its containers: directories in its runtime_root.
  PODQOS_ASSIGN(const auto entries, setup.files.list(kCrioRuntimeRoot));
  const auto containers =
      std::ranges::count_if(entries, [](const std::string& path) { return !path.contains("/."); });
  // Its file may be gone since an earlier removal, after which CRI-O was not restarted.
  if (setup.at(cat(kRuntimes, kHandler)) || containers == 0) return {};
  const std::string harm =
      cat(format_count(containers, "container"), " of the runtime \"", kHandler, "\" in ",
          kCrioRuntimeRoot,
          ": once restarted, CRI-O cannot stop or remove them; remove their pods first");
  if (setup.restart == Restart::kHarmless)
    return refuse(harm, ", or use --restart=force; nothing was changed");
  setup.notes.push_back(harm);
  return {};
}

/// Every file of the directory and of those in it, whatever its name (pkg/config, UpdateFromPath).
Status read_crio(Setup& setup) {
  return read_all_others(setup, {setup.config_file()}, kCrioDropIns, "", Depth::kAll);
}

}  // namespace

Result<EngineSettings> inspect_crio(Setup& setup) {
  setup.documents.clear();
  PODQOS_TRY(read_crio(setup));
  const std::string chosen = setup.at(kDefaultRuntime).text();
  const std::string path = setup.at(cat(kRuntimes, chosen, "/runtime_path")).text();
  // CRI-O's own default is systemd.
  EngineSettings found{
      .driver = setup.at("crio/runtime/cgroup_manager").text() == "cgroupfs"
                    ? core::Driver::kCgroupfs
                    : core::Driver::kSystemd,
      .is_default = is_default(setup, std::string{kDefaultRuntime}) || path == kWrapperPath};
  const TomlValue named = setup.at("crio/runtime/hooks_dir");
  const auto directories = named.strings();
  if (directories) check_left_out_hooks(setup, named.place, *directories, found);
  for (const std::string& each : directories.value_or(std::vector{std::string{kCommonHooks}})) {
    const std::string file = cat(each, "/", kPrecreateFile);
    if (setup.files.exists(file))
      found.checks.push_back({"crio", "hooks", Outcome::kProblem,
                              cat(file,
                                  ": CRI-O does not know the stage precreate, and does not "
                                  "start where it finds it"),
                              cat("rm ", file)});
  }
  return found;
}

Status plan_crio(Setup& setup) {
  if (!setup.undo && setup.method == Method::kHooks) return plan_crio_hooks(setup);
  PODQOS_TRY(read_crio(setup));
  if (setup.undo) return plan_crio_removal(setup);
  return setup.method == Method::kNri ? plan_crio_nri(setup) : plan_crio_runtime(setup);
}

}  // namespace podqos::ctl
