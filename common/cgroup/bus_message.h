#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dbus/dbus.h>

#include "common/base/error.h"
#include "common/cgroup/systemd.h"
#include "common/core/unit.h"

/// What is said to systemd's manager and what it answers, as D-Bus messages. Nothing here touches
/// the machine.
namespace podqos::cgroup {

struct UnrefMessage {
  void operator()(DBusMessage* message) const;
};
using Message = std::unique_ptr<DBusMessage, UnrefMessage>;

/// libdbus ends the process when it is given a text that is no UTF-8, so all texts of a call are
/// looked at first. kInvalidArgument names the unit or property that breaks a rule: a unit has 1 to
/// 255 bytes of the alphabet of systemd.unit(5), a property's name is letters and digits, texts are
/// UTF-8 without NUL up to 4096 bytes, and there are at most 256 properties or elements.
[[nodiscard]] Result<Message> start_transient_call(const std::string& unit,
                                                   const std::vector<core::UnitProperty>& wanted);
[[nodiscard]] Result<Message> set_properties_call(const std::string& unit,
                                                  const std::vector<core::UnitProperty>& wanted);
/// StartUnit and StopUnit, in mode "replace".
[[nodiscard]] Result<Message> job_call(const char* method, const std::string& unit);
[[nodiscard]] Result<Message> reset_failed_call(const std::string& unit);
/// @param pattern  of fnmatch(3), with the rules for a text.
[[nodiscard]] Result<Message> list_call(const std::string& pattern);
/// GetUnitByControlGroup, with the rules for a text.
[[nodiscard]] Result<Message> find_call(const std::string& cgroup);
/// What a message bus wants to hear first.
[[nodiscard]] Result<Message> hello_call();
/// Wants no answer.
[[nodiscard]] Result<Message> ping_call();

/// The reply to list_call(): a(ssssssouso). kIo for any other.
[[nodiscard]] Result<std::vector<ListedUnit>> parse_units(DBusMessage* reply);

/// The reply to find_call(): is it the object of this unit?
[[nodiscard]] bool names_unit(DBusMessage* reply, std::string_view unit);

}  // namespace podqos::cgroup
