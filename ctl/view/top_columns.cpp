#include <algorithm>
#include <array>

#include "common/base/text.h"
#include "ctl/view/top_view.h"

namespace podqos::ctl {
namespace {

using Value = std::optional<std::int64_t>;

constexpr std::int64_t kMilli = 1000;
constexpr std::int64_t kTenths = 10;

template <class Tag>
Value plain(const std::optional<Unit<Tag>>& value) {
  return value.transform(&Unit<Tag>::value);
}

/// Thousandths of `whole`; nullopt where either is not known.
template <class Tag>
Value permille_of(const std::optional<Unit<Tag>>& part, const std::optional<Unit<Tag>>& whole) {
  if (!part || !whole || whole->value() <= 0) return std::nullopt;
  return mul_div(part->value(), kMilli, whole->value());
}

// Each text of a value has at most six columns.

/// "250m", "12.5", "128" of thousandths of a CPU.
std::string cpu_text(std::int64_t milli) {
  constexpr std::int64_t kMostMilli = 10 * kMilli;
  constexpr std::int64_t kMostTenths = 100 * kMilli;
  if (milli < kMostMilli) return cat(milli, "m");
  const std::int64_t whole = milli / kMilli;
  return milli < kMostTenths ? cat(whole, ".", milli % kMilli / (kMilli / kTenths)) : cat(whole);
}

/// "812", "9.5Mi", "64Mi", "1000Mi" of bytes, rounded down.
std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  constexpr std::int64_t kStep = 1024;
  std::size_t unit = 0;
  std::int64_t scale = 1;
  while (bytes / scale >= kStep) {
    scale *= kStep;
    ++unit;
  }
  const std::int64_t whole = bytes / scale;
  const std::int64_t tenths = mul_div(bytes % scale, kTenths, scale);
  return cat(whole, whole < kTenths && tenths > 0 ? cat(".", tenths) : "", kUnits.at(unit));
}

/// "85%" of thousandths; ">9k%" where five columns do not suffice.
std::string percent_text(std::int64_t permille) {
  constexpr std::int64_t kMost = 9999;
  const std::int64_t percent = permille / kTenths;
  return percent > kMost ? ">9k%" : cat(percent, "%");
}

/// "123", "12k", "3M" of things.
std::string count_text(std::int64_t count) {
  constexpr std::int64_t kMost = 10'000;
  constexpr std::int64_t kMillion = kMilli * kMilli;
  if (count < kMost) return cat(count);
  return count < kMillion ? cat(count / kMilli, "k") : cat(count / kMillion, "M");
}

/// What Kubernetes compares with requests and limits: `kubectl top`, and evictions by the kubelet.
const std::optional<Bytes>& compared_memory(const UsageEntry& entry) {
  return entry.usage.working_set;
}

constexpr std::array kColumns = {
    TopColumn{"cpu", "CPU", 5, 1, "CPU in use, in thousandths of a CPU (m) or in CPUs",
              [](const UsageEntry& entry) { return plain(entry.usage.cpu); }, cpu_text},
    TopColumn{
        "cpu-request", "/REQ", 5, 2, "the same as a share of the CPU request",
        [](const UsageEntry& entry) { return permille_of(entry.usage.cpu, entry.requests.cpu); },
        percent_text},
    TopColumn{
        "cpu-limit", "/LIM", 5, 2, "the same as a share of the CPU limit",
        [](const UsageEntry& entry) { return permille_of(entry.usage.cpu, entry.limits.cpu); },
        percent_text},
    TopColumn{"throttled", "THR", 4, 2, "periods in which the CPU limit made it wait",
              [](const UsageEntry& entry) { return plain(entry.usage.throttled); }, percent_text},
    TopColumn{"cpu-pressure", "CPSI", 5, 4, "time in which a task waited for a CPU (PSI)",
              [](const UsageEntry& entry) { return plain(entry.usage.cpu_waiting); }, percent_text},
    TopColumn{"memory", "MEM", 6, 1, "memory in use, page cache included",
              [](const UsageEntry& entry) { return plain(entry.usage.memory); }, bytes_text},
    TopColumn{"working-set", "WSET", 6, 3, "the same without page cache not used lately",
              [](const UsageEntry& entry) { return plain(entry.usage.working_set); }, bytes_text},
    TopColumn{"memory-request", "/REQ", 5, 2, "working set as a share of the memory request",
              [](const UsageEntry& entry) {
                return permille_of(compared_memory(entry), entry.requests.memory);
              },
              percent_text},
    TopColumn{"memory-limit", "/LIM", 5, 2, "working set as a share of the memory limit",
              [](const UsageEntry& entry) {
                return permille_of(compared_memory(entry), entry.limits.memory);
              },
              percent_text},
    TopColumn{"memory-pressure", "MPSI", 5, 4, "time in which a task waited for memory (PSI)",
              [](const UsageEntry& entry) { return plain(entry.usage.memory_waiting); },
              percent_text},
    TopColumn{"swap", "SWAP", 6, 5, "swap in use",
              [](const UsageEntry& entry) { return plain(entry.usage.swap); }, bytes_text},
    TopColumn{"pids", "PIDS", 5, 4, "processes and threads",
              [](const UsageEntry& entry) { return entry.usage.pids; }, count_text},
    TopColumn{"oom", "OOM", 4, 2, "processes that the OOM killer has ended",
              [](const UsageEntry& entry) { return entry.usage.oom_kills; }, count_text},
    TopColumn{"requested-cpu", "CREQ", 5, 6, "CPU request",
              [](const UsageEntry& entry) { return plain(entry.requests.cpu); }, cpu_text},
    TopColumn{"limited-cpu", "CLIM", 5, 6, "CPU limit",
              [](const UsageEntry& entry) { return plain(entry.limits.cpu); }, cpu_text},
    TopColumn{"requested-memory", "MREQ", 6, 6, "memory request",
              [](const UsageEntry& entry) { return plain(entry.requests.memory); }, bytes_text},
    TopColumn{"limited-memory", "MLIM", 6, 6, "memory limit",
              [](const UsageEntry& entry) { return plain(entry.limits.memory); }, bytes_text},
};

}  // namespace

std::span<const TopColumn> top_columns() {
  return kColumns;
}

std::optional<std::size_t> find_column(std::string_view word) {
  const auto found = std::ranges::find(kColumns, word, &TopColumn::word);
  if (found == kColumns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kColumns.begin());
}

}  // namespace podqos::ctl
