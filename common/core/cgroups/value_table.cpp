#include "common/core/cgroups/value_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kSystemdQuotaStep = 10'000;  // 10 ms of CPU time a second
constexpr std::int64_t kUnlimited = -1;

using Number = std::optional<std::int64_t>;

Number shares(const CgroupValues& values, WeightFormula) {
  return values.cpu_shares ? Number{values.cpu_shares->value()} : std::nullopt;
}

Number weight(const CgroupValues& values, WeightFormula formula) {
  return values.cpu_shares ? Number{cpu_weight_for(*values.cpu_shares, formula).value()}
                           : std::nullopt;
}

/// For systemd an idle unit has a weight of 0.
/// @note src/core/cgroup.c, CGROUP_WEIGHT_IDLE; since systemd 252
Number told_weight(const CgroupValues& values, WeightFormula formula) {
  return values.cpu_idle.value_or(false) ? Number{0} : weight(values, formula);
}

Number idle(const CgroupValues& values, WeightFormula) {
  return values.cpu_idle ? Number{*values.cpu_idle ? 1 : 0} : std::nullopt;
}

/// On v1 only others make one idle: it weighs more than with 2 shares (WEIGHT_IDLEPRIO is 3).
Number never_idle(const CgroupValues& values, WeightFormula) {
  return values.cpu_idle ? Number{0} : std::nullopt;
}

Number burst(const CgroupValues& values, WeightFormula) {
  return values.cpu_burst ? Number{values.cpu_burst->value()} : std::nullopt;
}

bool has_quota_or_period(const CgroupValues& values) {
  return values.cpu_quota || values.cpu_period;
}

/// The period of the quota: the default where none is set.
Micros period_of(const CgroupValues& values) {
  return values.cpu_period.value_or(kDefaultPeriod);
}

Number period(const CgroupValues& values, WeightFormula) {
  return has_quota_or_period(values) ? Number{period_of(values).value()} : std::nullopt;
}

Number quota(const CgroupValues& values, WeightFormula) {
  if (!values.cpu_quota) return std::nullopt;
  const auto limit = limiting_quota(values);
  return limit ? limit->value() : kUnlimited;
}

std::string quota_and_period(const CgroupValues& values) {
  if (!has_quota_or_period(values)) return {};
  const auto limit = limiting_quota(values);
  return cat(limit ? std::to_string(limit->value()) : "max", " ", period_of(values).value());
}

/// CPU time a second, rounded up to whole steps.
std::int64_t per_second(Micros quota, Micros period) {
  const std::int64_t exact = mul_div(quota.value(), kMicrosPerSecond, period.value());
  if (exact % kSystemdQuotaStep == 0) return exact;
  return ((exact / kSystemdQuotaStep) + 1) * kSystemdQuotaStep;
}

Number quota_per_second(const CgroupValues& values, WeightFormula) {
  if (!has_quota_or_period(values)) return std::nullopt;
  const auto limit = limiting_quota(values);
  return limit ? per_second(*limit, period_of(values)) : kUnlimited;
}

Number memory(const CgroupValues& values, WeightFormula) {
  if (!values.memory_limit || values.memory_limit->value() == 0) return std::nullopt;
  return values.memory_limit->value();
}

/// 0 is not a usable limit; both drivers turn it into the smallest one.
Number pids(const CgroupValues& values, WeightFormula) {
  return values.pids_limit == 0 ? 1 : values.pids_limit;
}

Number io_weight(const CgroupValues& values, WeightFormula) {
  return values.io_weight;
}

/// The weight in BFQ's range: 1 to 1000, the default being 100 as well.
/// @note systemd src/basic/cgroup-util.h BFQ_WEIGHT
Number bfq_weight(const CgroupValues& values, WeightFormula) {
  constexpr std::int64_t kMaxBfqWeight = 1000;
  const Number weight = values.io_weight;
  if (!weight || *weight <= kDefaultIoWeight) return weight;
  return kDefaultIoWeight + mul_div(*weight - kDefaultIoWeight, kMaxBfqWeight - kDefaultIoWeight,
                                    kMaxIoWeight - kDefaultIoWeight);
}

