#include "common/core/lowering.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kSystemdQuotaStep = 10'000;  // 10 ms of CPU time a second

/// Collects the steps of one cgroup; leaves out those whose controller the machine lacks.
class Lowering {
 public:
  Lowering(const std::string& path, const CgroupLayout& layout, const std::string& reason)
      : path_(path), layout_(layout), reason_(reason) {}

  [[nodiscard]] std::optional<CgroupVersion> version_of(Controller controller) const {
    return layout_.version_of(controller);
  }
  [[nodiscard]] const std::vector<std::string>& host_sizes() const {
    return layout_.hugepage_labels;
  }

  void write(Controller controller, std::string file, std::string value,
             OnRefusal on_refusal = OnRefusal::kFail) {
    plan_.emplace_back(WriteFile{.path = path_,
                                 .controller = controller,
                                 .file = std::move(file),
                                 .value = std::move(value),
                                 .reason = reason_,
                                 .on_refusal = on_refusal});
  }

  [[nodiscard]] Plan release() && { return std::move(plan_); }

 private:
  const std::string& path_;
  const CgroupLayout& layout_;
  const std::string& reason_;
  Plan plan_;
};

std::string limit_or(std::int64_t limit, std::string_view unlimited) {
  return limit < 0 ? std::string{unlimited} : std::to_string(limit);
}

bool has_quota_or_period(const CgroupValues& values) {
  return values.cpu_quota || values.cpu_period;
}

Micros period_of(const CgroupValues& values) {
  return values.cpu_period.value_or(kDefaultPeriod);
}

/// A quota that limits; "none" (0) and "unlimited" (-1) are nullopt.
std::optional<Micros> limiting_quota(const CgroupValues& values) {
  if (!values.cpu_quota || values.cpu_quota->value() <= 0) return std::nullopt;
  return values.cpu_quota;
}

void lower_cpu_v1(Lowering& out, const CgroupValues& values) {
  if (values.cpu_shares)
    out.write(Controller::kCpu, "cpu.shares", std::to_string(values.cpu_shares->value()));
  if (!has_quota_or_period(values)) return;
  // The kernel holds the old quota over the new period, and then the new quota over the period,
  // against the parent's ratio, so either may be refused until the other is in.
  out.write(Controller::kCpu, "cpu.cfs_period_us", std::to_string(period_of(values).value()),
            OnRefusal::kRetryAfterPlan);
  if (!values.cpu_quota) return;
  const auto quota = limiting_quota(values);
  out.write(Controller::kCpu, "cpu.cfs_quota_us", quota ? std::to_string(quota->value()) : "-1",
            OnRefusal::kRetryAfterPlan);
}

void lower_cpu_v2(Lowering& out, const CgroupValues& values, WeightFormula formula) {
  if (values.cpu_shares) {
    out.write(Controller::kCpu, "cpu.weight",
              std::to_string(cpu_weight_for(*values.cpu_shares, formula).value()));
  }
  if (!has_quota_or_period(values)) return;
  const auto quota = limiting_quota(values);
  out.write(Controller::kCpu, "cpu.max",
            cat(quota ? std::to_string(quota->value()) : "max", " ", period_of(values).value()));
}

void lower_cpu(Lowering& out, const CgroupValues& values, WeightFormula formula) {
  const auto version = out.version_of(Controller::kCpu);
  if (version == CgroupVersion::kV1) lower_cpu_v1(out, values);
  if (version == CgroupVersion::kV2) lower_cpu_v2(out, values, formula);
}

void lower_hugepages(Lowering& out, const CgroupValues& values) {
  const auto version = out.version_of(Controller::kHugetlb);
  if (!version) return;
  const std::string_view limit_file = version == CgroupVersion::kV1 ? "limit_in_bytes" : "max";
  for (const auto& [label, limit] : with_host_sizes(values.hugepages, out.host_sizes())) {
    const std::string value = limit_or(limit.value(), version == CgroupVersion::kV1 ? "-1" : "max");
    // A size that this host has no pages of cannot be used either: nothing is lost without its
    // file.
    const bool on_host = std::ranges::find(out.host_sizes(), label) != out.host_sizes().end();
    out.write(Controller::kHugetlb, cat("hugetlb.", label, ".", limit_file), value,
              on_host ? OnRefusal::kFail : OnRefusal::kIgnore);
    // Kernels before 5.7 have no reservation limits.
    out.write(Controller::kHugetlb, cat("hugetlb.", label, ".rsvd.", limit_file), value,
              OnRefusal::kIgnore);
  }
}

