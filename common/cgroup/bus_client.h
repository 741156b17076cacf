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

/// Why a call failed: a D-Bus error name and its message (D-Bus specification, "Message Types").
struct BusFailure {
  std::string name;  ///< "org.freedesktop.systemd1.NoSuchUnit"
  std::string text;  ///< message from the peer or from libdbus; may be empty
};
/// A value, or why the call failed.
template <class T>
using BusResult = std::expected<T, BusFailure>;

/// A private connection to a unix socket, without a main loop or threads. Every wait ends at its
/// deadline with org.freedesktop.DBus.Error.NoReply.
///
/// libdbus does not need any DBUS_* variable to find the socket, does not change SIGPIPE and does
/// not exit the process when the peer disconnects. It reads the environment in one case only: if a
/// server rejects EXTERNAL authentication and asks for a cookie, libdbus looks for it below HOME.
/// systemd and the system bus do not ask for one.
class BusClient {
 public:
  /// A point in time of the monotonic clock.
  using Deadline = sys::Clock::TimePoint;

  /// Connects. Authentication happens during the first call.
  /// @param address  "unix:path=…"
  /// @param deadline  NoReply when it has passed, also while the socket's backlog is full
  /// @param clock  measures all deadlines; must outlive the object
  [[nodiscard]] static BusResult<BusClient> open(const std::string& address, Deadline deadline,
                                                 const sys::Clock& clock);

  /// Queues a message without a reply; it is sent with the next call.
  /// @return org.freedesktop.DBus.Error.NoMemory if it cannot be queued.
  [[nodiscard]] BusResult<void> send_without_reply(DBusMessage* message);

  /// Sends all requests, then waits for the replies, which are returned in the order of the
  /// requests. Signals received meanwhile are discarded.
  [[nodiscard]] std::vector<BusResult<Message>> call(std::span<DBusMessage* const> requests,
                                                     Deadline deadline);

  /// False once either side has closed the connection; open a new one then.
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

  /// The phase in which the connection was lost, for the error message.
  [[nodiscard]] std::string_view moment() const;
  /// Time left, rounded up, as libdbus takes it.
  [[nodiscard]] int milliseconds_until(Deadline deadline) const;

  std::unique_ptr<DBusConnection, CloseConnection> connection_;
  const sys::Clock* clock_;  ///< never null
};

}  // namespace podqos::cgroup
