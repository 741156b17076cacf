#include "ctl/doctor_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "ctl/command.h"
#include "ctl/event_pods.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using enum Outcome;

constexpr const char* kTimerUnit = "podqos-reconcile.timer";
constexpr const char* kReconcile = "podqosctl reconcile";

/// Which of the controllers in use the kernel has in which version: "cpu, memory (v1)".
std::string controllers_of(const core::CgroupLayout& layout, core::CgroupVersion version) {
  std::vector<std::string> names;
  for (const core::ControllerRow& row : core::kControllers)
    if (layout.*row.version == version)
      names.emplace_back(version == core::CgroupVersion::kV2 ? row.v2_name : row.v1_name);
  return join(names, ", ");
}

Check check_controllers(const core::CgroupLayout& layout) {
  const std::string v1 = controllers_of(layout, core::CgroupVersion::kV1);
  const std::string v2 = controllers_of(layout, core::CgroupVersion::kV2);
  std::vector<std::string> found;
  if (!v2.empty()) found.push_back(cat("cgroup v2: ", v2));
  if (!v1.empty()) found.push_back(cat("cgroup v1: ", v1));
  Check check{"kernel", "controllers", kOk, join(found, "; ")};
  std::vector<std::string> lacking;
  for (const auto controller :
       {core::Controller::kCpu, core::Controller::kMemory, core::Controller::kPids})
    if (!layout.version_of(controller)) lacking.emplace_back(core::row_of(controller).v2_name);
  if (lacking.empty()) return check;
  check.outcome = kProblem;
  check.text = cat("the kernel lacks ", join(lacking, ", "), ": pods get no values of it");
  check.remedy = layout.memory
                     ? "mount it, or remove cgroup_disable= from the kernel's command line"
                     : "boot without cgroup_disable=memory, or with cgroup_enable=memory";
  return check;
}

constexpr const char* kNoMemory = "the kernel has no memory controller";

Check check_swap(const KernelFacts& facts, const core::Settings& settings) {
  Check check{"kernel", "swap", kOk, facts.has_swap ? "can be limited" : "the machine has none"};
  if (!facts.has_swap || facts.limits_swap || !settings.swap_behavior) return check;
  if (!facts.layout.memory) return {"kernel", "swap", kSkipped, kNoMemory};
  check.outcome = kWarning;
  check.text = "the kernel does not account for swap: containers may swap without limit";
  check.remedy = "boot with swapaccount=1";
  return check;
}

Check check_pressure(const KernelFacts& facts, const core::Settings& settings) {
  if (facts.has_pressure) return {"kernel", "pressure", kOk, "PSI is on"};
  if (!settings.eviction.burstable && !settings.eviction.besteffort)
    return {"kernel", "pressure", kSkipped, "PSI is off; eviction would need it"};
  return {"kernel", "pressure", kProblem, "PSI is off: eviction sees no memory pressure",
          "boot with psi=1"};
}

Check check_reclaim(const KernelFacts& facts) {
  Check check{"kernel", "reclaim", kOk, "memory.reclaim is there"};
  if (facts.reclaims) return check;
  if (facts.layout.memory == core::CgroupVersion::kV1) {
    check.text = "limits of cgroup v1 reclaim by themselves";
    return check;
  }
  check.outcome = kSkipped;
  check.text = facts.layout.memory
                   ? "no memory.reclaim before Linux 5.19: limits follow usage more slowly"
                   : kNoMemory;
  return check;
}

/// What a kind of an inventory's warnings means.
struct WarningKind {
  std::string_view kind;
  std::string_view group;
  std::string_view good;  ///< said without such a warning; "": who owns each kubepods
  Outcome outcome;
  const char* remedy;  ///< "" if the warning says it
};
constexpr std::array kKinds = {
    WarningKind{"records", "state", "all records can be read", kProblem, ""},
    WarningKind{"roots", "pods", "", kProblem, ""},
    WarningKind{"controllers", "pods", "all trees have their controllers", kProblem, kReconcile},
    WarningKind{"values", "pods", "the kernel has what the rules say", kProblem, kReconcile},
    WarningKind{"places", "pods", "all containers are in their pods", kProblem, ""},
    WarningKind{"containers", "pods", "all recorded containers run", kWarning, kReconcile},
    WarningKind{"unmanaged", "pods", "each pod cgroup has a record", kProblem, kReconcile},
    WarningKind{"limits", "pods", "pods follow the limits of their containers", kWarning, ""},
    WarningKind{"requests", "pods", "the node has room for all requests", kWarning, ""},
};

/// "/podqos/kubepods is podqos's", and what a kubelet's pods are in.
std::string owners_of(const Json& inventory) {
  std::set<std::string> owners;
  for (const Json& tree : inventory.at("trees"))
    owners.insert(cat(tree.at("kubepods").get_ref<const std::string&>(), " is podqos's"));
  for (const Json& pod : inventory.at("pods"))
    if (const auto& cgroup = pod.at("cgroup").get_ref<const std::string&>();
        pod.at("kubeletsOwn") == true)
      owners.insert(cat(printable(cgroup.substr(0, cgroup.find('/', 1))), " is a kubelet's"));
  return owners.empty() ? "no kubepods cgroup is in use"
                        : join({owners.begin(), owners.end()}, ", ");
}

