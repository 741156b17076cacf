#include "common/cgroup/bus_message.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/cgroup_values.h"

namespace podqos::cgroup {

namespace {

/// Names of systemd's manager object; org.freedesktop.systemd1(5).
constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManagerInterface = "org.freedesktop.systemd1.Manager";
constexpr std::string_view kUnitPath = "/org/freedesktop/systemd1/unit/";

constexpr std::string_view kMayNot = "; run as root, or allow the call in the bus policy";
constexpr std::string_view kMasked = "; `systemctl unmask` it unless it was masked deliberately";

constexpr std::array kMeanings{
    Meaning{"org.freedesktop.systemd1.UnitExists", ErrorCode::kAlreadyExists, ""},
    Meaning{kNoSuchUnit, ErrorCode::kNotFound, ""},
    Meaning{"org.freedesktop.systemd1.UnitMasked", ErrorCode::kConflict, kMasked},
    Meaning{DBUS_ERROR_ACCESS_DENIED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_AUTH_FAILED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, ErrorCode::kPermission, kMayNot},
    Meaning{DBUS_ERROR_NO_REPLY, ErrorCode::kTimeout, kHangs},
    Meaning{DBUS_ERROR_TIMEOUT, ErrorCode::kTimeout, kHangs},
    // systemd's error for an unknown property.
    Meaning{DBUS_ERROR_PROPERTY_READ_ONLY, ErrorCode::kUnsupported, ""},
    // From a message bus if systemd is not running and cannot be started by it.
    Meaning{DBUS_ERROR_SERVICE_UNKNOWN, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_NAME_HAS_NO_OWNER, ErrorCode::kNotFound, kUseCgroupfs},
    Meaning{DBUS_ERROR_SPAWN_CHILD_EXITED, ErrorCode::kNotFound, kUseCgroupfs},
};

/// The D-Bus signature of an array's element or a variant's value.
template <class T>
constexpr const char* kSignature = nullptr;
template <>
constexpr const char* kSignature<bool> = "b";
template <>
constexpr const char* kSignature<std::uint32_t> = "u";
template <>
constexpr const char* kSignature<std::uint64_t> = "t";
template <>
constexpr const char* kSignature<std::string> = "s";
template <>
constexpr const char* kSignature<std::vector<std::string>> = "as";
template <>
constexpr const char* kSignature<std::vector<std::uint32_t>> = "au";
template <>
constexpr const char* kSignature<core::UnitProperty> = "(sv)";

/// Appends arguments to a message, after a look at them: libdbus aborts the process on a string
/// that is not UTF-8. After the first failure nothing more is appended.
class Writer {
 public:
  explicit Writer(DBusMessage* message) { dbus_message_iter_init_append(message, &place_); }

  // `what` names the argument in errors.

  void append(std::string_view /*what*/, bool value) {
    const dbus_bool_t number = value ? 1 : 0;
    basic(DBUS_TYPE_BOOLEAN, &number);
  }
  void append(std::string_view /*what*/, std::uint32_t value) { basic(DBUS_TYPE_UINT32, &value); }
  void append(std::string_view /*what*/, std::uint64_t value) { basic(DBUS_TYPE_UINT64, &value); }
  void append(std::string_view what, const std::string& text) {
    if (text.contains('\0') || dbus_validate_utf8(text.c_str(), nullptr) == 0)
      return refuse(cat(what, ": \"", printable(text), "\" is not UTF-8 text"));
    const char* start = text.c_str();
    basic(DBUS_TYPE_STRING, static_cast<const void*>(&start));
  }
  void append(std::string_view /*what*/, NoUnits /*none*/) {
    container(DBUS_TYPE_ARRAY, "(sa(sv))", [](Writer&) {});
  }
  template <class T>
  void append(std::string_view what, const std::vector<T>& values) {
    container(DBUS_TYPE_ARRAY, kSignature<T>, [&](Writer& array) {
      for (const T& value : values)
        array.append(what, value);
    });
  }
  /// As systemd's API expects it: a struct (sv).
  void append(std::string_view /*what*/, const core::UnitProperty& property) {
    container(DBUS_TYPE_STRUCT, nullptr, [&](Writer& pair) {
      pair.append("property", property.name);
      std::visit([&](const auto& value) { pair.variant(property.name, value); }, property.value);
    });
  }

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Writer() = default;

