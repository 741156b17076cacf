#include "common/app/cgroup_reading.h"

#include <string_view>

#include "common/base/text.h"
#include "common/cgroup/flat_keyed.h"
#include "common/core/value_table.h"

namespace podqos::app {
namespace {

using core::CgroupVersion;
using core::Controller;
using core::Value;

/// cgroup v1 shows "unlimited" as LONG_MAX rounded down to a page, whatever the page size;
/// include/linux/page_counter.h, PAGE_COUNTER_MAX.
constexpr std::int64_t kV1Unlimited = std::int64_t{1} << 62U;

/// The text of a value's file.
Result<std::string> text_of(cgroup::Machine& machine, const std::string& path, Value value,
                            CgroupVersion version) {
  const core::ValueRow& row = core::row_of(value);
  return machine.read(path, row.controller, std::string{row.on(version).name});
}

std::optional<std::int64_t> number_in(cgroup::Machine& machine, const std::string& path,
                                      Value value, CgroupVersion version) {
  const auto text = text_of(machine, path, value, version);
  return text ? parse_int(*text) : std::nullopt;
}

/// A limit of 0 or below means "unlimited": nullopt.
std::optional<std::int64_t> positive(std::optional<std::int64_t> value) {
  return value && *value > 0 ? value : std::nullopt;
}

template <class Strong>
std::optional<Strong> strong(std::optional<std::int64_t> value) {
  return value ? std::optional{Strong{*value}} : std::nullopt;
}

/// Documentation/scheduler/sched-bwc.rst: cpu.cfs_quota_us is -1 for "unlimited".
void read_cpu_v1(cgroup::Machine& machine, const std::string& path, CgroupReading& reading) {
  reading.cpu_shares =
      strong<CpuShares>(number_in(machine, path, Value::kCpuShares, CgroupVersion::kV1));
  reading.cpu_quota =
      strong<Micros>(positive(number_in(machine, path, Value::kCpuQuota, CgroupVersion::kV1)));
  reading.cpu_period =
      strong<Micros>(number_in(machine, path, Value::kCpuPeriod, CgroupVersion::kV1));
}

/// Documentation/admin-guide/cgroup-v2.rst: cpu.max is "$MAX $PERIOD".
void read_cpu_v2(cgroup::Machine& machine, const std::string& path, CgroupReading& reading) {
  reading.cpu_weight =
      strong<CpuWeight>(number_in(machine, path, Value::kCpuShares, CgroupVersion::kV2));
  const auto text = text_of(machine, path, Value::kCpuQuota, CgroupVersion::kV2);
  if (!text) return;
  const std::string_view max = *text;
  const std::size_t space = max.find(' ');
  reading.cpu_quota = strong<Micros>(parse_int(max.substr(0, space)));  // nullopt for "max"
  if (space != std::string_view::npos)
    reading.cpu_period = strong<Micros>(parse_int(max.substr(space + 1)));
}

std::string shown(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

template <class Tag>
std::optional<std::int64_t> limit_of(const std::optional<Unit<Tag>>& value) {
  return value ? positive(value->value()) : std::nullopt;
}

/// One difference, as shown to the operator: "pids.max is 7, the rule says 8".
std::string clause(std::string_view what, const std::optional<std::int64_t>& found,
                   const std::optional<std::int64_t>& wanted) {
  return cat(what, " is ", shown(found), ", the rule says ", shown(wanted));
}

/// The kernel stores memory limits in whole pages.
bool same_pages(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b,
                std::int64_t page) {
  if (!a || !b) return a.has_value() == b.has_value();
  return *a / page == *b / page;
}

}  // namespace

CgroupReading read_cgroup(cgroup::Machine& machine, const std::string& path) {
  CgroupReading reading;
  if (path.empty()) return reading;
  reading.exists = machine.exists(path);
  if (!reading.exists) return reading;
  const core::CgroupLayout& layout = machine.layout();
  if (layout.cpu == CgroupVersion::kV1) read_cpu_v1(machine, path, reading);
  if (layout.cpu == CgroupVersion::kV2) read_cpu_v2(machine, path, reading);
  if (layout.memory) {
    const auto limit = number_in(machine, path, Value::kMemoryLimit, *layout.memory);
    if (limit && *limit < kV1Unlimited) reading.memory_limit = Bytes{*limit};
    if (const auto usage = machine.memory_usage(path)) reading.memory_usage = *usage;
  }
  if (layout.pids) {
    reading.pids_limit = number_in(machine, path, Value::kPidsLimit, *layout.pids);
    const auto current = machine.read(path, core::Controller::kPids, "pids.current");
    reading.pids = current ? parse_int(*current) : std::nullopt;
  }
  return reading;
}

std::optional<CpuShares> shares_of(const CgroupReading& reading,
                                   const std::optional<CpuShares>& rule,
                                   core::WeightFormula formula) {
  if (reading.cpu_shares || !reading.cpu_weight) return reading.cpu_shares;
  if (rule && core::cpu_weight_for(*rule, formula) == *reading.cpu_weight) return rule;
  return core::shares_for_linear_weight(*reading.cpu_weight);
}

std::vector<std::string> differences(const CgroupReading& reading, const core::CgroupValues& rule,
                                     core::WeightFormula formula, Bytes page_size) {
  std::vector<std::string> found;
  if (rule.cpu_shares && reading.cpu_shares && *rule.cpu_shares != *reading.cpu_shares)
    found.push_back(clause("cpu.shares", reading.cpu_shares->value(), rule.cpu_shares->value()));
  if (rule.cpu_shares && reading.cpu_weight) {
    const CpuWeight wanted = core::cpu_weight_for(*rule.cpu_shares, formula);
    if (wanted != *reading.cpu_weight)
      found.push_back(clause("cpu.weight", reading.cpu_weight->value(), wanted.value()));
  }
  const bool has_cpu = reading.cpu_shares || reading.cpu_weight;
  if (has_cpu && limit_of(rule.cpu_quota) != limit_of(reading.cpu_quota))
    found.push_back(clause("cpu quota", limit_of(reading.cpu_quota), limit_of(rule.cpu_quota)));
  const auto memory = reading.memory_limit ? std::optional{reading.memory_limit->value()}
                                           : std::optional<std::int64_t>{};
  const auto wanted_memory = limit_of(rule.memory_limit);
  if (reading.memory_usage && !same_pages(memory, wanted_memory, page_size.value()))
    found.push_back(clause("memory limit", memory, wanted_memory));
  if (rule.pids_limit && reading.pids && reading.pids_limit != rule.pids_limit)
    found.push_back(clause("pids.max", reading.pids_limit, rule.pids_limit));
  return found;
}

namespace {

constexpr std::int64_t kNanosPerMicro = 1000;

/// The number after "total=" in the line that begins with `kind`.
std::optional<Micros> total_in(std::string_view text, std::string_view kind) {
  constexpr std::string_view kTotal = "total=";
  while (!text.empty()) {
    std::string_view line = cgroup::read_until(text, '\n');
    if (cgroup::read_until(line, ' ') != kind) continue;
    while (!line.empty()) {
      const std::string_view word = cgroup::read_until(line, ' ');
      if (!word.starts_with(kTotal)) continue;
      const auto number = parse_int(word.substr(kTotal.size()));
      return number ? std::optional{Micros{*number}} : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Reads files of one cgroup; nullopt for what is missing or malformed.
class Reader {
 public:
  Reader(cgroup::Machine& machine, const std::string& path) : machine_(machine), path_(path) {}

  [[nodiscard]] std::optional<std::int64_t> number(Controller controller, const char* file) {
    const auto text = machine_.read(path_, controller, file);
    return text ? parse_int(*text) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> keyed(Controller controller, const char* file,
                                                  std::string_view key) {
    const auto text = machine_.read(path_, controller, file);
    return text ? cgroup::find_key(*text, key) : std::nullopt;
  }
  [[nodiscard]] std::optional<Bytes> bytes(const char* file) {
    const auto text = machine_.read(path_, Controller::kMemory, file);
    if (!text) return std::nullopt;
    if (*text == "max") return Bytes{kInt64Max};
    const auto value = parse_int(*text);
    return value ? std::optional{Bytes{*value}} : std::nullopt;
  }
  /// With psi=0 the kernel shows the files but refuses to read them.
  [[nodiscard]] std::optional<Pressure> pressure(Controller controller, const char* file) {
    const auto text = machine_.read(path_, controller, file);
    return text ? parse_pressure(*text) : std::nullopt;
  }

 private:
  cgroup::Machine& machine_;
  const std::string& path_;
};

}  // namespace

std::optional<Pressure> parse_pressure(std::string_view text) {
  const auto waiting = total_in(text, "some");
  if (!waiting) return std::nullopt;
  return Pressure{.waiting = *waiting, .stalled = total_in(text, "full")};
}

TierReading read_tier(cgroup::Machine& machine, const std::string& path) {
  TierReading tier;
  tier.values = read_cgroup(machine, path);
  if (!tier.values.exists) return tier;
  const core::CgroupLayout& layout = machine.layout_without_hugepages();
  Reader reader{machine, path};
  if (layout.cpu == CgroupVersion::kV1) {
    // cpuacct is mounted together with cpu by all common distributions.
    tier.cpu_usage_ns = reader.number(Controller::kCpu, "cpuacct.usage");
  }
  if (layout.cpu == CgroupVersion::kV2) {
    const auto micros = reader.keyed(Controller::kCpu, "cpu.stat", "usage_usec");
    if (micros) tier.cpu_usage_ns = mul_div(*micros, kNanosPerMicro, 1);
    tier.cpu_pressure = reader.pressure(Controller::kCpu, "cpu.pressure");
  }
  if (layout.memory == CgroupVersion::kV2) {
    tier.memory_min = reader.bytes("memory.min");
    tier.memory_low = reader.bytes("memory.low");
    tier.oom_kills = reader.keyed(Controller::kMemory, "memory.events", "oom_kill");
    tier.memory_pressure = reader.pressure(Controller::kMemory, "memory.pressure");
    // Exists in every cgroup of v2, independent of its controllers.
    tier.io_pressure = reader.pressure(Controller::kMemory, "io.pressure");
  }
  return tier;
}

}  // namespace podqos::app
