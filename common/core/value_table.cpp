#include "common/core/value_table.h"

#include <algorithm>
#include <array>
#include <utility>

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

bool has_quota_or_period(const CgroupValues& values) {
  return values.cpu_quota || values.cpu_period;
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

constexpr ValueFile kPidsMax{.name = "pids.max",
                             .unset = "max",
                             .number = pids,
                             .property = "TasksMax",
                             .drop_in = "50-TasksMax.conf"};

constexpr std::array kTable = {
    ValueRow{.value = Value::kCpuShares,
             .controller = Controller::kCpu,
             .v1 = {.name = "cpu.shares",
                    .unset = "1024",
                    .number = shares,
                    .property = "CPUShares",
                    .drop_in = "50-CPUShares.conf"},
             .v2 = {.name = "cpu.weight",
                    .unset = "100",
                    .number = weight,
                    .property = "CPUWeight",
                    .drop_in = "50-CPUWeight.conf"}},
    // The kernel holds the old quota over the new period, and then the new quota over the period,
    // against the parent's ratio, so either may be refused until the other is in.
    ValueRow{.value = Value::kCpuPeriod,
             .controller = Controller::kCpu,
             .v1 = {.name = "cpu.cfs_period_us",
                    .unset = "100000",
                    .number = period,
                    .on_refusal = OnRefusal::kRetryAfterPlan,
                    .property = "CPUQuotaPeriodUSec",
                    .drop_in = "50-CPUQuotaPeriodSec.conf"},
             .v2 = {.number = period,
                    .property = "CPUQuotaPeriodUSec",
                    .drop_in = "50-CPUQuotaPeriodSec.conf"}},
    ValueRow{.value = Value::kCpuQuota,
             .controller = Controller::kCpu,
             .v1 = {.name = "cpu.cfs_quota_us",
                    .unset = "-1",
                    .number = quota,
                    .on_refusal = OnRefusal::kRetryAfterPlan,
                    .property = "CPUQuotaPerSecUSec",
                    .drop_in = "50-CPUQuota.conf",
                    .told = quota_per_second},
             .v2 = {.name = "cpu.max",
                    .unset = "max 100000",
                    .text = quota_and_period,
                    .property = "CPUQuotaPerSecUSec",
                    .drop_in = "50-CPUQuota.conf",
                    .told = quota_per_second}},
    ValueRow{.controller = Controller::kMemory,
             .v2 = {.name = "memory.min",
                    .unset = "0",
                    .property = "MemoryMin",
                    .drop_in = "50-MemoryMin.conf"},
             .whole_pages = true},
    ValueRow{.controller = Controller::kMemory,
             .v2 = {.name = "memory.low",
                    .unset = "0",
                    .property = "MemoryLow",
                    .drop_in = "50-MemoryLow.conf"},
             .whole_pages = true},
    ValueRow{.controller = Controller::kMemory,
             .v2 = {.name = "memory.high",
                    .unset = "max",
                    .property = "MemoryHigh",
                    .drop_in = "50-MemoryHigh.conf"},
             .whole_pages = true},
    ValueRow{.value = Value::kMemoryLimit,
             .controller = Controller::kMemory,
             .v1 = {.name = "memory.limit_in_bytes",
                    .unset = "-1",
                    .number = memory,
                    .property = "MemoryLimit",
                    .drop_in = "50-MemoryLimit.conf"},
             .v2 = {.name = "memory.max",
                    .unset = "max",
                    .number = memory,
                    .property = "MemoryMax",
                    .drop_in = "50-MemoryMax.conf"},
             .whole_pages = true},
    ValueRow{.value = Value::kSwapLimit,
             .controller = Controller::kMemory,
             .v2 = {.name = "memory.swap.max",
                    .unset = "max",
                    .property = "MemorySwapMax",
                    .drop_in = "50-MemorySwapMax.conf"},
             .whole_pages = true},
    ValueRow{.controller = Controller::kMemory, .v2 = {.name = "memory.oom.group", .unset = "0"}},
    ValueRow{.value = Value::kPidsLimit,
             .controller = Controller::kPids,
             .v1 = kPidsMax,
             .v2 = kPidsMax},
    // Of these files a kernel has those of its I/O schedulers and controllers, or none.
    ValueRow{.controller = Controller::kIo,
             .v1 = {.name = "blkio.weight",
                    .unset = "500",
                    .number = blkio_weight,
                    .on_refusal = OnRefusal::kIgnore,
                    .property = "IOWeight",
                    .drop_in = "50-IOWeight.conf",
                    // With IOAccounting=, which podqos's slices have, systemd goes by IOWeight= on
                    // v1 too and ignores BlockIOWeight=: src/core/cgroup.c cgroup_context_apply.
                    .told = io_weight},
             .v2 = {.name = "io.weight",
                    .unset = "default 100",
                    .number = io_weight,
                    .on_refusal = OnRefusal::kIgnore,
                    .property = "IOWeight",
                    .drop_in = "50-IOWeight.conf"}},
    ValueRow{.controller = Controller::kIo,
             .v1 = {.name = "blkio.bfq.weight",
                    .unset = "100",
                    .number = bfq_weight,
                    .on_refusal = OnRefusal::kIgnore},
             .v2 = {.name = "io.bfq.weight",
                    .unset = "default 100",
                    .number = bfq_weight,
                    .on_refusal = OnRefusal::kIgnore}},
};

static_assert(std::ranges::all_of(kTable, [](const ValueRow& row) {
  return row.v1.property.empty() == row.v1.drop_in.empty() &&
         row.v2.property.empty() == row.v2.drop_in.empty();
}));

constexpr std::string_view kHugetlb = "hugetlb.";
constexpr std::string_view kReserved = "rsvd.";

std::string_view hugepage_limit(CgroupVersion version) {
  return version == CgroupVersion::kV1 ? "limit_in_bytes" : "max";
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

std::optional<std::int64_t> property_for(const ValueFile& file, const CgroupValues& values,
                                         WeightFormula formula) {
  const NumberOf number = file.told == nullptr ? file.number : file.told;
  if (file.property.empty() || number == nullptr) return std::nullopt;
  return number(values, formula);
}

bool is_drop_in(std::string_view name) {
  return !name.empty() && std::ranges::any_of(kTable, [&](const ValueRow& row) {
    return row.v1.drop_in == name || row.v2.drop_in == name;
  });
}

std::string hugepage_file(std::string_view label, CgroupVersion version, HugePageUse use) {
  return cat(kHugetlb, label, ".", use == HugePageUse::kReserved ? kReserved : "",
             hugepage_limit(version));
}

std::string_view hugepage_label_in(std::string_view file) {
  if (!file.starts_with(kHugetlb)) return {};
  file.remove_prefix(kHugetlb.size());
  const std::string_view label = file.substr(0, file.find('.'));
  std::string_view limit = file.substr(std::min(label.size() + 1, file.size()));
  if (limit.starts_with(kReserved)) limit.remove_prefix(kReserved.size());
  const bool known =
      limit == hugepage_limit(CgroupVersion::kV1) || limit == hugepage_limit(CgroupVersion::kV2);
  return known ? label : std::string_view{};
}

std::string_view unset_hugepages(CgroupVersion version) {
  return version == CgroupVersion::kV1 ? "-1" : "max";
}

Micros quota_of_systemd(Micros quota, Micros period) {
  if (mul_div(quota.value(), kMicrosPerSecond, period.value()) % kSystemdQuotaStep == 0)
    return quota;
  return Micros{mul_div(per_second(quota, period), period.value(), kMicrosPerSecond)};
}

std::optional<Micros> limiting_quota(const CgroupValues& values) {
  if (!values.cpu_quota || values.cpu_quota->value() <= 0) return std::nullopt;
  return values.cpu_quota;
}

Micros period_of(const CgroupValues& values) {
  return values.cpu_period.value_or(kDefaultPeriod);
}

}  // namespace podqos::core
