#include "common/app/tier_reading.h"

#include "common/base/text.h"
#include "common/cgroup/flat_keyed.h"

namespace podqos::app {

namespace {

using core::CgroupVersion;
using core::Controller;

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
