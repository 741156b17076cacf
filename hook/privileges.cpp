#include "hook/privileges.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace podqos::hook {

Status enter_sandbox(const core::Settings& settings) {
  ::umask(077);
  // Without root there are no capabilities to drop, and podqos manages nothing.
  if (::geteuid() == 0) {
    std::vector<int> kept{kKeptCapabilities.begin(), kKeptCapabilities.end()};
    if (settings.charge_monitor) kept.push_back(CAP_SYS_NICE);
    if (auto done = sys::keep_capabilities(kept); !done) return done;
  }
#ifdef PODQOS_WITH_SANITIZER
  // The sanitizers' own runtime needs more syscalls than the allow-list has.
  return {};
#else
  return sys::install_filter(sys::Filter::kHook);
#endif
}

}  // namespace podqos::hook
