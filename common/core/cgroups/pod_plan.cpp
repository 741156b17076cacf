#include "common/core/cgroups/pod_plan.h"

#include <cstddef>
#include <span>
#include <utility>
#include <variant>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::core {

namespace {

void append(Plan& plan, Plan more) {
  for (Step& step : more)
    plan.push_back(std::move(step));
}

/// A unit that podqos makes, with what only a new one is told. Accounting turns the controllers on,
/// whatever values follow.
/// @note opencontainers/cgroups systemd/v2.go Apply.
StartUnit start_unit(const std::string& path, std::vector<UnitProperty> properties,
                     std::vector<UnitProperty> once) {
  once.push_back({.name = "DefaultDependencies", .value = false});
  for (const char* name : {"CPUAccounting", "MemoryAccounting", "IOAccounting", "TasksAccounting"})
    once.push_back({.name = name, .value = true});
  return {.path = path, .properties = std::move(properties), .once = std::move(once)};
}

/// So that systemd keeps what the files of a unit were given.
SetUnit set_unit(std::string path, const CgroupValues& values, const CgroupLayout& layout,
                 WeightFormula formula) {
  return {.path = std::move(path), .properties = unit_properties(values, layout, formula)};
}

/// Creates one of podqos's cgroups, with systemd also its slice.
void make(Plan& plan, const std::string& path, std::string_view what,
          std::vector<UnitProperty> properties) {
  if (driver_of(path) == Driver::kSystemd) {
    const std::string_view above = leaf_of(parent_of(path));
    const std::string parent{above.empty() ? "-.slice" : above};
    plan.emplace_back(start_unit(path, std::move(properties),
                                 {{.name = "Description", .value = cat("podqos ", what)},
                                  {.name = "Wants", .value = std::vector{parent}}}));
  }
  plan.emplace_back(EnsureCgroup{path});
}

/// The files of one directory of ours. Those of a unit are written as well, since systemd does so
/// only in a job of its own time.
Plan write(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
           WeightFormula formula, const std::string& what) {
  const bool unit = driver_of(path) == Driver::kSystemd;
  Plan plan = lower_values(path, unit ? rounded_by_systemd(values) : values, layout, formula, what);
  if (values.io_weight) {
    const bool reset = *values.io_weight == kDefaultIoWeight;
    plan.emplace_back(SetAttribute{
        .path = path, .name = kIoWeightAttribute, .value = reset ? kIoWeightReset : kIoWeightSet});
  }
  return plan;
}

/// How the values of a cgroup above pods are written.
struct Manner {
  const CgroupLayout& layout;
  WeightFormula formula;
  Cgroup make;  ///< kCreate: systemd is told even what the files hold already
};

/// Writes the values of a cgroup above pods, and tells its unit. Huge pages are bounded per pod
/// only; a tier that limits none must not be lowered to zero pages.
void write_shared(Plan& plan, const std::string& path, const std::string& what,
                  const CgroupValues& values, const Manner& manner) {
  CgroupLayout without_hugetlb = manner.layout;
  without_hugetlb.hugetlb.reset();
  append(plan, write(path, values, without_hugetlb, manner.formula, what));
  if (driver_of(path) == Driver::kCgroupfs) return;
  SetUnit tell = set_unit(path, values, without_hugetlb, manner.formula);
  tell.always = manner.make == Cgroup::kCreate;
  plan.emplace_back(std::move(tell));
}

}  // namespace

std::vector<std::string> directories_above(std::string_view kubepods, std::string_view top) {
  std::vector<std::string> directories;
  if (!is_below(kubepods, top)) return directories;
  for (std::size_t end = top.size(); end < kubepods.size(); end = kubepods.find('/', end + 1))
    directories.emplace_back(kubepods.substr(0, end));
  return directories;
}

Plan plan_tree(std::string_view kubepods, std::string_view top) {
  Plan plan;
  // With the cgroupfs driver the tiers bring their parents with them.
  if (driver_of(kubepods) == Driver::kSystemd) {
    for (const std::string& directory : directories_above(kubepods, top))
      make(plan, directory, "tree", {});
    make(plan, std::string{kubepods}, "root of the pods", {});
  }
  make(plan, tier_path(kubepods, QosClass::kBurstable), "burstable tier", {});
  make(plan, tier_path(kubepods, QosClass::kBestEffort), "besteffort tier", {});
  return plan;
}

