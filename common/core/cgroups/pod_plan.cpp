#include "common/core/cgroups/pod_plan.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
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

/// What systemd-oomd goes by, which knows cgroup v2 alone, as properties of a unit.
/// @note systemd.resource-control(5), systemd src/core/dbus-cgroup.c
std::vector<UnitProperty> oomd_properties(const CgroupValues& values, const CgroupLayout& layout) {
  constexpr std::int64_t kMicrosPerSecond = 1'000'000;
  std::vector<UnitProperty> told;
  if (layout.memory != CgroupVersion::kV2) return told;
  if (const auto& pressure = values.oomd_pressure) {
    // A fraction of 2^32 - 1, rounded: systemd src/basic/percent-util.h UINT32_SCALE_FROM_PERCENT.
    // 0 is oomd's default, by which it never goes, as the limit comes before the mode.
    constexpr std::int64_t kWhole = std::numeric_limits<std::uint32_t>::max();
    const std::int64_t limit = (pressure->percent * kWhole + kPercent / 2) / kPercent;
    told.push_back(
        {.name = "ManagedOOMMemoryPressureLimit", .value = static_cast<std::uint32_t>(limit)});
    // Since systemd 257; before, DefaultMemoryPressureDurationSec= of oomd.conf(5) counts.
    const auto duration = static_cast<std::uint64_t>(pressure->seconds * kMicrosPerSecond);
    told.push_back({.name = "ManagedOOMMemoryPressureDurationUSec",
                    .value = pressure->seconds > 0 ? duration : kUnitInfinity});
    told.push_back({.name = "ManagedOOMMemoryPressure",
                    .value = std::string{pressure->percent > 0 ? "kill" : "auto"}});
  }
  if (values.oomd_avoid)
    told.push_back({.name = "ManagedOOMPreference",
                    .value = std::string{*values.oomd_avoid ? "avoid" : "none"}});
  return told;
}

/// Tells systemd, one by one, what systemd-oomd goes by: it may be too old for one of them.
Plan tell_oomd(const std::string& path, const CgroupValues& values, const CgroupLayout& layout) {
  Plan plan;
  if (driver_of(path) != Driver::kSystemd) return plan;
  for (UnitProperty& property : oomd_properties(values, layout))
    plan.emplace_back(SetUnit{.path = path,
                              .properties = {std::move(property)},
                              .on_refusal = OnRefusal::kIgnoreIfUnsupported,
                              .always = true});
  // systemd sets it only once it has other values to write to the cgroup.
  if (values.oomd_avoid)
    plan.emplace_back(SetAttribute{
        .path = path, .name = kOomdAvoidAttribute, .value = *values.oomd_avoid ? "1" : "0"});
  if (plan.empty() || !scope_of(path).empty()) return plan;
  const bool set = values.oomd_pressure ? values.oomd_pressure->percent > 0 : *values.oomd_avoid;
  plan.emplace_back(SetAttribute{
      .path = path, .name = kEvictionAttribute, .value = set ? kEvictionSet : kEvictionReset});
  return plan;
}

/// Writes the values of one cgroup. Those of a unit are written as well, since systemd does so only
/// in a job of its own time.
Plan write(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
           WeightFormula formula, const std::string& what) {
  const bool unit = driver_of(path) == Driver::kSystemd;
  Plan plan = lower_values(path, unit ? rounded_by_systemd(values) : values, layout, formula, what);
  if (values.io_weight) {
    const bool reset = *values.io_weight == kDefaultIoWeight;
    plan.emplace_back(SetAttribute{
        .path = path, .name = kIoWeightAttribute, .value = reset ? kIoWeightReset : kIoWeightSet});
  }
  append(plan, tell_oomd(path, values, layout));
  return plan;
}

/// As above, and tells the unit, so that systemd keeps what the files were given.
Plan write_and_tell(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
                    WeightFormula formula, const std::string& what) {
  Plan plan = write(path, values, layout, formula, what);
  if (driver_of(path) == Driver::kSystemd)
    plan.emplace_back(
        SetUnit{.path = path, .properties = unit_properties(values, layout, formula)});
  return plan;
}

/// A cgroup above pods, what is written to it, and what it is.
struct UpperCgroup {
  std::string path;
  CgroupValues values;
  const char* what;
};

/// @param make_it  kCreate: systemd is told what the files hold already, if it has not that itself
Plan write_upper(const std::vector<UpperCgroup>& cgroups, CgroupLayout layout,
                 WeightFormula formula, Cgroup make_it) {
  // Huge pages are bounded per pod only; what limits none must not be lowered to zero pages.
  layout.hugetlb.reset();
  Plan plan;
  for (const auto& [path, values, what] : cgroups)
    append(plan, write_and_tell(path, values, layout, formula, what));
  for (Step& step : plan) {
    if (auto* told = std::get_if<SetUnit>(&step); told && make_it == Cgroup::kCreate)
      told->always = true;
    // One that is refused keeps none of the others from being written.
    if (auto* file = std::get_if<WriteFile>(&step); file && file->on_refusal == OnRefusal::kFail)
      file->on_refusal = OnRefusal::kRetryAfterPlan;
  }
  return plan;
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

Plan plan_top(const std::vector<std::string>& directories, const CgroupValues& values,
              const CgroupLayout& layout, WeightFormula formula, Cgroup make_it) {
  std::vector<UpperCgroup> cgroups;
  cgroups.reserve(directories.size());
  for (const std::string& directory : directories)
    cgroups.push_back({directory, values, "all pods of podqos"});
  return write_upper(cgroups, layout, formula, make_it);
}

Plan plan_tiers(std::string_view kubepods, const TierValues& values, const CgroupLayout& layout,
                WeightFormula formula, Cgroup make_it) {
  std::vector<UpperCgroup> cgroups{
      {tier_path(kubepods, QosClass::kBurstable), values.burstable, "burstable tier"},
      {tier_path(kubepods, QosClass::kBestEffort), values.besteffort, "besteffort tier"}};
  if (values.root != CgroupValues{})
    cgroups.insert(cgroups.begin(), {std::string{kubepods}, values.root, "root"});
  return write_upper(cgroups, layout, formula, make_it);
}

Plan plan_memory_limit(const std::string& cgroup, Bytes limit, const CgroupLayout& layout) {
  return write_and_tell(cgroup, {.memory_limit = limit}, layout, WeightFormula{},
                        "follows the usage to its rule");
}

Plan plan_pod(const std::string& cgroup, const CgroupValues& values, const CgroupLayout& layout,
              WeightFormula formula, Cgroup make_it) {
  if (make_it == Cgroup::kExists) return write_and_tell(cgroup, values, layout, formula, "pod");
  Plan plan;
  make(plan, cgroup, "pod", unit_properties(values, layout, formula));
  append(plan, write(cgroup, values, layout, formula, "pod"));
  return plan;
}

Plan plan_container(const std::string& cgroup, const CgroupValues& values,
                    const CgroupLayout& layout, WeightFormula formula) {
  // A container "foo.slice" of the cgroupfs driver has no unit.
  if (scope_of(cgroup).empty()) return lower_values(cgroup, values, layout, formula, "container");
  return write_and_tell(cgroup, values, layout, formula, "container");
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

bool is_watched_by_oomd(std::string_view kubepods, const CgroupLayout& layout) {
  return driver_of(kubepods) == Driver::kSystemd && layout.memory == CgroupVersion::kV2;
}

}  // namespace podqos::core