/// 0 is not a usable limit; both drivers turn it into the smallest one.
std::int64_t usable_pids(std::int64_t limit) {
  return limit == 0 ? 1 : limit;
}

void lower_pids(Lowering& out, const CgroupValues& values) {
  if (!values.pids_limit || !out.version_of(Controller::kPids)) return;
  out.write(Controller::kPids, "pids.max", limit_or(usable_pids(*values.pids_limit), "max"));
}

void lower_memory(Lowering& out, const CgroupValues& values) {
  const auto version = out.version_of(Controller::kMemory);
  if (!version || !values.memory_limit || values.memory_limit->value() == 0) return;
  const std::int64_t limit = values.memory_limit->value();
  if (version == CgroupVersion::kV1)
    out.write(Controller::kMemory, "memory.limit_in_bytes", limit_or(limit, "-1"));
  if (version == CgroupVersion::kV2)
    out.write(Controller::kMemory, "memory.max", limit_or(limit, "max"));
}

/// The controller that a cgroup v2 file belongs to, by the part before the first dot, compared
/// whole: "cpuset" is not "cpu".
std::optional<Controller> controller_of(std::string_view file) {
  static constexpr std::array<std::pair<std::string_view, Controller>, 5> kPrefixes = {{
      {"cpu", Controller::kCpu},
      {"memory", Controller::kMemory},
      {"hugetlb", Controller::kHugetlb},
      {"pids", Controller::kPids},
      {"cpuset", Controller::kCpuset},
  }};
  const std::string_view prefix = file.substr(0, file.find('.'));
  const auto* found =
      std::ranges::find(kPrefixes, prefix, &std::pair<std::string_view, Controller>::first);
  if (found == kPrefixes.end()) return std::nullopt;
  return found->second;
}

void lower_unified(Lowering& out, const CgroupValues& values) {
  for (const auto& [file, value] : values.unified) {
    const auto controller = controller_of(file);
    if (controller && out.version_of(*controller) == CgroupVersion::kV2)
      out.write(*controller, file, value);
  }
}

/// What CPUQuotaPerSecUSec is for a quota: systemd keeps whole 10 ms a second, so the rest is
/// rounded up.
struct SystemdQuota {
  std::int64_t per_second = 0;
  Micros quota;  ///< what the kernel ends up with
};

SystemdQuota systemd_quota(Micros quota, Micros period) {
  const std::int64_t exact = mul_div(quota.value(), kMicrosPerSecond, period.value());
  if (exact % kSystemdQuotaStep == 0) return {.per_second = exact, .quota = quota};
  const std::int64_t rounded = ((exact / kSystemdQuotaStep) + 1) * kSystemdQuotaStep;
  return {.per_second = rounded,
          .quota = Micros{mul_div(rounded, period.value(), kMicrosPerSecond)}};
}

/// The unit property of a unified file that holds one number or "max".
std::string_view systemd_property(std::string_view file) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kProperties = {{
      {"cpu.weight", "CPUWeight"},
      {"memory.high", "MemoryHigh"},
      {"memory.low", "MemoryLow"},
      {"memory.max", "MemoryMax"},
      {"memory.min", "MemoryMin"},
      {"memory.swap.max", "MemorySwapMax"},
      {"pids.max", "TasksMax"},
  }};
  const auto* found =
      std::ranges::find(kProperties, file, &std::pair<std::string_view, std::string_view>::first);
  return found == kProperties.end() ? std::string_view{} : found->second;
}

constexpr std::int64_t kNoLimit = -1;

/// Numbers by name, each once: a later one wins, as on the machine.
class Properties {
 public:
  /// A negative number is "no limit".
  void set(std::string_view name, std::int64_t number) {
    const std::uint64_t value = number < 0 ? kUnitInfinity : static_cast<std::uint64_t>(number);
    const auto same = std::ranges::find(properties_, name, &UnitProperty::name);
    if (same != properties_.end()) {
      same->value = value;
    } else {
      properties_.push_back({.name = std::string{name}, .value = value});
    }
  }
  [[nodiscard]] std::vector<UnitProperty> release() && { return std::move(properties_); }

