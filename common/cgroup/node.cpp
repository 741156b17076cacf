#include "common/cgroup/node.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/cgroup/value.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"
#include "common/sys/sandbox.h"

namespace podqos::cgroup {

namespace {

/// What the machine has.
struct Measured {
  sys::InstalledMemory memory;
  MilliCpu cpu;
};

/// Measures again after a minute: memory and processors are seldom plugged, and cadvisor, from
/// which a kubelet knows them, looks every five minutes.
Result<Measured> measure() {
  using Clock = std::chrono::steady_clock;
  static std::optional<Measured> last;
  static Clock::time_point expires;
  if (last && Clock::now() < expires) return *last;
  PODQOS_ASSIGN(const auto memory, sys::installed_memory());
  last = Measured{.memory = memory, .cpu = sys::online_cpu()};
  expires = Clock::now() + std::chrono::minutes{1};
  return *last;
}

}  // namespace

bool owns_host() {
  if (::geteuid() != 0) return false;
  // podqos never changes its namespace, and a look at it costs the kernel a new inode.
  static const bool is_initial = [] {
    // PROC_USER_INIT_INO of include/linux/proc_ns.h.
    constexpr std::string_view kInitialUserNamespace = "user:[4026531837]";
    std::array<char, 64> name{};
    const ssize_t size = ::readlinkat(AT_FDCWD, "/proc/self/ns/user", name.data(), name.size());
    // No user namespaces; or what is not the host's is refused later, and that is reported.
    if (size < 0) return true;
    return std::string_view{name.data(), static_cast<std::size_t>(size)} == kInitialUserNamespace;
  }();
  return is_initial;
}

int reachable_oom_score(int wanted) {
  if (sys::has_capability(CAP_SYS_RESOURCE)) return wanted;
  const auto own = sys::oom_score_adj_of(Pid{::getpid()});
  return own ? std::max(wanted, *own) : wanted;
}

core::Driver machine_driver() {
  // As in sd_booted(3).
  struct stat status{};
  const bool systemd = ::lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
  return systemd ? core::Driver::kSystemd : core::Driver::kCgroupfs;
}

core::NodeCapacity with_pids(core::NodeCapacity capacity) {
  if (capacity.pids == 0) capacity.pids = sys::max_pids().value_or(0);
  return capacity;
}

std::optional<std::int64_t> node_oom_kills() {
  constexpr std::size_t kMostBytes = 65'536;
  const auto text = sys::read_file("/proc/vmstat", kMostBytes);
  return text ? find_key(*text, "oom_kill") : std::nullopt;
}

std::optional<std::string> kernel_log() {
  constexpr int kReadAll = 3;  // SYSLOG_ACTION_READ_ALL
  std::string text(256UL << 10U, '\0');
  const int read = ::klogctl(kReadAll, text.data(), static_cast<int>(text.size()));
  if (read < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(read));
  return text;
}

Result<core::NodeCapacity> node_capacity(const core::Settings& settings) {
  core::NodeCapacity capacity;
  const bool counts_swap = settings.swap_behavior == core::SwapBehavior::kLimitedSwap;
  if (!settings.node_memory || !settings.node_cpu || counts_swap) {
    PODQOS_ASSIGN(const auto measured, measure());
    capacity.memory = measured.memory.memory;
    capacity.hugepages = measured.memory.hugepages;
    capacity.cpu = measured.cpu;
    if (counts_swap) capacity.swap = measured.memory.swap;
  }
  // Configured values override measured ones.
  if (settings.node_memory) {
    capacity.memory = *settings.node_memory;
    capacity.hugepages = Bytes{0};
  }
  if (settings.node_cpu) capacity.cpu = *settings.node_cpu;
  capacity.page_size = Bytes{::sysconf(_SC_PAGESIZE)};
  return capacity;
}

}  // namespace podqos::cgroup