  void refuse(std::string message) {
    status_ = fail(ErrorCode::kInvalidArgument, std::move(message));
  }
  void expect(dbus_bool_t done) {
    if (done == 0) status_ = fail(ErrorCode::kIo, "out of memory");
  }

  void basic(int type, const void* value) {
    if (status_) expect(dbus_message_iter_append_basic(&place_, type, value));
  }

  template <class T>
  void variant(std::string_view what, const T& value) {
    container(DBUS_TYPE_VARIANT, kSignature<T>, [&](Writer& inner) { inner.append(what, value); });
  }

  /// Appends a container and lets `fill` append its contents.
  /// @param contents  signature of an array's element or a variant's value; null for a struct
  template <class Fill>
  void container(int type, const char* contents, Fill fill) {
    Writer inner;
    if (status_) expect(dbus_message_iter_open_container(&place_, type, contents, &inner.place_));
    if (!status_) return;
    fill(inner);
    if (inner.status_) return expect(dbus_message_iter_close_container(&place_, &inner.place_));
    dbus_message_iter_abandon_container(&place_, &inner.place_);
    status_ = std::move(inner.status_);
  }

  DBusMessageIter place_{};
  Status status_;
};

/// Reads a string and advances; the reply's signature must have been checked.
const char* read_text(DBusMessageIter& place) {
  const char* text = nullptr;
  dbus_message_iter_get_basic(&place, static_cast<void*>(&text));
  dbus_message_iter_next(&place);
  return text;
}

/// The elements of a reply that is one array, of this signature.
Result<DBusMessageIter> array_in(DBusMessage* reply, const char* signature) {
  if (dbus_message_has_signature(reply, signature) == 0) {
    return fail(ErrorCode::kIo,
                cat("unexpected reply of type \"", dbus_message_get_signature(reply), "\""));
  }
  DBusMessageIter place{};
  DBusMessageIter array{};
  dbus_message_iter_init(reply, &place);
  dbus_message_iter_recurse(&place, &array);
  return array;
}

template <class T>
T read_number(DBusMessageIter& place) {
  T number{};
  dbus_message_iter_get_basic(&place, &number);
  return number;
}

/// nullopt for a value of another type.
std::optional<core::UnitValue> read_value(DBusMessageIter& place) {
  switch (dbus_message_iter_get_arg_type(&place)) {
    case DBUS_TYPE_BOOLEAN: return read_number<dbus_bool_t>(place) != 0;
    case DBUS_TYPE_UINT32: return read_number<std::uint32_t>(place);
    case DBUS_TYPE_UINT64: return read_number<std::uint64_t>(place);
    case DBUS_TYPE_STRING: return std::string{read_text(place)};
    default: return std::nullopt;
  }
}

/// Whether a property Job, of type (uo), names no job, which has the number 0.
bool is_no_job(DBusMessageIter& value) {
  if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_STRUCT) return false;
  DBusMessageIter fields{};
  dbus_message_iter_recurse(&value, &fields);
  return dbus_message_iter_get_arg_type(&fields) == DBUS_TYPE_UINT32 &&
         read_number<std::uint32_t>(fields) == 0;
}

/// Whether a unit is active and has a definition, by StartTransientUnit or a file. A slice without
/// one is active while something is in it; podqos still has to start that.
/// @note systemd's src/core/unit.c unit_is_pristine().
bool is_defined_and_active(const UnitProperties& properties) {
  const auto is = [&](std::string_view name, const core::UnitValue& value) {
    const auto found = properties.find(name);
    return found != properties.end() && found->second == value;
  };
  const bool has_file = properties.contains("FragmentPath") && !is("FragmentPath", std::string{});
  return is("ActiveState", std::string{"active"}) && (is("Transient", true) || has_file);
}

/// The object of a unit: all but letters and digits are escaped, and a digit at the beginning.
/// @note systemd's src/libsystemd/sd-bus/sd-bus.h sd_bus_path_encode().
std::string object_of(std::string_view unit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string path{kUnitPath};
  for (std::size_t at = 0; at < unit.size(); ++at) {
    const char c = unit[at];
    const bool is_digit = c >= '0' && c <= '9';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (is_digit && at > 0)) {
      path += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    path += {'_', kHex[byte / kHex.size()], kHex[byte % kHex.size()]};
  }
  return path;
}

}  // namespace

