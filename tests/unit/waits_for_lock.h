#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

namespace podqos {

/// Is this process in the kernel's queue for a lock? From /proc/locks, where those who wait have an
/// arrow.
[[nodiscard]] inline bool waits_for_lock(pid_t pid) {
  std::ifstream locks{"/proc/locks"};
  const std::string wanted = " " + std::to_string(pid) + " ";
  for (std::string line; std::getline(locks, line);) {
    if (line.contains("->") && line.contains(wanted)) return true;
  }
  return false;
}

inline void wait_until_it_waits(pid_t pid) {
  while (!waits_for_lock(pid))
    ::usleep(1000);
}

}  // namespace podqos
