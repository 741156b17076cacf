#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <dbus/dbus.h>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/cgroups/plan.h"

/// D-Bus messages to and from systemd's manager object (org.freedesktop.systemd1(5)). Pure: nothing
/// here does any I/O.
namespace podqos::cgroup {

/// Drops the reference that a Message owns.
struct UnrefMessage {
  void operator()(DBusMessage* message) const;
};
/// An owned D-Bus message; never null when returned in a Result.
using Message = std::unique_ptr<DBusMessage, UnrefMessage>;

/// Error of a unit that is not loaded.
constexpr std::string_view kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";
// Remedies that errors name.
constexpr std::string_view kUseCgroupfs =
    "; if systemd is not running, configure the engine to use the cgroupfs driver";
constexpr std::string_view kHangs =
    "; if systemd hangs, check `systemctl is-system-running` and the journal of PID 1";

/// The error code and the remedy for a D-Bus error name.
struct Meaning {
  std::string_view name;
  ErrorCode code;
  std::string_view remedy;
};
/// Of errors of systemd and of the bus that callers distinguish; all others are kIo.
[[nodiscard]] Meaning meaning_of(std::string_view name);

/// The auxiliary units of StartTransientUnit: none.
struct NoUnits {};
/// An argument of a call, of the D-Bus type b, s, as, a(sv) or a(sa(sv)).
using Argument = std::variant<bool, std::string, std::vector<std::string>,
                              std::vector<core::UnitProperty>, NoUnits>;

/// A call of systemd's manager.
///
/// libdbus aborts the process on a string that is not UTF-8, so all strings are validated first.
/// All other rules, such as for the names of units, are systemd's.
/// @return kInvalidArgument for a string that is not UTF-8 without NUL, naming its property if it
/// is in one; kIo when memory runs out.
[[nodiscard]] Result<Message> manager_call(const char* method,
                                           const std::vector<Argument>& arguments);
/// Parses the reply to ListUnitsByPatterns, of signature a(ssssssouso). kIo for any other one.
[[nodiscard]] Result<std::vector<ListedUnit>> parse_units(DBusMessage* reply);

/// A call for all properties of a unit, which need not be loaded.
/// @note org.freedesktop.DBus.Properties.GetAll; systemd's src/libsystemd/sd-bus/bus-objects.c:
///       without an interface those of all interfaces.
[[nodiscard]] Result<Message> properties_call(std::string_view unit);
/// Parses its reply, of signature a{sv}. nullopt for a unit that is not active, or will not be,
/// since a job for it is queued, and for a slice that is active without a definition of its own.
/// kIo for any other reply.
[[nodiscard]] Result<std::optional<UnitProperties>> parse_properties(DBusMessage* reply);

/// The object path of a reply that has nothing else; "" for any other one.
[[nodiscard]] std::string parse_object_path(DBusMessage* reply);

}  // namespace podqos::cgroup
