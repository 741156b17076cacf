#include "common/cgroup/cgroup_view.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/value.h"
#include "common/core/cgroups/layout.h"

namespace podqos::cgroup {
namespace {

using core::CgroupVersion;
using core::Controller;
using core::Value;

/// A limit of 0 or below means "unlimited": nullopt.
std::optional<std::int64_t> positive(std::optional<std::int64_t> value) {
  return value && *value > 0 ? value : std::nullopt;
}

template <class Strong>
std::optional<Strong> strong(std::optional<std::int64_t> value) {
  return value ? std::optional{Strong{*value}} : std::nullopt;
}

template <class Tag>
std::optional<std::int64_t> limit_of(const std::optional<Unit<Tag>>& value) {
  return value ? positive(value->value()) : std::nullopt;
}

/// The whole number after `name`, " total=" or " avg10=", in the line that begins with `kind`.
std::optional<std::int64_t> pressure_in(std::string_view text, std::string_view kind,
                                        std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = read_until(text, '\n');
    const std::size_t at = line.rfind(name);
    if (word_at(line, 0) != kind || at == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at + name.size());
    return parse_int(rest.substr(0, rest.find_first_of(". ")));
  }
  return std::nullopt;
}

std::optional<Micros> total_in(std::string_view text, std::string_view kind) {
  return strong<Micros>(pressure_in(text, kind, " total="));
}

/// The weight of a file's first line: "default 100" or "100". The others are of single devices.
std::string_view weight_in(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  return line.substr(line.rfind(' ') + 1);  // npos + 1 is 0
}

/// Compares the I/O weights that the kernel has files for: "io.weight is 100, the rule says 500".
void compare_io_weights(Machine& machine, const std::string& cgroup, core::CgroupValues rule,
                        std::vector<std::string>& found) {
  const auto version = machine.layout_without_hugepages().io;
  if (!version) return;
  if (!rule.io_weight && has_io_weight(machine, cgroup)) rule.io_weight = core::kDefaultIoWeight;
  for (const core::ValueRow& row : core::value_table()) {
    if (row.controller != core::Controller::kIo) continue;
    const core::ValueFile& file = row.on(*version);
    // Weights are the same by both formulas, which are of CPU shares.
    const std::string wanted = core::content_for(file, rule, core::WeightFormula::kLinear);
    if (wanted.empty()) continue;
    const auto held = machine.read(cgroup, row.controller, std::string{file.name});
    if (held && !holds_value(file.name, *held, wanted))
      found.push_back(
          cat(file.name, " is ", printable(weight_in(*held)), ", the rule says ", wanted));
  }
}

std::string shown_quota(const std::optional<Micros>& quota) {
  return limit_of(quota) ? format_amount(*quota) : "unlimited";
}

/// As the kernel shows it, "max" for what has no number.
std::string shown_protection(Bytes bytes) {
  return bytes == Bytes{kInt64Max} ? "max" : format_amount(bytes);
}

/// Compares idleness and burst where the rule has them and the kernel the files.
void compare_cpu_class(const CgroupView& cgroup, const core::CgroupValues& rule,
                       std::vector<std::string>& found) {
  const auto idle = rule.cpu_idle ? cgroup.cpu_idle() : std::nullopt;
  if (idle && idle != rule.cpu_idle)
    found.push_back(*idle ? "cpu.idle is 1, the rule says 0" : "cpu.idle is 0, the rule says 1");
  const auto burst = rule.cpu_burst ? cgroup.cpu_burst() : std::nullopt;
  if (burst && burst != rule.cpu_burst)
    found.push_back(cat("cpu burst is ", format_amount(*burst), ", the rule says ",
                        format_amount(*rule.cpu_burst)));
}

}  // namespace

std::optional<Pressure> parse_pressure(std::string_view text) {
  const auto waiting = total_in(text, "some");
  if (!waiting) return std::nullopt;
  return Pressure{.waiting = *waiting, .stalled = total_in(text, "full")};
}

const std::optional<std::string>& CgroupView::text(Controller controller,
                                                   const std::string& file) const {
  const auto [entry, is_new] = texts_.try_emplace(file);
  if (is_new) {
    if (auto read = machine_->read(path_, controller, file)) entry->second = std::move(*read);
  }
  return entry->second;
}

std::optional<std::int64_t> CgroupView::number(Controller controller,
                                               const std::string& file) const {
  const auto& found = text(controller, file);
  return found ? parse_int(*found) : std::nullopt;
}

