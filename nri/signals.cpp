#include "nri/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace podqos::nri {

Result<Signals> Signals::open() {
  sigset_t taken{};
  ::sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    ::sigaddset(&taken, number);
  sys::UniqueFd fd{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd.valid()) return fail_errno(errno, "signalfd");
  sigset_t old_mask{};
  if (const int err = ::pthread_sigmask(SIG_BLOCK, &taken, &old_mask); err != 0)
    return fail_errno(err, "block signals");
  return Signals{std::move(fd), old_mask};
}

Signals::~Signals() {
  if (fd_.valid()) static_cast<void>(::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr));
}

std::optional<int> Signals::read() {
  signalfd_siginfo signal{};
  if (::read(fd_.get(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace podqos::nri
