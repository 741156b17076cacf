#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "common/sys/unix_address.h"

namespace podqos::nri {

/// What systemd leaves in the environment of a service of type notify or notify-reload.
struct NotifyEnvironment {
  const char* socket = nullptr;         ///< NOTIFY_SOCKET
  const char* watchdog_usec = nullptr;  ///< WATCHDOG_USEC
  const char* watchdog_pid = nullptr;   ///< WATCHDOG_PID
};
[[nodiscard]] NotifyEnvironment notify_environment();

/// Tells systemd how the service is, as sd_notify(3) does. Without a NOTIFY_SOCKET nobody is told.
/// A systemd that has no room for more gets a second for what it waits for, and none for the rest.
class Notify {
 public:
  Notify() = default;
  /// @param timeout  for what systemd waits for, at least 1 us
  /// @return kInvalidArgument: the socket's address is none, or WATCHDOG_USEC is no number.
  static Result<Notify> open(const NotifyEnvironment& environment,
                             std::chrono::microseconds timeout = std::chrono::seconds{1});

  void ready(std::string_view status) const;
  /// Followed by ready().
  void reloading() const;
  void stopping() const;
  /// One line that `systemctl status` shows.
  void status(std::string_view text) const;
  void watchdog() const;

  /// How often systemd is to hear watchdog(): half of what it waits for; nullopt: never.
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
