#include "ctl/doctor/doctor_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/settings_table.h"
#include "ctl/cli/command.h"
#include "ctl/cli/table.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/node_checks.h"

namespace podqos::ctl {
namespace {

using enum Outcome;

/// "/podqos/kubepods is podqos's", and what a kubelet's pods are in.
std::string owners_of(const Node& node) {
  std::set<std::string> owners;
  for (const TreeEntry& tree : node.trees)
    owners.insert(cat(tree.kubepods, " is podqos's"));
  for (const PodEntry& pod : node.pods)
    if (const auto& cgroup = pod.record.cgroup; pod.record.kubelets_own)
      owners.insert(cat(printable(cgroup.substr(0, cgroup.find('/', 1))), " is a kubelet's"));
  return owners.empty() ? "no kubepods cgroup is in use"
                        : join({owners.begin(), owners.end()}, ", ");
}

/// The first finding of a kind, or that there is none.
Finding check_kind(const NodeCheck& kind, const Node& node) {
  const auto count = std::ranges::count(node.findings, kind.name, &Finding::name);
  if (count == 0)
    return {std::string{kind.group}, std::string{kind.name}, kOk,
            kind.good.empty() ? owners_of(node) : std::string{kind.good}};
  Finding first = *std::ranges::find(node.findings, kind.name, &Finding::name);
  if (count > 1) first.text += cat(" (and ", count - 1, " more: see podqosctl status)");
  return first;
}

Finding check_tiers(const Node& node) {
  std::vector<std::string> above;
  for (const TreeEntry& tree : node.trees)
    for (const TierEntry& tier : tree.tiers)
      if (tier.converging) above.push_back(tier.cgroup.held.path());
  if (above.empty()) return {"pods", "tiers", kOk, "no memory limit is above its rule"};
  return {"pods", "tiers", kWarning,
          cat("usage keeps the memory limit above its rule: ", join(above, ", ")),
          "podqosctl reconcile --converge 60"};
}

/// Whether the trees of both drivers have pods.
Finding check_trees(const Node& node) {
  const auto used = std::ranges::count_if(node.trees, [](const TreeEntry& tree) {
    return std::ranges::any_of(tree.tiers,
                               [](const TierEntry& tier) { return tier.sum.pods != 0; });
  });
  if (used < 2) return {"pods", "trees", kOk, "no pods of two cgroup drivers"};
  return {
      "pods", "trees", kWarning,
      "pods of both cgroup drivers, each in a tree of its own: CPU that one tree leaves unused "
      "goes to its own BestEffort pods before the other's Burstable ones",
      "give all engines one cgroup driver: SystemdCgroup of containerd, cgroup_manager of CRI-O "
      "and Podman, native.cgroupdriver of Docker"};
}

/// Containers that podqos should manage and does not, else those of which that is unknown.
Finding check_missed(const Node& node) {
  const auto& missed = node.missed;
  if (missed.empty()) return check_kind(kNodeChecks.back(), node);
  return {"pods", "missed", kProblem,
          cat(name_of(missed.front().container), ": ", missed.front().why,
              missed.size() > 1 ? cat(" (and ", missed.size() - 1, " more: see podqosctl status)")
                                : ""),
          missed.front().remedy};
}

}  // namespace

Findings check_configuration(const app::ConfigurationReport& configuration) {
  Findings checks;
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
  const std::string why{why_unmanaged(configuration.settings)};
  checks.push_back({"configuration", "enabled", why.empty() ? kOk : kProblem,
                    why.empty() ? "podqos is on" : why,
                    why.empty()           ? ""
                    : why == kSwitchedOff ? "remove \"enabled\": false"
                                          : "run engines and podqos as root of the host"});
  const auto pids = configuration.settings.pod_pids_limit;
  checks.push_back({"configuration", "pids", pids ? kOk : kSkipped,
                    pids ? cat("a pod has at most ", *pids, " processes")
                         : "podPidsLimit is not set: a pod may take all processes of the node, "
                           "which then cannot fork either",
                    pids ? "" : "set podPidsLimit, such as 4096"});
  return checks;
}

Finding check_settings(const app::ConfigurationReport& configuration,
                       const std::optional<core::Settings>& last) {
  Finding check{"configuration", "settings", kSkipped, "no transaction has used any yet"};
  if (!last) return check;
  std::vector<std::string> differing;
  for (const codec::Setting& field : codec::settings_table())
    if (field.get(configuration.settings) != field.get(*last)) differing.emplace_back(field.path);
  check.outcome = differing.empty() ? kOk : kWarning;
  check.text = "the last transaction had those of the files";
  if (differing.empty()) return check;
  check.text =
      cat("the last transaction had other settings than the files: ", join(differing, ", "));
  check.remedy =
      "podqosctl reconcile; if they differ again, find the program that reads other files: it has "
      "the option --config, or is a podqos-nri in a pod";
  return check;
}

Finding check_weights(const core::Settings& settings, std::optional<core::WeightFormula> observed) {
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

Finding check_directory(const DirectoryFacts& facts) {
  constexpr std::int64_t kLeastBytes = 1LL << 20U;
  constexpr std::int64_t kLeastFiles = 64;
  Finding check{"state", "directory", kProblem, "", ""};
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
  return problem(cat("has ", rounded_amount(Bytes{facts.free_bytes}), " free"), "");
}

Finding check_lock(const LockFacts& facts, const core::Settings& settings) {
  Finding check{"state", "lock", kOk, "free"};
  if (!facts.holder) return check;
  check.text = cat("held by process ", facts.holder->value(), " (", facts.program, ") for ",
                   facts.held.count(), " s, ", facts.waiters, " waiting");
  if (facts.held <= std::chrono::milliseconds{settings.lock_deadline_ms}) return check;
  check.outcome = kProblem;
  check.text += ": containers start without podqos meanwhile";
  check.remedy = cat("if it hangs: kill ", facts.holder->value());
  return check;
}

Findings check_node(const Node& node) {
  Findings checks;
  for (const NodeCheck& kind : kNodeChecks)
    if (kind.name != "missed") checks.push_back(check_kind(kind, node));
  for (const auto check : {check_tiers, check_trees, check_missed})
    checks.push_back(check(node));
  return checks;
}

Finding check_eviction(const core::Settings& settings, const Node& node) {
  Finding check{"pods", "eviction", kSkipped,
                "not configured: where memory runs short, the OOM killer decides"};
  if (!settings.eviction.burstable && !settings.eviction.besteffort) return check;
  check.text = "no pods that could be evicted";
  for (const TreeEntry& tree : node.trees) {
    const auto tier = std::ranges::find_if(
        tree.tiers, [](const TierEntry& each) { return !each.evicts_at.empty(); });
    if (tier == tree.tiers.end()) continue;
    const std::string_view by = tier->evicted_by;
    if (!tier->evictor_runs)
      return {"pods", "eviction", kProblem,
              cat(by, " does not run, so that nothing evicts pods of ", tree.kubepods),
              cat("systemctl enable --now ", by, ".service")};
    check.text = cat("by ", by);
    check.outcome = kOk;
  }
  return check;
}

Finding check_events(const std::vector<core::Event>& events, UnixMillis now) {
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

Findings check_engines(const std::vector<EngineFacts>& engines, const core::Settings& settings) {
  if (engines.empty()) return {{"engines", "registered", kSkipped, "no engine is installed"}};
  Findings checks;
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

Finding check_timer(const Result<Units>& units) {
  Finding check{"services", "timer", kSkipped, ""};
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
