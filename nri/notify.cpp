#include "nri/notify.h"

#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/app/log.h"
#include "common/base/text.h"

namespace podqos::nri {

Result<Notify> Notify::open() {
  Notify out;
  const char* path = ::secure_getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return out;
  auto address = sys::UnixAddress::make(path);
  if (!address) return fail(std::move(address).error().with_context("NOTIFY_SOCKET"));
  out.address_ = *address;
  out.socket_ = sys::UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  constexpr timeval kTimeout{.tv_sec = 1, .tv_usec = 0};
  if (!out.socket_.valid() ||
      ::setsockopt(out.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout) != 0)
    return fail_errno(errno, "create a socket for NOTIFY_SOCKET");
  const char* text = ::secure_getenv("WATCHDOG_USEC");
  const char* pid = ::secure_getenv("WATCHDOG_PID");
  // The variables may be inherited, and meant for another process.
  if (text == nullptr || (pid != nullptr && parse_int(pid) != ::getpid())) return out;
  const auto usec = parse_int(text);
  if (!usec || *usec <= 0)
    return fail(
        ErrorCode::kInvalidArgument,
        cat("WATCHDOG_USEC=", printable(text),
            ": expected a positive number of microseconds as set by systemd (WatchdogSec=)"));
  // As sd_watchdog_enabled(3) recommends.
  out.watchdog_interval_ = std::chrono::microseconds{*usec} / 2;
  return out;
}

void Notify::ready(std::string_view status) const {
  send(cat("READY=1\nSTATUS=", app::one_line(status)), 0);
}

void Notify::status(std::string_view text) const {
  send(cat("STATUS=", app::one_line(text)), MSG_DONTWAIT);
}

void Notify::send(std::string_view state, int flags) const {
  if (!address_) return;
  // Sent by address: systemd recreates its socket when it re-executes itself.
  static_cast<void>(::sendto(socket_.get(), state.data(), state.size(), flags | MSG_NOSIGNAL,
                             address_->get(), address_->size()) < 0);
}

}  // namespace podqos::nri
