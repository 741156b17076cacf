#include "hook/privileges.h"

#include <sys/stat.h>
#include <unistd.h>

namespace podqos::hook {

Status enter_sandbox() {
  ::umask(077);
  // Without root there is nothing to drop, and nothing that podqos would manage.
  if (::geteuid() == 0) {
    if (auto done = sys::keep_capabilities(kKeptCapabilities); !done) return done;
  }
#ifdef PODQOS_WITH_SANITIZER
  // The sanitizers' own runtime needs more syscalls than the allow-list has.
  return {};
#else
  return sys::install_filter(sys::Filter::kHook);
#endif
}

}  // namespace podqos::hook