 private:
  std::vector<UnitProperty> properties_;
};

CgroupLayout all_v2(const std::vector<std::string>& hugepage_labels) {
  return {.cpu = CgroupVersion::kV2,
          .memory = CgroupVersion::kV2,
          .hugetlb = CgroupVersion::kV2,
          .pids = CgroupVersion::kV2,
          .cpuset = CgroupVersion::kV2,
          .hugepage_labels = hugepage_labels};
}

}  // namespace

Plan lower_values(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
                  WeightFormula formula, const std::string& reason) {
  Lowering out{path, layout, reason};
  lower_cpu(out, values, formula);
  lower_hugepages(out, values);
  lower_pids(out, values);
  lower_memory(out, values);
  lower_unified(out, values);
  return std::move(out).release();
}

std::map<std::string, std::string, std::less<>> v2_files(
    const CgroupValues& values, const std::vector<std::string>& hugepage_labels,
    WeightFormula formula) {
  std::map<std::string, std::string, std::less<>> files;
  for (const Step& step : lower_values("/", values, all_v2(hugepage_labels), formula, "")) {
    // A later write of the same file wins, as on the machine.
    if (const auto* write = std::get_if<WriteFile>(&step))
      files.insert_or_assign(write->file, write->value);
  }
  return files;
}

CgroupValues rounded_by_systemd(CgroupValues values) {
  if (const auto quota = limiting_quota(values))
    values.cpu_quota = systemd_quota(*quota, period_of(values)).quota;
  return values;
}

namespace {

void set_cpu_properties(Properties& out, const CgroupValues& values, CgroupVersion version,
                        WeightFormula formula) {
  if (values.cpu_shares && version == CgroupVersion::kV2)
    out.set("CPUWeight", cpu_weight_for(*values.cpu_shares, formula).value());
  if (values.cpu_shares && version == CgroupVersion::kV1)
    out.set("CPUShares", values.cpu_shares->value());
  if (!has_quota_or_period(values)) return;
  const Micros period = period_of(values);
  const auto quota = limiting_quota(values);
  out.set("CPUQuotaPeriodUSec", period.value());
  out.set("CPUQuotaPerSecUSec", quota ? systemd_quota(*quota, period).per_second : kNoLimit);
}

void set_unified_properties(Properties& out, const CgroupValues& values,
                            const CgroupLayout& layout) {
  for (const auto& [file, value] : values.unified) {
    const std::string_view property = systemd_property(file);
    const auto controller = controller_of(file);
    if (property.empty() || layout.version_of(*controller) != CgroupVersion::kV2) continue;
    const auto number = value == "max" ? kNoLimit : parse_int(value);
    if (number) out.set(property, *number);
  }
}

}  // namespace

std::vector<UnitProperty> unit_properties(const CgroupValues& values, const CgroupLayout& layout,
                                          WeightFormula formula) {
  Properties out;
  if (layout.cpu) set_cpu_properties(out, values, *layout.cpu, formula);
  if (values.memory_limit && values.memory_limit->value() != 0 && layout.memory) {
    const bool v2 = layout.memory == CgroupVersion::kV2;
    out.set(v2 ? "MemoryMax" : "MemoryLimit", values.memory_limit->value());
  }
  if (values.pids_limit && layout.pids) out.set("TasksMax", usable_pids(*values.pids_limit));
  set_unified_properties(out, values, layout);
  return std::move(out).release();
}

SystemdWrites systemd_writes(const CgroupValues& values,
                             const std::vector<std::string>& hugepage_labels,
                             WeightFormula formula) {
  SystemdWrites writes;
  for (const UnitProperty& property : unit_properties(values, all_v2(hugepage_labels), formula)) {
    if (const auto* number = std::get_if<std::uint64_t>(&property.value))
      writes.properties.insert_or_assign(property.name, std::to_string(*number));
  }
  writes.files = v2_files(rounded_by_systemd(values), hugepage_labels, formula);
  return writes;
}

}  // namespace podqos::core