/// The weight in the range of CFQ on cgroup v1: 10 to 1000, the default being 500.
/// @note systemd src/core/cgroup.c cgroup_weight_io_to_blkio
Number blkio_weight(const CgroupValues& values, WeightFormula) {
  constexpr std::int64_t kMinBlkioWeight = 10;
  constexpr std::int64_t kMaxBlkioWeight = 1000;
  constexpr std::int64_t kDefaultBlkioWeight = 500;
  if (!values.io_weight) return std::nullopt;
  return std::clamp(mul_div(*values.io_weight, kDefaultBlkioWeight, kDefaultIoWeight),
                    kMinBlkioWeight, kMaxBlkioWeight);
}

constexpr ValueFile file(std::string_view name, std::string_view unset, NumberOf number = nullptr,
                         std::string_view property = {}) {
  return {.name = name, .unset = unset, .number = number, .property = property};
}
/// Of these files a kernel has those of its I/O schedulers and controllers, or none.
constexpr ValueFile io_file(std::string_view name, std::string_view unset, NumberOf number,
                            std::string_view property = {}) {
  return {.name = name,
          .unset = unset,
          .number = number,
          .property = property,
          .on_refusal = OnRefusal::kIgnore,
          .told = io_weight};
}

/// Kernels before 5.14 have no burst, those before 5.15 no idle cgroups.
constexpr ValueFile newer_file(std::string_view name, NumberOf number) {
  return {.name = name, .unset = "0", .number = number, .on_refusal = OnRefusal::kIgnore};
}

constexpr ValueRow memory_row(Value value, const ValueFile& v1, const ValueFile& v2) {
  return {
      .value = value, .controller = Controller::kMemory, .v1 = v1, .v2 = v2, .whole_pages = true};
}

constexpr ValueFile kPidsMax = file("pids.max", "max", pids, "TasksMax");

constexpr std::array kTable = {
    // Before the weight, which an idle cgroup refuses: sched_group_set_shares() of fair.c.
    ValueRow{.value = Value::kCpuIdle,
             .controller = Controller::kCpu,
             .v1 = newer_file("cpu.idle", never_idle),
             .v2 = newer_file("cpu.idle", idle)},
    ValueRow{.value = Value::kCpuShares,
             .controller = Controller::kCpu,
             .v1 = file("cpu.shares", "1024", shares, "CPUShares"),
             .v2 = {.name = "cpu.weight",
                    .unset = "100",
                    .number = weight,
                    .property = "CPUWeight",
                    .told = told_weight}},
    // On v1 the kernel holds the old quota over the new period, and then the new quota over the
    // period, against the parent's ratio, so either may be refused until the other is in.
    ValueRow{.value = Value::kCpuPeriod,
             .controller = Controller::kCpu,
             .v1 = {.name = "cpu.cfs_period_us",
                    .unset = "100000",
                    .number = period,
                    .property = "CPUQuotaPeriodUSec",
                    .on_refusal = OnRefusal::kRetryAfterPlan},
             .v2 = {.number = period, .property = "CPUQuotaPeriodUSec"}},
    ValueRow{.value = Value::kCpuQuota,
             .controller = Controller::kCpu,
             .v1 = {.name = "cpu.cfs_quota_us",
                    .unset = "-1",
                    .number = quota,
                    .property = "CPUQuotaPerSecUSec",
                    .on_refusal = OnRefusal::kRetryAfterPlan,
                    .told = quota_per_second},
             .v2 = {.name = "cpu.max",
                    .unset = "max 100000",
                    .property = "CPUQuotaPerSecUSec",
                    .told = quota_per_second,
                    .text = quota_and_period}},
    ValueRow{.value = Value::kCpuBurst,
             .controller = Controller::kCpu,
             .v1 = newer_file("cpu.cfs_burst_us", burst),
             .v2 = newer_file("cpu.max.burst", burst)},
    memory_row(Value::kOther, {}, file("memory.min", "0", nullptr, "MemoryMin")),
    memory_row(Value::kOther, {}, file("memory.low", "0", nullptr, "MemoryLow")),
    memory_row(Value::kOther, {}, file("memory.high", "max", nullptr, "MemoryHigh")),
    memory_row(Value::kMemoryLimit, file("memory.limit_in_bytes", "-1", memory, "MemoryLimit"),
               file("memory.max", "max", memory, "MemoryMax")),
    memory_row(Value::kSwapLimit, {}, file("memory.swap.max", "max", nullptr, "MemorySwapMax")),
    ValueRow{.controller = Controller::kMemory, .v2 = file("memory.oom.group", "0")},
    ValueRow{.value = Value::kPidsLimit,
             .controller = Controller::kPids,
             .v1 = kPidsMax,
             .v2 = kPidsMax},
    // With IOAccounting=, which podqos's slices have, systemd goes by IOWeight= on v1 too and
    // ignores BlockIOWeight=: src/core/cgroup.c cgroup_context_apply.
    ValueRow{.controller = Controller::kIo,
             .v1 = io_file("blkio.weight", "500", blkio_weight, "IOWeight"),
             .v2 = io_file("io.weight", "default 100", io_weight, "IOWeight")},
    ValueRow{.controller = Controller::kIo,
             .v1 = io_file("blkio.bfq.weight", "100", bfq_weight),
             .v2 = io_file("io.bfq.weight", "default 100", bfq_weight)},
};