Check check_kind(const WarningKind& kind, const Json& inventory) {
  Check check{std::string{kind.group}, std::string{kind.kind}, kOk, std::string{kind.good}};
  std::size_t found = 0;
  for (std::size_t each = 0; each < inventory.at("warnings").size(); ++each) {
    if (inventory.at("warningKinds").at(each) != kind.kind) continue;
    if (found++ == 0) check.text = inventory.at("warnings").at(each).get<std::string>();
  }
  if (found == 0 && kind.good.empty()) check.text = owners_of(inventory);
  if (found == 0) return check;
  check.outcome = kind.outcome;
  check.remedy = kind.remedy;
  if (found > 1) check.text += cat(" (and ", found - 1, " more: see podqosctl status)");
  return check;
}

Check check_tiers(const Json& inventory) {
  std::vector<std::string> above;
  for (const Json& tree : inventory.at("trees"))
    for (const Json& tier : tree.at("tiers"))
      if (tier.at("converging") == true) above.push_back(tier.at("cgroup").get<std::string>());
  if (above.empty()) return {"pods", "tiers", kOk, "no memory limit is above its rule"};
  return {"pods", "tiers", kWarning,
          cat("usage keeps the memory limit above its rule: ", join(above, ", ")),
          "podqosctl reconcile --converge 60"};
}

}  // namespace

Checks check_kernel(const KernelFacts& facts, const core::Settings& settings) {
  return {check_controllers(facts.layout), check_pressure(facts, settings),
          check_swap(facts, settings), check_reclaim(facts)};
}

Checks check_configuration(const app::ConfigurationReport& configuration) {
  Checks checks;
  for (const std::string& error : configuration.errors)
    checks.push_back(
        {"configuration", "files", kProblem,
         cat(error, "; until it is corrected, ", app::describe_source(configuration.source)),
         "podqosctl config check"});
  for (const std::string& ignored : configuration.ignored)
    checks.push_back({"configuration", "files", kWarning,
                      cat(ignored, " is not read: the names of files in conf.d end in .json"),
                      cat("mv ", ignored, " ", ignored.substr(0, ignored.rfind('.')), ".json")});
  if (checks.empty())
    checks.push_back({"configuration", "files", kOk,
                      configuration.files.empty() ? "no files: the built-in settings count"
                                                  : join(configuration.files, ", ")});
  const bool enabled = configuration.settings.enabled;
  checks.push_back({"configuration", "enabled", enabled ? kOk : kWarning,
                    enabled ? "podqos is on" : std::string{kSwitchedOff},
                    enabled ? "" : "remove \"enabled\": false"});
  const auto pids = configuration.settings.pod_pids_limit;
  checks.push_back({"configuration", "pids", pids ? kOk : kSkipped,
                    pids ? cat("a pod has at most ", *pids, " processes")
                         : "podPidsLimit is not set: a pod may take all processes of the node, "
                           "which then cannot fork either",
                    pids ? "" : "set podPidsLimit, such as 4096"});
  return checks;
}

Check check_weights(const core::Settings& settings, std::optional<core::WeightFormula> observed) {
  using Setting = core::WeightFormulaSetting;
  const auto name = [](bool log) { return log ? "log" : "linear"; };
  if (!observed)
    return {"configuration", "weights", kSkipped, "no container has shown the runtime's formula"};
  const bool log = *observed == core::WeightFormula::kLog;
  const bool set = settings.weight_formula != Setting::kAuto;
  if (!set || (settings.weight_formula == Setting::kLog) == log)
    return {"configuration", "weights", kOk, cat("the runtime's formula: ", name(log))};
  return {"configuration", "weights", kWarning,
          cat("weightFormula is ", name(!log), ", and the runtime gives containers weights by the ",
              name(log), " formula: pods and their containers do not compare"),
          "set weightFormula to auto"};
}

Check check_directory(const DirectoryFacts& facts) {
  constexpr std::int64_t kLeastBytes = 1LL << 20U;
  constexpr std::int64_t kLeastFiles = 64;
  Check check{"state", "directory", kProblem, "", ""};
  const auto problem = [&](std::string_view text, std::string remedy) {
    check.text = cat(facts.path, " ", text);
    check.remedy = std::move(remedy);
    return check;
  };
  if (facts.error && facts.error->code == ErrorCode::kNotFound) {
    check.outcome = kOk;
    return problem("does not exist: no pod has come yet", "");
  }
  if (facts.error) {
    check.text = for_root(*facts.error).message;
    return check;
  }
  if (!S_ISDIR(facts.mode)) return problem("is not a directory", cat("ls -ld ", facts.path));
  if (facts.owner != 0)
    return problem(cat("belongs to user ", facts.owner, ": podqos uses none but root's"),
                   cat("look at its files, then chown root: ", facts.path));
  if ((facts.mode & (S_IWGRP | S_IWOTH)) != 0)
    return problem("is writable by others: podqos does not use it",
                   cat("look at its files, then chmod 0700 ", facts.path));
  if (facts.read_only) return problem("is mounted read-only", cat("findmnt --target ", facts.path));
  if (facts.free_bytes < kLeastBytes || facts.free_files < kLeastFiles)
    return problem(
        cat("has no room: ", facts.free_bytes, " bytes and ", facts.free_files, " files are free"),
        cat("df -h ", facts.path, "; df -i ", facts.path));
  check.outcome = kOk;
  return problem(cat("has ", format_bytes(Bytes{facts.free_bytes}), " free"), "");
}

