#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dbus/dbus.h>

#include "common/base/error.h"
#include "common/cgroup/bus_message.h"
#include "common/cgroup/systemd.h"
#include "common/sys/clock.h"

namespace podqos::cgroup {

/// A private connection to systemd's manager, without a main loop or threads, and the error
/// messages of its calls. Connects at the first call, and again after systemd has disconnected.
///
/// libdbus does not need any DBUS_* variable to find the socket, does not change SIGPIPE and does
/// not exit the process when the peer disconnects. It reads the environment in one case only: if a
/// server rejects EXTERNAL authentication and asks for a cookie, libdbus looks for it below HOME.
/// systemd and the system bus do not ask for one.
class Bus {
 public:
  explicit Bus(SystemdOptions options);

  /// Whether NoSuchUnit is an error for a call.
  enum class Unloaded : std::uint8_t { kFails, kIsFine };
  /// Makes a call. Signals received before its reply are discarded.
  /// @param what  its name for errors: "StopUnit kubepods.slice"
  /// @return the reply; null for a unit that is not loaded, if that is accepted.
  [[nodiscard]] Result<Message> call(const std::string& what, Result<Message> message,
                                     Unloaded unloaded = Unloaded::kFails);

  [[nodiscard]] int round_trips() const { return round_trips_; }

 private:
  /// Why a call failed: a D-Bus error name and its message (D-Bus specification, "Message Types").
  struct Failure {
    std::string name;  ///< "org.freedesktop.systemd1.NoSuchUnit"
    std::string text;  ///< message from the peer or from libdbus; may be empty
  };
  template <class T>
  using OrFailure = std::expected<T, Failure>;
  using Reply = OrFailure<Message>;

  /// Owns a DBusError, which libdbus requires to be initialised and freed.
  class ErrorSlot;
  struct CloseConnection {
    void operator()(DBusConnection* connection) const;
  };

  /// Sets the deadline of a call; kTimeout after an earlier call has timed out.
  [[nodiscard]] Status start_clock(std::string_view what);
  /// Repeats a call whose connection was closed.
  [[nodiscard]] Reply call_with_retry(DBusMessage* request);
  /// Connects if necessary. A connection that was closed is dropped.
  [[nodiscard]] Reply attempt(DBusMessage* request);
  [[nodiscard]] Reply exchange(DBusMessage* request);
  [[nodiscard]] Reply answer_to(DBusPendingCall* pending);
  /// Connects to the first address at which a server listens; DBUS_ERROR_NO_SERVER if none does.
  /// Authentication happens during the first call.
  [[nodiscard]] OrFailure<void> connect();
  /// NoReply when the deadline has passed, also while the socket's backlog is full.
  [[nodiscard]] OrFailure<void> open(const std::string& address);
  [[nodiscard]] OrFailure<void> greet(Peer peer);

  /// Whether systemd has disconnected, so that no reply will arrive. A message bus reports this
  /// with errors of its own.
  [[nodiscard]] bool has_left(const Reply& reply) const;
  /// The connection was lost; in which phase.
  [[nodiscard]] std::unexpected<Failure> lost() const;
  [[nodiscard]] Error error_for(std::string_view what, const Failure& failure) const;
  [[nodiscard]] const sys::Clock& clock() const { return *options_.clock; }
  [[nodiscard]] bool in_time() const { return clock().now() < deadline_; }

  SystemdOptions options_;
  sys::Clock::TimePoint deadline_;  ///< of the latest call
  bool hangs_ = false;              ///< a call has timed out
  std::unique_ptr<DBusConnection, CloseConnection> connection_;
  std::string address_;
  int round_trips_ = 0;
};

}  // namespace podqos::cgroup