std::optional<std::int64_t> CgroupView::number(Controller controller, const std::string& file,
                                               std::string_view key) const {
  const auto& found = text(controller, file);
  return found ? find_key(*found, key) : std::nullopt;
}

std::optional<std::int64_t> CgroupView::number(Value value, CgroupVersion version) const {
  const core::ValueRow& row = core::row_of(value);
  if (!has(row.controller, version)) return std::nullopt;
  return number(row.controller, std::string{row.on(version).name});
}

bool CgroupView::has(Controller controller, CgroupVersion version) const {
  return machine_->layout_without_hugepages().version_of(controller) == version;
}

std::optional<CpuShares> CgroupView::cpu_shares() const {
  return strong<CpuShares>(number(Value::kCpuShares, CgroupVersion::kV1));
}

std::optional<CpuWeight> CgroupView::cpu_weight() const {
  return strong<CpuWeight>(number(Value::kCpuShares, CgroupVersion::kV2));
}

/// Documentation/scheduler/sched-bwc.rst: cpu.cfs_quota_us is -1 for "unlimited"; cgroup-v2.rst:
/// cpu.max is "$MAX $PERIOD", "max" for "unlimited".
std::optional<Micros> CgroupView::cpu_quota() const {
  if (!has(Controller::kCpu, CgroupVersion::kV2))
    return strong<Micros>(positive(number(Value::kCpuQuota, CgroupVersion::kV1)));
  const auto& max = text(Controller::kCpu, "cpu.max");
  return max ? strong<Micros>(parse_int(word_at(*max, 0))) : std::nullopt;
}

std::optional<Micros> CgroupView::cpu_period() const {
  if (!has(Controller::kCpu, CgroupVersion::kV2))
    return strong<Micros>(number(Value::kCpuPeriod, CgroupVersion::kV1));
  const auto& max = text(Controller::kCpu, "cpu.max");
  return max ? strong<Micros>(parse_int(word_at(*max, 1))) : std::nullopt;
}

std::optional<Micros> CgroupView::cpu_burst() const {
  const auto burst = number(Value::kCpuBurst, CgroupVersion::kV2);
  return strong<Micros>(burst ? burst : number(Value::kCpuBurst, CgroupVersion::kV1));
}

std::optional<bool> CgroupView::cpu_idle() const {
  return number(Value::kCpuIdle, CgroupVersion::kV2).transform([](std::int64_t idle) {
    return idle != 0;
  });
}

std::optional<std::int64_t> CgroupView::cpu_usage_ns() const {
  if (has(Controller::kCpu, CgroupVersion::kV1)) return number(Controller::kCpu, "cpuacct.usage");
  if (!has(Controller::kCpu, CgroupVersion::kV2)) return std::nullopt;
  const auto micros = number(Controller::kCpu, "cpu.stat", "usage_usec");
  return micros ? std::optional{mul_div(*micros, kNanosPerMicro, 1)} : std::nullopt;
}

std::optional<Bytes> CgroupView::memory_limit() const {
  auto limit = number(Value::kMemoryLimit, CgroupVersion::kV2);
  if (!limit) limit = number(Value::kMemoryLimit, CgroupVersion::kV1);
  return limit && *limit < core::kUnlimitedBytes.value() ? strong<Bytes>(limit) : std::nullopt;
}

std::optional<Bytes> CgroupView::memory_usage() const {
  if (!memory_usage_) {
    const auto usage = machine_->memory_usage(path_);
    memory_usage_.emplace(usage ? std::optional{*usage} : std::nullopt);
  }
  return *memory_usage_;
}

std::optional<Bytes> CgroupView::protection(const std::string& file) const {
  if (!has(Controller::kMemory, CgroupVersion::kV2)) return std::nullopt;
  const auto& found = text(Controller::kMemory, file);
  if (found == "max") return Bytes{kInt64Max};
  return found ? strong<Bytes>(parse_int(*found)) : std::nullopt;
}

core::MemoryQos CgroupView::memory_qos() const {
  return {.min = protection("memory.min"),
          .low = protection("memory.low"),
          .high = protection("memory.high")};
}

std::optional<std::int64_t> CgroupView::throttled_events() const {
  if (!has(Controller::kMemory, CgroupVersion::kV2)) return std::nullopt;
  return number(Controller::kMemory, "memory.events", "high");
}

std::optional<std::int64_t> CgroupView::own_throttled_events() const {
  if (!has(Controller::kMemory, CgroupVersion::kV2)) return std::nullopt;
  const auto& own = text(Controller::kMemory, "memory.events.local");
  return own ? find_key(*own, "high") : throttled_events();
}

