#include "ctl/configure/crio.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/configure/parts.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"

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

constexpr std::array<std::string_view, 2> kCrioBlocks = {"wrapper", "nri"};

/// What a row of the runtime table says of the runtime itself, which is another one for podqos.
constexpr std::array<std::string_view, 7> kOfTheRuntime = {
    "runtime_path",           "runtime_type",       "runtime_root",           "runtime_config_path",
    "platform_runtime_paths", "runtime_pull_image", "inherit_default_runtime"};

/// crio.conf and its drop-ins, podqos's own lines left out.
Result<std::vector<TomlDocument>> read_crio(const ConfigSource& source) {
  auto main = read_others(kCrioConfig, kCrioBlocks, source);
  if (!main) return fail(std::move(main).error());
  // CRI-O reads every file of the directory, whatever its name.
  auto drop_ins = read_drop_ins(kCrioDropIns, "", kCrioBlocks, source);
  if (!drop_ins) return fail(std::move(drop_ins).error());
  std::vector<TomlDocument> documents;
  documents.push_back(std::move(*main));
  std::ranges::move(*drop_ins, std::back_inserter(documents));
  return documents;
}

Result<ConfigurePlan> plan_crio_block(const TomlBlock& block, const ConfigSource& source) {
  auto change = plan_block(block, source);
  if (!change) return fail(std::move(change).error());
  ConfigurePlan plan;
  plan.registered_in.push_back(block.path);
  if (*change) plan.changes.push_back(std::move(**change));
  return plan;
}

/// The row of the runtime that pods get without a RuntimeClass; where conmon does not serve that
/// one (Kata), that of crun or runc, which names conmon, too. An empty one if there is none.
nlohmann::json default_row(const std::vector<TomlDocument>& documents) {
  const TomlPath runtimes = {"crio", "runtime", "runtimes"};
  const TomlPath key = {"crio", "runtime", "default_runtime"};
  std::vector<std::string> names;
  if (const TomlDocument* document = last_with(documents, key))
    names.push_back(text_at(*document, key));
  // CRI-O's own default: crun from 1.31 on, runc before.
  names.insert(names.end(), {"crun", "runc"});
  for (const std::string& name : names) {
    const TomlPath path = below(runtimes, {name});
    const TomlDocument* document = name == kHandler ? nullptr : last_with(documents, path);
    if (document == nullptr || !document->at(path)->is_object()) continue;
    const std::string type = text_at(*document, below(path, {"runtime_type"}));
    if (type.empty() || type == "oci") return *document->at(path);
  }
  return nlohmann::json::object();
}

Result<ConfigurePlan> plan_crio_runtime(const std::vector<TomlDocument>& documents,
                                        const ConfigSource& source) {
  const TomlPath runtime = {"crio", "runtime", "runtimes", std::string{kHandler}};
  const auto there = registered_by_hand(documents, runtime, {"runtime_path"});
  if (!there) return fail(there.error());
  if (*there) {
    const TomlDocument* document = last_with(documents, runtime);
    return nothing_to_do(already_there(document->place_of(runtime)), document->file());
  }
  return plan_crio_block({.path = kCrioRuntimeDropIn,
                          .name = format_way(Way::kWrapper),
                          .body = format_crio_runtime(default_row(documents)),
                          .what = "runtime \"podqos\"",
                          .base = {}},
                         source);
}

/// The owner's file that switches NRI on; "" if none does. Fails where the owner has switched it
/// off.
Result<std::string> find_crio_nri(const std::vector<TomlDocument>& documents) {
  for (const auto& [name, wanted] :
       {std::pair{"enable_nri", true}, {"nri_disable_connections", false}}) {
    const TomlPath path = {"crio", "nri", name};
    const TomlDocument* document = last_with(documents, path);
    if (document == nullptr || *document->at(path) == wanted) continue;
    return fail(ErrorCode::kConflict, cat(document->place_of(path), ": NRI is off; write \"", name,
                                          " = ", wanted ? "true" : "false", "\" there by hand"));
  }
  const TomlDocument* document = last_with(documents, {"crio", "nri", "enable_nri"});
  return document == nullptr ? std::string{} : document->file();
}

