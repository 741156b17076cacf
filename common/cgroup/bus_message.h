#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dbus/dbus.h>

#include "common/base/error.h"
#include "common/cgroup/systemd.h"
#include "common/core/unit.h"

/// D-Bus messages to and from systemd's manager object (org.freedesktop.systemd1(5)). Pure: nothing
/// here does any I/O.
namespace podqos::cgroup {

/// Drops the reference that a Message owns.
struct UnrefMessage {
  void operator()(DBusMessage* message) const;
};
/// An owned D-Bus message; never null when returned in a Result.
using Message = std::unique_ptr<DBusMessage, UnrefMessage>;

/// StartTransientUnit in mode "replace", and SetUnitProperties with runtime=true.
///
/// libdbus aborts the process on a string that is not UTF-8, so all strings are validated first.
/// @return kInvalidArgument naming the unit or property that breaks a rule: a unit name has 1 to
/// 255 characters of the set in systemd.unit(5), a property name up to 64 letters and digits, a
/// string is UTF-8 without NUL of at most 4096 bytes, and there are at most 256 properties or array
/// elements. kIo when memory runs out.
[[nodiscard]] Result<Message> start_transient_call(const std::string& unit,
                                                   const std::vector<core::UnitProperty>& wanted);
/// SetUnitProperties with runtime=true: valid until the next boot. Validated as above.
[[nodiscard]] Result<Message> set_properties_call(const std::string& unit,
                                                  const std::vector<core::UnitProperty>& wanted);
/// StartUnit or StopUnit (`method`), in mode "replace".
[[nodiscard]] Result<Message> job_call(const char* method, const std::string& unit);
/// ResetFailedUnit.
[[nodiscard]] Result<Message> reset_failed_call(const std::string& unit);
/// ListUnitsByPatterns, for units in any state.
/// @param pattern  an fnmatch(3) pattern; validated like other strings
[[nodiscard]] Result<Message> list_call(const std::string& pattern);
/// GetUnitByControlGroup; the cgroup path is validated like other strings.
[[nodiscard]] Result<Message> find_call(const std::string& cgroup);
/// org.freedesktop.DBus.Hello, the mandatory first call on a message bus.
[[nodiscard]] Result<Message> hello_call();
/// org.freedesktop.DBus.Peer.Ping, flagged as expecting no reply.
[[nodiscard]] Result<Message> ping_call();

/// Parses the reply to list_call(), of signature a(ssssssouso). kIo for any other signature.
[[nodiscard]] Result<std::vector<ListedUnit>> parse_units(DBusMessage* reply);

/// Whether the reply to find_call() is the object path of `unit`. False for any other reply.
[[nodiscard]] bool names_unit(DBusMessage* reply, std::string_view unit);

}  // namespace podqos::cgroup
