#include "common/core/pod_plan.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/layout.h"
#include "common/core/settings.h"
#include "common/core/value_table.h"

namespace podqos::core {

namespace {

constexpr std::string_view kRootName = "/kubepods";

std::string_view without_slash(std::string_view cgroup_root) {
  while (cgroup_root.ends_with('/'))
    cgroup_root.remove_suffix(1);
  return cgroup_root;
}

void append(Plan& plan, Plan more) {
  for (Step& step : more)
    plan.push_back(std::move(step));
}

/// The slice of a cgroupfs path; components hold neither '_' nor dots alone, as the configuration
/// has seen to.
std::string as_slice(std::string_view path) {
  CgroupName name = parse_cgroupfs(path);
  std::erase_if(name, [](const std::string& component) { return component.empty(); });
  return format_systemd(name).value_or(std::string{path});
}

/// "/a.slice" and "b" → "/a.slice/a-b.slice".
std::string child_slice(std::string_view parent, std::string_view name) {
  std::string_view stem = leaf_of(parent);
  stem.remove_suffix(kSlice.size());
  std::string escaped{name};
  std::ranges::replace(escaped, '-', '_');
  return cat(parent, "/", stem, "-", escaped, kSlice);
}

std::string child_of(std::string_view parent, std::string_view name) {
  return driver_of(parent) == Driver::kSystemd ? child_slice(parent, name) : cat(parent, "/", name);
}

/// Accounting turns the controllers on, whatever values follow.
void add_accounting(std::vector<UnitProperty>& properties) {
  for (const char* name : {"CPUAccounting", "MemoryAccounting", "IOAccounting", "TasksAccounting"})
    properties.push_back({.name = name, .value = true});
}

/// @note opencontainers/cgroups systemd/v2.go Apply.
StartUnit start_slice(std::string path, std::string_view what,
                      std::vector<UnitProperty> properties) {
  const std::string_view above = leaf_of(parent_of(path));
  const std::string parent{above.empty() ? "-.slice" : above};
  StartUnit step{.path = std::move(path), .properties = std::move(properties)};
  step.once = {{.name = "Description", .value = cat("podqos ", what)},
               {.name = "Wants", .value = std::vector{parent}},
               {.name = "DefaultDependencies", .value = false}};
  add_accounting(step.once);
  return step;
}

/// So that systemd keeps what the files of a unit were given.
SetUnit set_unit(std::string path, const CgroupValues& values, const CgroupLayout& layout,
                 WeightFormula formula) {
  return {.path = std::move(path), .properties = unit_properties(values, layout, formula)};
}

/// A scope of podqos's own for a process that is in its cgroup already.
StartUnit adopt_scope(std::string path, Pid pid) {
  const std::string parent{leaf_of(parent_of(path))};
  StartUnit step{.path = std::move(path), .properties = {}};
  step.once = {{.name = "Description", .value = std::string{"podqos scope"}},
               {.name = "Slice", .value = parent},
               {.name = "PIDs", .value = std::vector{static_cast<std::uint32_t>(pid.value())}},
               {.name = "Delegate", .value = true},
               {.name = "DefaultDependencies", .value = false}};
  add_accounting(step.once);
  return step;
}

/// Makes one directory of ours, and the unit that it is.
void make(Plan& plan, const std::string& path, std::string_view what,
          std::vector<UnitProperty> properties) {
  if (driver_of(path) == Driver::kSystemd)
    plan.emplace_back(start_slice(path, what, std::move(properties)));
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

}  // namespace

std::string root_path(std::string_view cgroup_root, Driver driver) {
  const std::string path = cat(without_slash(cgroup_root), kRootName);
  return driver == Driver::kSystemd ? as_slice(path) : path;
}

std::string tier_path(std::string_view kubepods, QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: break;
    case QosClass::kBurstable: return child_of(kubepods, "burstable");
    case QosClass::kBestEffort: return child_of(kubepods, "besteffort");
  }
  return std::string{kubepods};
}

std::string pod_path(std::string_view kubepods, QosClass qos_class, std::string_view uid) {
  return child_of(tier_path(kubepods, qos_class), cat("pod", uid));
}

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
              const CgroupLayout& layout, WeightFormula formula, Make make_it) {
  const CgroupValues values{.cpu_shares = shares};
  CgroupLayout without_hugetlb = layout;
  without_hugetlb.hugetlb.reset();
  Plan plan;
  for (const std::string& directory : directories) {
    append(plan, write(directory, values, without_hugetlb, formula, "all pods of podqos"));
    if (driver_of(directory) == Driver::kCgroupfs) continue;
    SetUnit tell = set_unit(directory, values, without_hugetlb, formula);
    tell.always = make_it == Make::kYes;
    plan.emplace_back(std::move(tell));
  }
  return plan;
}

Plan plan_tiers(std::string_view kubepods, const TierValues& values, const CgroupLayout& layout,
                WeightFormula formula, Make make_it) {
  // Huge pages are bounded per pod only; a tier that limits none must not be lowered to zero pages.
  CgroupLayout without_hugetlb = layout;
  without_hugetlb.hugetlb.reset();
  Plan plan;
  const auto add = [&](const std::string& tier, const CgroupValues& held, const std::string& what) {
    for (Step& step : write(tier, held, without_hugetlb, formula, what)) {
      // One that is refused keeps none of the others from being written.
      if (auto* file = std::get_if<WriteFile>(&step);
          file != nullptr && file->on_refusal == OnRefusal::kFail)
        file->on_refusal = OnRefusal::kRetryAfterPlan;
      plan.push_back(std::move(step));
    }
    if (driver_of(tier) == Driver::kCgroupfs) return;
    SetUnit tell = set_unit(tier, held, without_hugetlb, formula);
    tell.always = make_it == Make::kYes;
    plan.emplace_back(std::move(tell));
  };
  if (values.root != CgroupValues{}) add(std::string{kubepods}, values.root, "root");
  add(tier_path(kubepods, QosClass::kBurstable), values.burstable, "burstable tier");
  add(tier_path(kubepods, QosClass::kBestEffort), values.besteffort, "besteffort tier");
  return plan;
}

Plan plan_pod(const std::string& cgroup, const CgroupValues& values, const CgroupLayout& layout,
              WeightFormula formula, Make make_it) {
  Plan plan;
  if (make_it == Make::kYes) make(plan, cgroup, "pod", unit_properties(values, layout, formula));
  append(plan, write(cgroup, values, layout, formula, "pod"));
  if (make_it == Make::kNo && driver_of(cgroup) == Driver::kSystemd)
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
  if (driver_of(path) == Driver::kSystemd) plan.emplace_back(adopt_scope(path, monitor));
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