void UnrefMessage::operator()(DBusMessage* message) const {
  dbus_message_unref(message);
}

Meaning meaning_of(std::string_view name) {
  const auto* known = std::ranges::find(kMeanings, name, &Meaning::name);
  return known == kMeanings.end() ? Meaning{name, ErrorCode::kIo, ""} : *known;
}

Result<Message> manager_call(const char* method, const std::vector<Argument>& arguments) {
  Message call{dbus_message_new_method_call(kSystemd, kManagerPath, kManagerInterface, method)};
  if (!call) return fail(ErrorCode::kIo, "out of memory");
  Writer out{call.get()};
  for (const Argument& argument : arguments)
    std::visit([&](const auto& value) { out.append("argument", value); }, argument);
  PODQOS_TRY(out.status());
  return call;
}

Result<Message> properties_call(std::string_view unit) {
  Message call{dbus_message_new_method_call(kSystemd, object_of(unit).c_str(),
                                            DBUS_INTERFACE_PROPERTIES, "GetAll")};
  if (!call) return fail(ErrorCode::kIo, "out of memory");
  Writer out{call.get()};
  out.append("interface", std::string{});
  PODQOS_TRY(out.status());
  return call;
}

Result<std::optional<UnitProperties>> parse_properties(DBusMessage* reply) {
  PODQOS_ASSIGN(auto array, array_in(reply, "a{sv}"));
  UnitProperties properties;
  for (; dbus_message_iter_get_arg_type(&array) == DBUS_TYPE_DICT_ENTRY;
       dbus_message_iter_next(&array)) {
    DBusMessageIter entry{};
    DBusMessageIter value{};
    dbus_message_iter_recurse(&array, &entry);
    const std::string name{read_text(entry)};
    dbus_message_iter_recurse(&entry, &value);
    if (name == "Job" && !is_no_job(value)) return std::nullopt;
    auto read = read_value(value);
    // The default of a period that is not set; systemd.resource-control(5), CPUQuotaPeriodSec=.
    if (name == "CPUQuotaPeriodUSec" && read == core::UnitValue{core::kUnitInfinity})
      read = static_cast<std::uint64_t>(core::kDefaultPeriod.value());
    if (read) properties.insert_or_assign(name, *std::move(read));
  }
  if (!is_defined_and_active(properties)) return std::nullopt;
  return properties;
}

std::string parse_object_path(DBusMessage* reply) {
  if (dbus_message_has_signature(reply, "o") == 0) return {};
  DBusMessageIter place{};
  dbus_message_iter_init(reply, &place);
  return read_text(place);
}

Result<std::vector<ListedUnit>> parse_units(DBusMessage* reply) {
  PODQOS_ASSIGN(auto array, array_in(reply, "a(ssssssouso)"));
  std::vector<ListedUnit> units;
  for (; dbus_message_iter_get_arg_type(&array) == DBUS_TYPE_STRUCT;
       dbus_message_iter_next(&array)) {
    DBusMessageIter fields{};
    dbus_message_iter_recurse(&array, &fields);
    ListedUnit unit;
    unit.name = read_text(fields);
    // Order of the fields: name, description, load state, active state; the other six are not used.
    static_cast<void>(read_text(fields));  // description
    static_cast<void>(read_text(fields));  // load state
    unit.active_state = read_text(fields);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace podqos::cgroup