Result<ConfigurePlan> plan_crio_nri(const ConfigureRequest& request,
                                    const std::vector<TomlDocument>& documents,
                                    const ConfigSource& source) {
  if (!request.version)
    return fail(ErrorCode::kInvalidArgument,
                "CRI-O's version is not known; give it with --engine-version");
  const auto file = find_crio_nri(documents);
  if (!file) return fail(file.error());
  if (!file->empty() || *request.version >= kNriByDefault)
    return nothing_to_do(cat("NRI is on in this CRI-O; ", kCrioConfig, " needs no change"), *file);
  const TomlPath listen = {"crio", "nri", "nri_listen"};
  if (const TomlDocument* document = last_with(documents, listen)) {
    return fail(ErrorCode::kConflict,
                cat(document->place_of(listen),
                    ": nri_listen is set, but not enable_nri; write \"enable_nri = true\" beside "
                    "it by hand"));
  }
  return plan_crio_block({.path = kCrioNriDropIn,
                          .name = format_way(Way::kNri),
                          .body = format_crio_nri(),
                          .what = "table for NRI",
                          .base = {}},
                         source);
}

/// What the package registers by itself.
Result<ConfigurePlan> plan_crio_hooks(const ConfigSource& source) {
  const auto hook = source.follow(kPackagedHook);
  if (!hook) return fail(hook.error());
  if (!*hook) {
    return fail(ErrorCode::kNotFound,
                cat(kPackagedHook, " is missing: install the package podqos again"));
  }
  return nothing_to_do(cat(kPackagedHook,
                           ": registered already by the package; hooks alone cannot "
                           "place containers"));
}

}  // namespace

std::string format_crio_runtime(const nlohmann::json& like) {
  std::string row = cat("[crio.runtime.runtimes.", kHandler, "]\nruntime_path = \"", kWrapperPath,
                        "\"\nruntime_type = \"oci\"\nruntime_root = \"", kCrioRuntimeRoot, "\"\n");
  for (const auto& [name, value] : like.items()) {
    if (std::ranges::find(kOfTheRuntime, name) == kOfTheRuntime.end())
      row += cat(name, " = ", format_toml(value), "\n");
  }
  return row;
}

std::string format_crio_nri() {
  return "[crio.nri]\n"
         "enable_nri = true\n"
         "nri_listen = \"/var/run/nri/nri.sock\"\n"
         "nri_disable_connections = false\n";
}

Result<ConfigurePlan> plan_crio(const ConfigureRequest& request, const ConfigSource& source) {
  if (request.way == Way::kHooks) return plan_crio_hooks(source);
  const auto documents = read_crio(source);
  if (!documents) return fail(documents.error());
  return request.way == Way::kNri ? plan_crio_nri(request, *documents, source)
                                  : plan_crio_runtime(*documents, source);
}

/// How many containers the runtime "podqos" has: directories in its runtime_root.
Result<std::size_t> count_containers(const ConfigSource& source) {
  const auto entries = source.list(kCrioRuntimeRoot);
  if (!entries) return fail(entries.error());
  return static_cast<std::size_t>(std::ranges::count_if(
      *entries, [](const std::string& name) { return !name.starts_with('.'); }));
}

Result<ConfigurePlan> plan_crio_removal(const ConfigSource& source) {
  const auto documents = read_crio(source);
  if (!documents) return fail(documents.error());
  for (const TomlDocument& document : *documents) {
    const auto free = check_not_default(document, {"crio", "runtime", "default_runtime"});
    if (!free) return fail(free.error());
  }
  ConfigurePlan plan;
  plan.registered_in.emplace_back(kCrioDropIns);
  for (const char* path : {kCrioRuntimeDropIn, kCrioNriDropIn}) {
    const BlockRemoval removal{.path = path, .names = kCrioBlocks, .bases = {}};
    if (auto done = plan_block_removal(removal, source, plan); !done)
      return fail(std::move(done).error());
  }
  const auto containers = count_containers(source);
  if (!containers) return fail(containers.error());
  // Its file may be gone since an earlier removal, after which CRI-O was not restarted.
  const bool stays =
      last_with(*documents, {"crio", "runtime", "runtimes", std::string{kHandler}}) != nullptr;
  if (!stays && *containers > 0)
    plan.restart_harm =
        cat(*containers, " containers of the runtime \"", kHandler, "\" are in ", kCrioRuntimeRoot,
            ": once restarted, CRI-O cannot stop or remove them; remove their "
            "pods first");
  return plan;
}

}  // namespace podqos::ctl