Plan plan_top(const std::vector<std::string>& directories, CpuShares shares,
              const CgroupLayout& layout, WeightFormula formula, Cgroup make_it) {
  Plan plan;
  for (const std::string& directory : directories) {
    const CgroupValues values{.cpu_shares = shares};
    write_shared(plan, directory, "all pods of podqos", values, {layout, formula, make_it});
  }
  return plan;
}

Plan plan_tiers(std::string_view kubepods, const TierValues& values, const CgroupLayout& layout,
                WeightFormula formula, Cgroup make_it) {
  Plan plan;
  const auto add = [&](const std::string& tier, const CgroupValues& held, const char* what) {
    const std::size_t begin = plan.size();
    write_shared(plan, tier, what, held, {layout, formula, make_it});
    // One that is refused keeps none of the others from being written.
    for (Step& step : std::span{plan}.subspan(begin)) {
      if (auto* file = std::get_if<WriteFile>(&step);
          file != nullptr && file->on_refusal == OnRefusal::kFail)
        file->on_refusal = OnRefusal::kRetryAfterPlan;
    }
  };
  if (values.root != CgroupValues{}) add(std::string{kubepods}, values.root, "root");
  add(tier_path(kubepods, QosClass::kBurstable), values.burstable, "burstable tier");
  add(tier_path(kubepods, QosClass::kBestEffort), values.besteffort, "besteffort tier");
  return plan;
}

Plan plan_pod(const std::string& cgroup, const CgroupValues& values, const CgroupLayout& layout,
              WeightFormula formula, Cgroup make_it) {
  Plan plan;
  if (make_it == Cgroup::kCreate)
    make(plan, cgroup, "pod", unit_properties(values, layout, formula));
  append(plan, write(cgroup, values, layout, formula, "pod"));
  if (make_it == Cgroup::kExists && driver_of(cgroup) == Driver::kSystemd)
    plan.emplace_back(set_unit(cgroup, values, layout, formula));
  return plan;
}

Plan plan_container(const ContainerRecord& container, const CgroupValues& values,
                    const CgroupLayout& layout, WeightFormula formula) {
  const std::string& cgroup = container.cgroup;
  if (scope_of(cgroup).empty()) return lower_values(cgroup, values, layout, formula, "container");
  Plan plan = lower_values(cgroup, rounded_by_systemd(values), layout, formula, "container");
  plan.emplace_back(set_unit(cgroup, values, layout, formula));
  return plan;
}

std::string monitor_path(const std::string& pod_cgroup) {
  constexpr std::string_view kName = "podqos-monitor";
  if (driver_of(pod_cgroup) == Driver::kCgroupfs) return cat(pod_cgroup, "/", kName);
  // Names of units are the machine's, not the slice's.
  std::string_view stem = leaf_of(pod_cgroup);
  stem.remove_suffix(kSlice.size());
  return cat(pod_cgroup, "/", kName, "-", stem, ".scope");
}

Plan plan_monitor(const std::string& pod_cgroup, Pid monitor) {
  const std::string path = monitor_path(pod_cgroup);
  Plan plan{EnsureCgroup{path}, MoveProcess{.path = path, .pid = monitor}};
  if (driver_of(path) == Driver::kCgroupfs) return plan;
  plan.emplace_back(start_unit(
      path, {},
      {{.name = "Description", .value = std::string{"podqos scope"}},
       {.name = "Slice", .value = std::string{leaf_of(pod_cgroup)}},
       {.name = "PIDs", .value = std::vector{static_cast<std::uint32_t>(monitor.value())}},
       {.name = "Delegate", .value = true}}));
  return plan;
}

Plan plan_removal(const std::string& cgroup) {
  if (driver_of(cgroup) == Driver::kCgroupfs) return {RemoveCgroup{cgroup}};
  // The kernel refuses to remove what lives, and systemd would stop it.
  return {RemoveCgroup{cgroup}, StopUnit{cgroup}};
}

std::vector<std::string> tiers_and_root(std::string_view kubepods) {
  return {tier_path(kubepods, QosClass::kBurstable), tier_path(kubepods, QosClass::kBestEffort),
          std::string{kubepods}};
}

}  // namespace podqos::core
