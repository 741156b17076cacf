#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dbus/dbus.h>

#include "common/cgroup/bus_message.h"
#include "common/sys/clock.h"

namespace podqos::cgroup {

/// How a call failed, in D-Bus's terms.
struct BusFailure {
  std::string name;  ///< "org.freedesktop.systemd1.NoSuchUnit"
  std::string text;  ///< the other side's words, or libdbus's
};
template <class T>
using BusResult = std::expected<T, BusFailure>;

/// One private connection to a unix socket, without a main loop and without threads. Every wait
/// ends at the deadline, with org.freedesktop.DBus.Error.NoReply.
///
/// libdbus finds the socket without any DBUS_* variable, leaves SIGPIPE alone and does not end the
/// process when the other side goes away. It reads the environment for one thing only: HOME, should
/// a server refuse the user's id and want a cookie from there, as neither systemd nor a system bus
/// does.
class BusClient {
 public:
  using Deadline = sys::Clock::TimePoint;

  /// Connects; who we are is told to the other side at the first call.
  /// @param address  "unix:path=…"
  /// @param clock    of all deadlines; outlives the object
  [[nodiscard]] static BusResult<BusClient> open(const std::string& address, Deadline deadline,
                                                 const sys::Clock& clock);

  /// Puts a message that wants no answer in front of the next call.
  [[nodiscard]] BusResult<void> announce(DBusMessage* message);

  /// Sends all, then waits for the replies, which are in the order of the requests. Signals that
  /// come meanwhile are dropped.
  [[nodiscard]] std::vector<BusResult<Message>> call(std::span<DBusMessage* const> requests,
                                                     Deadline deadline);

  [[nodiscard]] bool is_connected() const;

 private:
  struct CloseConnection {
    void operator()(DBusConnection* connection) const;
  };

  struct UnrefPendingCall {
    void operator()(DBusPendingCall* call) const;
  };
  using PendingCall = std::unique_ptr<DBusPendingCall, UnrefPendingCall>;

  BusClient(DBusConnection* connection, const sys::Clock& clock)
      : connection_(connection), clock_(&clock) {}

  [[nodiscard]] BusResult<PendingCall> send(DBusMessage* request);
  [[nodiscard]] BusResult<Message> answer_to(DBusPendingCall* pending, Deadline deadline);

  /// When the connection has ended, for the error.
  [[nodiscard]] std::string_view moment() const;
  [[nodiscard]] int milliseconds_until(Deadline deadline) const;

  std::unique_ptr<DBusConnection, CloseConnection> connection_;
  const sys::Clock* clock_;  ///< never null
};

}  // namespace podqos::cgroup
