#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "ctl/json_text.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

constexpr const char* kCrioConfig = "/etc/crio/crio.conf";
constexpr const char* kCrioDropIns = "/etc/crio/crio.conf.d";
constexpr const char* kCrioRuntimeDropIn = "/etc/crio/crio.conf.d/50-podqos.conf";
constexpr const char* kCrioNriDropIn = "/etc/crio/crio.conf.d/60-podqos-nri.conf";
/// Where the package registers createRuntime and poststop; CRI-O's default hooks_dir.
constexpr const char* kPackagedHook =
    "/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json";
/// CRI-O has NRI switched on from this version on (pkg/config/config.go, DefaultConfig).
constexpr Version kNriByDefault{.major = 1, .minor = 30};

/// Where the runtime keeps the state of its containers.
constexpr const char* kCrioRuntimeRoot = "/run/podqos-runc";

/// What a row of the runtime table says of the runtime itself, which is another one for podqos.
constexpr std::array<std::string_view, 7> kOfTheRuntime = {
    "runtime_path",           "runtime_type",       "runtime_root",           "runtime_config_path",
    "platform_runtime_paths", "runtime_pull_image", "inherit_default_runtime"};

/// crio.conf and its drop-ins, podqos's own lines left out.
Result<std::vector<TomlDocument>> read_crio(const ConfigSource& source) {
  // CRI-O reads every file of the directory, whatever its name.
  return read_files({kCrioConfig}, kCrioDropIns, "", source);
}

/// The row of the runtime that pods get without a RuntimeClass; where conmon does not serve that
/// one (Kata), that of crun or runc, which names conmon, too. An empty one if there is none.
toml::table default_row(const std::vector<TomlDocument>& documents) {
  const TomlPath runtimes = {"crio", "runtime", "runtimes"};
  const TomlPath key = {"crio", "runtime", "default_runtime"};
  std::vector<std::string> names;
  if (const TomlDocument* document = last_with(documents, key))
    names.push_back(document->text_at(key));
  // CRI-O's own default: crun from 1.31 on, runc before.
  names.insert(names.end(), {"crun", "runc"});
  for (const std::string& name : names) {
    const TomlPath path = below(runtimes, {name});
    const TomlDocument* document = name == kHandler ? nullptr : last_with(documents, path);
    const toml::table* row = document == nullptr ? nullptr : document->at(path)->as_table();
    if (row == nullptr) continue;
    const std::string type = document->text_at(below(path, {"runtime_type"}));
    if (type.empty() || type == "oci") return *row;
  }
  return {};
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

Result<ConfigurePlan> plan_crio_runtime(const std::vector<TomlDocument>& documents,
                                        const ConfigSource& source) {
  const TomlPath runtime = {"crio", "runtime", "runtimes", std::string{kHandler}};
  PODQOS_ASSIGN(auto there, registered_by_hand(documents, runtime, {"runtime_path"}));
  if (there) return *std::move(there);
  return plan_own_file({.path = kCrioRuntimeDropIn,
                        .text = runtime_lines(default_row(documents)),
                        .what = "runtime \"podqos\""},
                       source);
}

/// The owner's file that switches NRI on; "" if none does. Fails where the owner has switched it
/// off.
Result<std::string> find_crio_nri(const std::vector<TomlDocument>& documents) {
  for (const auto& [name, wanted] :
       {std::pair{"enable_nri", true}, {"nri_disable_connections", false}}) {
    const TomlPath path = {"crio", "nri", name};
    const TomlDocument* document = last_with(documents, path);
    if (document == nullptr || document->flag_at(path) == wanted) continue;
    return fail(ErrorCode::kConflict, cat(document->place_of(path), ": NRI is off; write \"", name,
                                          " = ", wanted ? "true" : "false", "\" there by hand"));
  }
  const TomlDocument* document = last_with(documents, {"crio", "nri", "enable_nri"});
  return document == nullptr ? std::string{} : document->file;
}

Result<ConfigurePlan> plan_crio_nri(const ConfigureRequest& request,
                                    const std::vector<TomlDocument>& documents,
                                    const ConfigSource& source) {
  if (!request.version)
    return fail(ErrorCode::kInvalidArgument,
                "CRI-O's version is unknown; set it with --engine-version");
  PODQOS_ASSIGN(const auto file, find_crio_nri(documents));
  if (!file.empty() || *request.version >= kNriByDefault)
    return nothing_to_do(cat("NRI is on in this CRI-O; ", kCrioConfig, " needs no change"), file);
  const TomlPath listen = {"crio", "nri", "nri_listen"};
  if (const TomlDocument* document = last_with(documents, listen))
    return fail(ErrorCode::kConflict,
                cat(document->place_of(listen),
                    ": nri_listen is set, but not enable_nri; write \"enable_nri = true\" beside "
                    "it by hand"));
  return plan_own_file(
      {.path = kCrioNriDropIn, .text = std::string{kCrioNri}, .what = "table for NRI"}, source);
}

/// What the package registers by itself.
Result<ConfigurePlan> plan_crio_hooks(const ConfigSource& source) {
  PODQOS_ASSIGN(const auto hook, source.follow(kPackagedHook));
  if (!hook)
    return fail(ErrorCode::kNotFound,
                cat(kPackagedHook, " is missing: install the package podqos again"));
  return nothing_to_do(cat(
      kPackagedHook, ": registered already by the package; hooks alone cannot place containers"));
}

}  // namespace

Result<ConfigurePlan> plan_crio(const ConfigureRequest& request, const ConfigSource& source) {
  if (request.method == Method::kHooks) return plan_crio_hooks(source);
  PODQOS_ASSIGN(const auto documents, read_crio(source));
  return request.method == Method::kNri ? plan_crio_nri(request, documents, source)
                                        : plan_crio_runtime(documents, source);
}

Result<ConfigurePlan> plan_crio_removal(const ConfigSource& source) {
  PODQOS_ASSIGN(const auto documents, read_crio(source));
  PODQOS_TRY(check_not_default(documents, {"crio", "runtime", "default_runtime"}));
  ConfigurePlan plan;
  plan.registered_in.emplace_back(kCrioDropIns);
  for (const char* path : {kCrioRuntimeDropIn, kCrioNriDropIn})
    PODQOS_TRY(plan_own_removal(path, source, plan));
  // Its containers: directories in its runtime_root.
  PODQOS_ASSIGN(const auto entries, source.list(kCrioRuntimeRoot));
  const auto containers = std::ranges::count_if(
      entries, [](const std::string& name) { return !name.starts_with('.'); });
  // Its file may be gone since an earlier removal, after which CRI-O was not restarted.
  const bool stays =
      last_with(documents, {"crio", "runtime", "runtimes", std::string{kHandler}}) != nullptr;
  if (!stays && containers > 0)
    plan.restart_harm =
        cat(containers, " containers of the runtime \"", kHandler, "\" are in ", kCrioRuntimeRoot,
            ": once restarted, CRI-O cannot stop or remove them; remove their "
            "pods first");
  return plan;
}

}  // namespace podqos::ctl
