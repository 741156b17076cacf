#include "nri/notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "common/app/log.h"
#include "common/base/text.h"
#include "nri/connect.h"

namespace podqos::nri {

namespace {

/// Flags of send(2) for a message that systemd waits for: may block up to the timeout.
constexpr int kNeeded = 0;

/// CLOCK_MONOTONIC in microseconds, which systemd uses to match READY=1 to a reload (sd_notify(3)).
std::int64_t monotonic_usec() {
  timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
  const auto time = std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

/// Half of WATCHDOG_USEC, as sd_watchdog_enabled(3) recommends; nullopt: no watchdog.
Result<std::optional<std::chrono::microseconds>> interval_of(const NotifyEnvironment& environment) {
  if (environment.watchdog_usec == nullptr) return std::nullopt;
  // The variables may be inherited, and meant for another process.
  if (environment.watchdog_pid != nullptr && parse_int(environment.watchdog_pid) != ::getpid())
    return std::nullopt;
  const auto usec = parse_int(environment.watchdog_usec);
  if (!usec || *usec <= 0) {
    return fail(
        ErrorCode::kInvalidArgument,
        cat("WATCHDOG_USEC=", printable(environment.watchdog_usec),
            ": expected a positive number of microseconds as set by systemd (WatchdogSec=)"));
  }
  return std::chrono::microseconds{*usec} / 2;
}

}  // namespace

NotifyEnvironment notify_environment() {
  return {.socket = environment_variable("NOTIFY_SOCKET"),
          .watchdog_usec = environment_variable("WATCHDOG_USEC"),
          .watchdog_pid = environment_variable("WATCHDOG_PID")};
}

Result<Notify> Notify::open(const NotifyEnvironment& environment,
                            std::chrono::microseconds timeout) {
  Notify out;
  if (environment.socket == nullptr || *environment.socket == '\0') return out;
  auto address = sys::UnixAddress::make(environment.socket);
  if (!address) return fail(std::move(address).error().with_context("NOTIFY_SOCKET"));
  out.address_ = *address;
  out.socket_ = sys::UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timeval time{.tv_sec = seconds.count(), .tv_usec = (timeout - seconds).count()};
  if (!out.socket_.valid() ||
      ::setsockopt(out.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0)
    return fail_errno(errno, "create a socket for NOTIFY_SOCKET");
  PODQOS_ASSIGN(auto interval, interval_of(environment));
  out.watchdog_interval_ = interval;
  return out;
}

void Notify::ready(std::string_view status) const {
  send(cat("READY=1\nSTATUS=", app::one_line(status)), kNeeded);
}

void Notify::reloading() const {
  send(cat("RELOADING=1\nMONOTONIC_USEC=", monotonic_usec()), kNeeded);
}

void Notify::stopping() const {
  send("STOPPING=1", kNeeded);
}

void Notify::status(std::string_view text) const {
  send(cat("STATUS=", app::one_line(text)), MSG_DONTWAIT);
}

void Notify::watchdog() const {
  send("WATCHDOG=1", MSG_DONTWAIT);
}

void Notify::send(std::string_view state, int flags) const {
  if (!address_) return;
  // Sent by address: systemd recreates its socket when it re-executes itself.
  static_cast<void>(::sendto(socket_.get(), state.data(), state.size(), flags | MSG_NOSIGNAL,
                             address_->get(), address_->size()) < 0);
}

}  // namespace podqos::nri
