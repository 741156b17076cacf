#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/cgroups/plan.h"
#include "common/sys/clock.h"

namespace podqos::cgroup {

class Bus;

/// What listens on a socket.
enum class Peer : std::uint8_t {
  kSystemd,     ///< systemd itself
  kMessageBus,  ///< a message bus: requires Hello, one more round trip
};

/// An address of systemd's manager.
struct SystemdAddress {
  std::string address;  ///< "unix:path=…" only
  Peer peer = Peer::kSystemd;
};

/// Where and how long to call systemd.
struct SystemdOptions {
  /// Tried in this order; the next one only if the socket does not exist or refuses connections.
  /// systemd's private socket works without a message bus; a container with host tools may only
  /// have the system bus.
  std::vector<SystemdAddress> addresses = {
      {.address = "unix:path=/run/systemd/private", .peer = Peer::kSystemd},
      {.address = "unix:path=/run/dbus/system_bus_socket", .peer = Peer::kMessageBus}};
  /// Timeout of each call. After a call has timed out no further call is made: the state lock is
  /// held meanwhile, and processes waiting for it give up after 5 s.
  std::chrono::milliseconds deadline{2000};
  /// Deadline for all calls together.
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
  /// How long a call is retried after systemd has closed the connection, within its deadline:
  /// systemd disconnects all clients, and its socket is missing for a moment, during daemon-reexec.
  /// On a busy machine that takes more than a second.
  std::chrono::milliseconds restart{2000};
  const sys::Clock* clock = &sys::kSteadyClock;  ///< measures all timeouts; never null
};

/// A client of systemd's manager on D-Bus, as far as slices and scopes need it. It connects at the
/// first call; calls are answered in order. No call waits for a job: a reply means that the unit is
/// loaded with its properties and that the job is queued. For single-threaded programs that do not
/// execute others: it uses SIGALRM while connecting and sets DBUS_FATAL_WARNINGS=0.
///
/// A call whose connection is closed is repeated on a new connection, since systemd drops its
/// clients at daemon-reexec; start_transient() may therefore find the unit that it has just
/// created.
///
/// Errors name unit, call, address and systemd's message: kInvalidArgument (D-Bus cannot take a
/// string; nothing is sent), kNotFound (no such unit, or systemd is not running: no
/// socket), kAlreadyExists (the unit is already loaded), kConflict (the unit is masked),
/// kPermission (access denied), kUnsupported (systemd does not know a property), kTimeout (no reply
/// before the deadline), kIo (connection lost, or any other error).
/// @note org.freedesktop.systemd1(5).
class Systemd {
 public:
  /// Does not connect yet.
  explicit Systemd(SystemdOptions options = {});
  ~Systemd();
  Systemd(Systemd&&) noexcept;
  Systemd& operator=(Systemd&&) noexcept;
  Systemd(const Systemd&) = delete;
  Systemd& operator=(const Systemd&) = delete;

  /// StartTransientUnit in mode "replace", for a slice or a scope. kAlreadyExists if the unit is
  /// already loaded.
  [[nodiscard]] Status start_transient(const std::string& unit,
                                       const std::vector<core::UnitProperty>& properties);
  /// StartUnit in mode "replace"; cancels a pending stop.
  [[nodiscard]] Status start(const std::string& unit);
  /// SetUnitProperties with runtime=true: valid until the next boot. systemd loads a slice that is
  /// not loaded.
  [[nodiscard]] Status set_properties(const std::string& unit,
                                      const std::vector<core::UnitProperty>& properties);
  /// StopUnit in mode "replace"; succeeds if the unit is not loaded.
  [[nodiscard]] Status stop(const std::string& unit);
  /// ResetFailedUnit; succeeds if the unit is not loaded.
  [[nodiscard]] Status reset_failed(const std::string& unit);
  /// What systemd has of a unit; nullopt if it is not active, has a job that may change that, or is
  /// active without a definition of its own.
  [[nodiscard]] Result<std::optional<UnitProperties>> properties(const std::string& unit);
  /// ListUnitsByPatterns, e.g. "kubepods*.slice"; returns loaded units only.
  [[nodiscard]] Result<std::vector<ListedUnit>> list(const std::string& pattern);

  /// Whether a cgroup is that of the unit which is named like it, or is below it.
  [[nodiscard]] Result<bool> holds(const std::string& cgroup);

  /// Number of round trips so far, including the bus's Hello.
  [[nodiscard]] int round_trips() const;

 private:
  std::unique_ptr<Bus> bus_;
};

}  // namespace podqos::cgroup