/// What systemd-oomd goes by, without a file of the kernel (pod_plan.cpp).
constexpr std::array<std::string_view, 4> kOomdProperties = {
    "ManagedOOMMemoryPressureLimit", "ManagedOOMMemoryPressureDurationUSec",
    "ManagedOOMMemoryPressure", "ManagedOOMPreference"};

/// Where systemd keeps a property, below UNIT.d.
std::string drop_in_of(std::string_view property) {
  if (property == "CPUQuotaPerSecUSec") property = "CPUQuota";
  if (property == "CPUQuotaPeriodUSec") property = "CPUQuotaPeriodSec";
  return cat("50-", property, ".conf");
}

/// A later one wins, as on the machine.
/// @param number  negative: no limit
void set_property(std::vector<UnitProperty>& properties, std::string_view name,
                  std::int64_t number) {
  const std::uint64_t value = number < 0 ? kUnitInfinity : static_cast<std::uint64_t>(number);
  const auto same = std::ranges::find(properties, name, &UnitProperty::name);
  if (same != properties.end())
    same->value = value;
  else
    properties.push_back({.name = std::string{name}, .value = value});
}

/// Calls `visit` with the row and the value of each unified file whose controller is on v2.
template <class Visit>
void visit_unified(const CgroupValues& values, const CgroupLayout& layout, const Visit& visit) {
  for (const auto& [file, value] : values.unified) {
    const ValueRow* row = row_with(file, CgroupVersion::kV2);
    if (row != nullptr && layout.version_of(row->controller) == CgroupVersion::kV2)
      visit(*row, value);
  }
}

/// The cgroup and the machine that the steps are for.
struct Target {
  const std::string& path;
  const CgroupLayout& layout;
  const std::string& reason;
};

WriteFile write(const Target& target, Controller controller, std::string file, std::string value,
                OnRefusal on_refusal = OnRefusal::kFail) {
  return {.path = target.path,
          .controller = controller,
          .file = std::move(file),
          .value = std::move(value),
          .reason = target.reason,
          .on_refusal = on_refusal};
}

/// The rows of one controller, in their order.
void lower_rows(Plan& plan, const Target& target, Controller controller, const CgroupValues& values,
                WeightFormula formula) {
  const auto version = target.layout.version_of(controller);
  if (!version) return;
  // A controller that not every cgroup has.
  bool enabled = !row_of(controller).on_demand || version == CgroupVersion::kV1;
  for (const ValueRow& row : kTable) {
    const ValueFile& file = row.on(*version);
    if (row.controller != controller || file.name.empty()) continue;
    std::string content = content_for(file, values, formula);
    if (content.empty()) continue;
    if (!std::exchange(enabled, true))
      plan.emplace_back(
          EnsureCgroup{.path = std::string{parent_of(target.path)}, .also = controller});
    // The kernel refuses a quota below the burst, which is written next: tg_set_cfs_bandwidth().
    const bool retried = row.value == Value::kCpuQuota && values.cpu_burst;
    plan.emplace_back(write(target, controller, std::string{file.name}, std::move(content),
                            retried ? OnRefusal::kRetryAfterPlan : file.on_refusal));
  }
}