Check check_lock(const LockFacts& facts, const core::Settings& settings) {
  Check check{"state", "lock", kOk, "free"};
  if (!facts.holder) return check;
  check.text = cat("held by process ", facts.holder->value(), " (", facts.program, ") for ",
                   facts.held.count(), " s, ", facts.waiters, " waiting");
  if (facts.held <= std::chrono::milliseconds{settings.lock_deadline_ms}) return check;
  check.outcome = kProblem;
  check.text += ": containers start without podqos meanwhile";
  check.remedy = cat("if it hangs: kill ", facts.holder->value());
  return check;
}

Checks check_inventory(const Result<Json>& inventory) {
  if (!inventory)
    return {{"state", "records", kProblem, for_root(inventory.error()).message, kReconcile}};
  Checks checks;
  for (const WarningKind& kind : kKinds)
    checks.push_back(check_kind(kind, *inventory));
  checks.push_back(check_tiers(*inventory));
  return checks;
}

Check check_missed(const MissedContainers& found) {
  const auto& [missed, warnings] = found;
  const auto others = [](std::size_t count) {
    return count > 1 ? cat(" (and ", count - 1, " more: see podqosctl status)") : "";
  };
  if (missed.empty() && warnings.empty())
    return {"pods", "missed", kOk, "no container that asks for podqos is missed"};
  if (missed.empty())
    return {"pods", "missed", kWarning, cat(warnings.front(), others(warnings.size()))};
  const NotManaged& first = missed.front();
  return {"pods", "missed", kProblem,
          cat(name_of(first.container), ": ", first.why, others(missed.size())), first.remedy};
}

Check check_events(const std::vector<core::Event>& events, UnixMillis now) {
  const core::Event* last = nullptr;
  std::size_t count = 0;
  for (const core::Event& event : events) {
    const bool failed =
        event.kind == core::EventKind::kFailed || event.kind == core::EventKind::kRefused;
    if (!failed || !core::is_recent(event, now)) continue;
    ++count;
    last = &event;
  }
  if (last == nullptr) return {"pods", "failures", kOk, "none in the last hour"};
  return {"pods", "failures", kWarning, cat(count, " in the last hour, the last one: ", last->text),
          "podqosctl events --since 1h"};
}

Checks check_engines(const std::vector<EngineFacts>& engines, const core::Settings& settings) {
  if (engines.empty()) return {{"engines", "registered", kSkipped, "no engine is installed"}};
  Checks checks;
  if (std::ranges::all_of(
          engines, [](const auto& each) { return each.registered.empty() && !each.unknown; }))
    checks.push_back({"engines", "registered", kProblem,
                      "podqos is registered with no engine: all containers stay unmanaged",
                      cat("podqosctl configure ", engines.front().engine->name, " --restart")});
  std::vector<std::string> drivers;
  for (const EngineFacts& each : engines) {
    if (each.registered.empty() || !each.settings.driver) continue;
    drivers.push_back(cat(each.engine->title, " ", core::format_driver(*each.settings.driver)));
    if (const auto allowed = core::check_driver(settings.cgroup_driver, *each.settings.driver);
        !allowed)
      checks.push_back({std::string{each.engine->name}, "driver", kProblem, allowed.error().message,
                        "set cgroupDriver to auto"});
  }
  if (!drivers.empty()) checks.push_back({"engines", "drivers", kOk, join(drivers, ", ")});
  return checks;
}

Check check_timer(const Result<Units>& units) {
  Check check{"services", "timer", kSkipped, ""};
  if (!units) {
    check.text = shorten(units.error().message, 300);
    return check;
  }
  const auto found = units->find(kTimerUnit);
  const UnitState timer = found == units->end() ? UnitState{} : found->second;
  if (timer.active) {
    check.outcome = kOk;
    check.text = cat(kTimerUnit, " runs");
    return check;
  }
  check.outcome = kWarning;
  check.text = cat(kTimerUnit,
                   timer.masked      ? " is masked"
                   : timer.installed ? " does not run"
                                     : " is not installed",
                   ": nothing corrects values and records between events");
  check.remedy = timer.installed
                     ? cat("systemctl ", timer.masked ? "unmask " : "enable --now ", kTimerUnit)
                     : "install the package podqos again";
  return check;
}

}  // namespace podqos::ctl
