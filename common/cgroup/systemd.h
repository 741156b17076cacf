#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/unit.h"
#include "common/sys/clock.h"

namespace podqos::cgroup {

/// A unit as systemd lists it.
struct ListedUnit {
  std::string name;
  std::string load_state;    ///< "loaded", "not-found" …
  std::string active_state;  ///< "active", "deactivating", "inactive" …
};

/// What a unit is told.
struct UnitChange {
  std::string unit;
  std::vector<core::UnitProperty> properties;
};

/// A unit, and the cgroup that it should have.
struct UnitPlace {
  std::string unit;
  std::string cgroup;
};

/// One for each of what was asked, in its order.
struct UnitAnswers {
  std::vector<Status> set;
  std::vector<Result<bool>> held;
};

/// Who listens at a socket.
enum class Peer : std::uint8_t {
  kSystemd,     ///< systemd itself
  kMessageBus,  ///< a bus, which wants a Hello first: one round trip more
};

struct SystemdAddress {
  std::string address;  ///< "unix:path=…", nothing else
  Peer peer = Peer::kSystemd;
};

struct SystemdOptions {
  /// Tried in this order; the next one only where nobody listens. systemd's own socket needs no
  /// message bus; the system bus is what containers of a host's tools may see instead.
  std::vector<SystemdAddress> addresses = {
      {.address = "unix:path=/run/systemd/private", .peer = Peer::kSystemd},
      {.address = "unix:path=/run/dbus/system_bus_socket", .peer = Peer::kMessageBus}};
  /// For each call. After one that systemd has let pass no other is made: the lock of the state is
  /// held meanwhile, and those who wait for it have 5 s.
  std::chrono::milliseconds deadline{2000};
  /// For all calls together.
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
  /// How long a call is repeated where systemd goes away in the middle of it: it leaves all its
  /// clients, and its socket for a moment, when it executes itself anew.
  std::chrono::milliseconds restart{1000};
  const sys::Clock* clock = &sys::kSteadyClock;  ///< by which all these end; never null
};

/// systemd's manager on D-Bus, as far as slices and scopes need it. Connects at the first call;
/// calls are answered in order. No call waits for a job: the manager's reply means that the unit is
/// loaded with its properties and the job is queued. For programs of one thread that execute no
/// other: it takes SIGALRM while it connects, and sets DBUS_FATAL_WARNINGS=0.
///
/// A call whose connection ends is made once more on a new one, as systemd drops its clients at a
/// daemon-reexec; so start_transient may find the unit that it has just made.
///
/// Errors name unit, call, address and systemd's own words: kInvalidArgument (a name or text that
/// D-Bus or systemd could not take, nothing is sent), kNotFound (no such unit, or systemd does not
/// run here: no socket), kAlreadyExists (the unit is loaded already), kPermission (refused),
/// kTimeout (no answer before the deadline), kIo (the connection broke, or systemd refused
/// otherwise).
/// @note org.freedesktop.systemd1(5).
class Systemd {
 public:
  explicit Systemd(SystemdOptions options = {});
  ~Systemd();
  Systemd(Systemd&&) noexcept;
  Systemd& operator=(Systemd&&) noexcept;
  Systemd(const Systemd&) = delete;
  Systemd& operator=(const Systemd&) = delete;

  /// StartTransientUnit in mode "replace" (a slice or a scope). kAlreadyExists where the unit is
  /// loaded already.
  /// @param if_known  further properties, left out where systemd does not know one of them.
  [[nodiscard]] Status start_transient(const std::string& unit,
                                       const std::vector<core::UnitProperty>& properties,
                                       const std::vector<core::UnitProperty>& if_known = {});
  /// StartUnit in mode "replace"; takes back a stop that is under way.
  [[nodiscard]] Status start(const std::string& unit);
  /// SetUnitProperties, until the next boot (runtime). systemd loads a slice that is not loaded.
  [[nodiscard]] Status set_properties(const std::string& unit,
                                      const std::vector<core::UnitProperty>& properties);
  /// StopUnit in mode "replace"; a unit that is not loaded is a normal answer.
  [[nodiscard]] Status stop(const std::string& unit);
  /// ResetFailedUnit; a unit that is not loaded is a normal answer.
  [[nodiscard]] Status reset_failed(const std::string& unit);
  /// ListUnitsByPatterns, e.g. "kubepods*.slice"; loaded units only.
  [[nodiscard]] Result<std::vector<ListedUnit>> list(const std::string& pattern);

  /// GetUnitByControlGroup: is the cgroup the unit's, or in it?
  [[nodiscard]] Result<bool> holds(const UnitPlace& place);

  /// set_properties() for some units and holds() for others in one round trip: all calls are made
  /// before the first answer is awaited. None is made where nothing is asked.
  [[nodiscard]] UnitAnswers set_and_find(const std::vector<UnitChange>& changes,
                                         const std::vector<UnitPlace>& places);

  /// How often answers were awaited so far, that to the bus's Hello included.
  [[nodiscard]] int round_trips() const;

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

/// Does systemd run this machine? sd_booted(3): /run/systemd/system is a directory.
[[nodiscard]] bool systemd_runs_here();

}  // namespace podqos::cgroup