void lower_hugepages(Plan& plan, const Target& target, const CgroupValues& values) {
  const auto version = target.layout.hugetlb;
  if (!version) return;
  const std::vector<std::string>& host_sizes = target.layout.hugepage_labels;
  HugePageLimits limits = values.hugepages;
  for (const std::string& label : host_sizes)
    limits.try_emplace(label, Bytes{0});
  for (const auto& [label, limit] : limits) {
    const std::string value =
        limit >= Bytes{0} ? cat(limit.value()) : (version == CgroupVersion::kV1 ? "-1" : "max");
    // A size that this host has no pages of cannot be used either: nothing is lost without its
    // file.
    const bool on_host = std::ranges::find(host_sizes, label) != host_sizes.end();
    plan.emplace_back(write(target, Controller::kHugetlb, hugepage_file(label, *version), value,
                            on_host ? OnRefusal::kFail : OnRefusal::kIgnore));
    // Kernels before 5.7 have no reservation limits.
    plan.emplace_back(write(target, Controller::kHugetlb, reserved_hugepage_file(label, *version),
                            value, OnRefusal::kIgnore));
  }
}

}  // namespace

std::span<const ValueRow> value_table() {
  return kTable;
}

const ValueRow& row_of(Value value) {
  return *std::ranges::find(kTable, value, &ValueRow::value);
}

std::string_view file_of(Value value, CgroupVersion version) {
  return row_of(value).on(version).name;
}

const ValueRow* row_with(std::string_view file, CgroupVersion version) {
  const auto* found = std::ranges::find_if(
      kTable, [&](const ValueRow& row) { return !file.empty() && row.on(version).name == file; });
  return found == kTable.end() ? nullptr : found;
}

std::string content_for(const ValueFile& file, const CgroupValues& values, WeightFormula formula) {
  if (file.text != nullptr) return file.text(values);
  const Number number = file.number == nullptr ? std::nullopt : file.number(values, formula);
  if (!number) return {};
  return *number < 0 ? std::string{file.unset} : std::to_string(*number);
}

bool is_drop_in(std::string_view name) {
  const auto keeps = [name](std::string_view property) {
    return !property.empty() && drop_in_of(property) == name;
  };
  return std::ranges::any_of(kOomdProperties, keeps) ||
         std::ranges::any_of(kTable, [&](const ValueRow& row) {
           return keeps(row.v1.property) || keeps(row.v2.property);
         });
}

std::optional<Micros> limiting_quota(const CgroupValues& values) {
  if (!values.cpu_quota || values.cpu_quota->value() <= 0) return std::nullopt;
  return values.cpu_quota;
}

Plan lower_values(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
                  WeightFormula formula, const std::string& reason) {
  const Target target{.path = path, .layout = layout, .reason = reason};
  Plan plan;
  lower_rows(plan, target, Controller::kCpu, values, formula);
  lower_hugepages(plan, target, values);
  for (const auto controller : {Controller::kPids, Controller::kIo, Controller::kMemory})
    lower_rows(plan, target, controller, values, formula);
  visit_unified(values, layout, [&](const ValueRow& row, const std::string& value) {
    plan.emplace_back(write(target, row.controller, std::string{row.v2.name}, value));
  });
  return plan;
}

CgroupValues rounded_by_systemd(CgroupValues values) {
  const auto quota = limiting_quota(values);
  if (!quota) return values;
  const Micros period = period_of(values);
  // What is whole already stays: the conversion to a second and back may lose a microsecond.
  if (mul_div(quota->value(), kMicrosPerSecond, period.value()) % kSystemdQuotaStep != 0)
    values.cpu_quota =
        Micros{mul_div(per_second(*quota, period), period.value(), kMicrosPerSecond)};
  return values;
}

std::vector<UnitProperty> unit_properties(const CgroupValues& values, const CgroupLayout& layout,
                                          WeightFormula formula) {
  std::vector<UnitProperty> properties;
  for (const ValueRow& row : kTable) {
    const auto version = layout.version_of(row.controller);
    if (!version) continue;
    const ValueFile& file = row.on(*version);
    const NumberOf of = file.told == nullptr ? file.number : file.told;
    if (file.property.empty() || of == nullptr) continue;
    if (const Number number = of(values, formula)) set_property(properties, file.property, *number);
  }
  visit_unified(values, layout, [&](const ValueRow& row, const std::string& value) {
    const Number number = value == "max" ? kUnlimited : parse_int(value);
    if (number && !row.v2.property.empty()) set_property(properties, row.v2.property, *number);
  });
  return properties;
}

}  // namespace podqos::core
