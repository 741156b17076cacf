#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

/// Reports the state of the service to systemd, by the protocol of sd_notify(3). Does nothing
/// without NOTIFY_SOCKET. If systemd's socket is full, the messages that systemd waits for block
/// for a second, and others are dropped.
class Notify {
 public:
  Notify() = default;
  /// Opens a socket for the messages, by the environment variables that systemd sets for a service
  /// of Type=notify; does not connect. See sd_watchdog_enabled(3).
  /// @return kInvalidArgument: NOTIFY_SOCKET is not the address of a unix socket, or WATCHDOG_USEC
  ///         is not a positive number.
  static Result<Notify> open();

  /// READY=1 and STATUS=: the service has started or finished a reload.
  void ready(std::string_view status) const;
  /// RELOADING=1; to be followed by ready().
  void reloading() const { send("RELOADING=1", 0); }
  /// STOPPING=1.
  void stopping() const { send("STOPPING=1", 0); }
  /// STATUS=: one line that `systemctl status` shows.
  void status(std::string_view text) const;
  /// WATCHDOG=1.
  void watchdog() const { send("WATCHDOG=1", MSG_DONTWAIT); }

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