std::optional<std::int64_t> CgroupView::oom_kills() const {
  if (!has(Controller::kMemory, CgroupVersion::kV2)) return std::nullopt;
  return number(Controller::kMemory, "memory.events", "oom_kill");
}

std::optional<std::int64_t> CgroupView::oom_kills_of_container() const {
  const bool is_v2 = has(Controller::kMemory, CgroupVersion::kV2);
  return number(Controller::kMemory, is_v2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

std::optional<Bytes> CgroupView::memory_peak() const {
  const bool is_v2 = has(Controller::kMemory, CgroupVersion::kV2);
  return strong<Bytes>(
      number(Controller::kMemory, is_v2 ? "memory.peak" : "memory.max_usage_in_bytes"));
}

std::optional<std::int64_t> CgroupView::pids_limit() const {
  const auto limit = number(Value::kPidsLimit, CgroupVersion::kV2);
  return limit ? limit : number(Value::kPidsLimit, CgroupVersion::kV1);
}

std::optional<std::int64_t> CgroupView::pids() const {
  if (!machine_->layout_without_hugepages().pids) return std::nullopt;
  return number(Controller::kPids, "pids.current");
}

std::optional<Pressure> CgroupView::pressure(std::string_view resource) const {
  // Every cgroup of v2 has all three files, whatever its controllers.
  const auto controller = resource == "cpu" ? Controller::kCpu : Controller::kMemory;
  if (!has(controller, CgroupVersion::kV2)) return std::nullopt;
  const auto& found = text(controller, cat(resource, ".pressure"));
  return found ? parse_pressure(*found) : std::nullopt;
}

std::optional<std::int64_t> CgroupView::memory_pressure(std::string_view kind) const {
  if (!has(Controller::kMemory, CgroupVersion::kV2)) return std::nullopt;
  const auto& found = text(Controller::kMemory, "memory.pressure");
  return found ? pressure_in(*found, kind, " avg10=") : std::nullopt;
}

std::optional<Bytes> CgroupView::inactive_file() const {
  const bool is_v2 = has(Controller::kMemory, CgroupVersion::kV2);
  return strong<Bytes>(
      number(Controller::kMemory, "memory.stat", is_v2 ? "inactive_file" : "total_inactive_file"));
}

std::optional<Bytes> CgroupView::swap() const {
  return strong<Bytes>(has(Controller::kMemory, CgroupVersion::kV2)
                           ? number(Controller::kMemory, "memory.swap.current")
                           : number(Controller::kMemory, "memory.stat", "total_swap"));
}

std::optional<Bytes> CgroupView::working_set() const {
  const auto usage = memory_usage();
  if (!usage || !text(Controller::kMemory, "memory.stat")) return std::nullopt;
  return rest_of(*usage, inactive_file().value_or(Bytes{0}));
}

std::optional<CpuShares> CgroupView::shares(const std::optional<CpuShares>& rule,
                                            core::WeightFormula formula) const {
  const auto weight = cpu_weight();
  if (!weight) return cpu_shares();
  if (rule && core::cpu_weight_for(*rule, formula) == *weight) return rule;
  return core::shares_for_linear_weight(*weight);
}

bool CgroupView::knows(Value value) const {
  const core::ValueRow& row = core::row_of(value);
  const auto version = machine_->layout_without_hugepages().version_of(row.controller);
  return version && text(row.controller, std::string{row.on(*version).name});
}

core::HeldResources CgroupView::held() const {
  core::HeldResources held{.values = {}, .cpu_weight = cpu_weight()};
  if (const auto shares = cpu_shares()) held.values.cpu_shares = shares->value();
  if (knows(Value::kCpuQuota)) {
    held.values.cpu_quota = cpu_quota().value_or(Micros{-1}).value();
    if (const auto period = cpu_period()) held.values.cpu_period = period->value();
  }
  if (knows(Value::kMemoryLimit))
    held.values.memory_limit = memory_limit().value_or(Bytes{-1}).value();
  return held;
}

Result<std::string> limited_cgroup(Machine& machine, const core::ContainerRecord& container) {
  const std::string& own = container.cgroup;
  if (!own.ends_with(".scope")) return own;
  PODQOS_ASSIGN(const auto actual, machine.cgroup_of(container.pid));
  if (!is_at_or_below(actual, own))
    return fail(ErrorCode::kNotFound, cat("container ", printable(container.id), " left ", own));
  return actual.substr(0, actual.find('/', own.size() + 1));
}

/// What is below a scope may be the container's own work: a limit of the scope comes first.
core::HeldResources held_by(Machine& machine, const core::ContainerRecord& container,
                            const CgroupView& own) {
  core::HeldResources held = own.held();
  const auto limited = limited_cgroup(machine, container);
  if (!limited) return {};
  if (*limited == own.path()) return held;
  const core::EngineResources below = CgroupView{machine, *limited}.held().values;
  core::EngineResources& values = held.values;
  if (values.memory_limit.value_or(-1) < 0) values.memory_limit = below.memory_limit;
  if (values.cpu_quota.value_or(-1) < 0) {
    values.cpu_quota = below.cpu_quota;
    values.cpu_period = below.cpu_period;
  }
  return held;
}

std::vector<std::string> memory_qos_differences(const CgroupView& cgroup,
                                                const core::UnifiedValues& rule, Bytes page_size) {
  std::vector<std::string> found;
  for (const auto& [file, value] : rule) {
    const auto amount = cgroup.protection(file);
    const Bytes ruled{value == "max" ? kInt64Max : parse_int(value).value_or(0)};
    if (amount && amount->value() / page_size.value() != ruled.value() / page_size.value())
      found.push_back(cat(file, " is ", shown_protection(*amount), ", the rule says ",
                          shown_protection(ruled)));
  }
  return found;
}

std::vector<std::string> differences(const CgroupView& cgroup, const core::CgroupValues& rule,
                                     core::WeightFormula formula, Bytes page_size) {
  using Number = std::optional<std::int64_t>;
  std::vector<std::string> found;
  const auto differ = [&](std::string_view what, std::string_view held, std::string_view wanted) {
    if (held != wanted) found.push_back(cat(what, " is ", held, ", the rule says ", wanted));
  };
  const auto compare = [&](std::string_view what, const Number& held, const Number& wanted) {
    const auto shown = [](const Number& value) { return value ? cat(*value) : "unlimited"; };
    differ(what, shown(held), shown(wanted));
  };
  const auto shares = cgroup.cpu_shares();
  const auto weight = cgroup.cpu_weight();
  if (rule.cpu_shares && shares) compare("cpu.shares", shares->value(), rule.cpu_shares->value());
  // An idle cgroup has no weight; kernels show different ones.
  const bool idle = rule.cpu_idle && cgroup.cpu_idle() == true;
  if (rule.cpu_shares && weight && !idle) {
    compare("cpu.weight", weight->value(), core::cpu_weight_for(*rule.cpu_shares, formula).value());
  }
  if (shares || weight)
    differ("cpu quota", shown_quota(cgroup.cpu_quota()), shown_quota(rule.cpu_quota));
  compare_cpu_class(cgroup, rule, found);
  const Number limit = cgroup.memory_limit().transform(&Bytes::value);
  const Number wanted = limit_of(rule.memory_limit);
  // The kernel stores memory limits in whole pages.
  const auto pages = [&](std::int64_t bytes) { return bytes / page_size.value(); };
  if (cgroup.memory_usage() && limit.transform(pages) != wanted.transform(pages)) {
    const auto amount = [](const Number& bytes) {
      return format_amount(Bytes{bytes.value_or(-1)});
    };
    differ("memory limit", amount(limit), amount(wanted));
  }
  for (std::string& words : memory_qos_differences(cgroup, rule.unified, page_size))
    found.push_back(std::move(words));
  if (rule.pids_limit && cgroup.pids()) compare("pids.max", cgroup.pids_limit(), rule.pids_limit);
  compare_io_weights(cgroup.machine(), cgroup.path(), rule, found);
  return found;
}

bool has_io_weight(Machine& machine, const std::string& cgroup) {
  const auto weighted = machine.attribute(cgroup, core::kIoWeightAttribute);
  return weighted && *weighted == core::kIoWeightSet;
}

bool has_eviction(Machine& machine, const std::string& cgroup) {
  const auto told = machine.attribute(cgroup, core::kEvictionAttribute);
  return told && *told == core::kEvictionSet;
}

bool takes_io_weight(Machine& machine, const std::string& cgroup) {
  const auto version = machine.layout_without_hugepages().io;
  return version && std::ranges::any_of(core::value_table(), [&](const core::ValueRow& row) {
           const core::ValueFile& file = row.on(*version);
           return row.controller == core::Controller::kIo && file.number != nullptr &&
                  machine.read(cgroup, row.controller, std::string{file.name});
         });
}

}  // namespace podqos::cgroup
