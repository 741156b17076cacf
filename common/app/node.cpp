#include "common/app/node.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/sys/fd.h"
#include "common/sys/process.h"
#include "common/sys/sandbox.h"

namespace podqos::app {

bool owns_host() {
  if (::geteuid() != 0) return false;
  const sys::UniqueFd fd{::open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC)};
  // A kernel without user namespaces has only the initial one.
  if (!fd.valid()) return true;
  std::array<char, 128> buffer{};
  const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
  if (size <= 0) return false;
  std::string_view text{buffer.data(), static_cast<std::size_t>(size)};
  std::string words;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      words += c;
    } else if (!words.empty() && words.back() != ' ') {
      words += ' ';
    }
  }
  return words == "0 0 4294967295 ";
}

int reachable_oom_score(int wanted) {
  if (sys::has_capability(CAP_SYS_RESOURCE)) return wanted;
  const auto own = sys::oom_score_adj_of(Pid{::getpid()});
  return own ? std::max(wanted, *own) : wanted;
}

Result<core::NodeCapacity> node_capacity(const core::Settings& settings) {
  core::NodeCapacity capacity;
  if (settings.node_memory) {
    capacity.memory = *settings.node_memory;
  } else {
    auto memory = sys::installed_memory();
    if (!memory) return fail(std::move(memory).error());
    capacity.memory = *memory;
  }
  if (settings.node_cpu) {
    capacity.cpu = *settings.node_cpu;
  } else {
    auto cpu = sys::online_cpu();
    if (!cpu) return fail(std::move(cpu).error());
    capacity.cpu = *cpu;
  }
  return capacity;
}

}  // namespace podqos::app
