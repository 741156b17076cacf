#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

/// The environment variables that systemd sets for a service of Type=notify or notify-reload;
/// nullptr if unset. See sd_notify(3) and sd_watchdog_enabled(3).
struct NotifyEnvironment {
  const char* socket = nullptr;         ///< NOTIFY_SOCKET
  const char* watchdog_usec = nullptr;  ///< WATCHDOG_USEC
  const char* watchdog_pid = nullptr;   ///< WATCHDOG_PID
};
/// The variables of this process.
[[nodiscard]] NotifyEnvironment notify_environment();

/// Reports the state of the service to systemd, by the protocol of sd_notify(3). Does nothing
/// without NOTIFY_SOCKET. If systemd's socket is full, the messages that systemd waits for block up
/// to the timeout, and others are dropped.
class Notify {
 public:
  Notify() = default;
  /// Opens a socket for the messages; does not connect.
  /// @param timeout  for messages that systemd waits for; at least 1 us
  /// @return kInvalidArgument: NOTIFY_SOCKET is not the address of a unix socket, or WATCHDOG_USEC
  ///         is not a positive number.
  static Result<Notify> open(const NotifyEnvironment& environment,
                             std::chrono::microseconds timeout = std::chrono::seconds{1});

  /// READY=1 and STATUS=: the service has started or finished a reload.
  void ready(std::string_view status) const;
  /// RELOADING=1; to be followed by ready().
  void reloading() const;
  /// STOPPING=1.
  void stopping() const;
  /// STATUS=: one line that `systemctl status` shows.
  void status(std::string_view text) const;
  /// WATCHDOG=1.
  void watchdog() const;

  /// The interval at which to call watchdog(): half of WATCHDOG_USEC; nullopt: never.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog_interval() const {
    return watchdog_interval_;
  }

 private:
  void send(std::string_view state, int flags) const;

  std::optional<sys::UnixAddress> address_;
  sys::UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_interval_;
};

}  // namespace podqos::nri
