#include "common/cgroup/bus_message.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

/// Names of systemd's manager object; org.freedesktop.systemd1(5).
constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManagerInterface = "org.freedesktop.systemd1.Manager";
/// A conflicting queued job is replaced rather than the new one refused.
constexpr std::string_view kJobMode = "replace";

constexpr std::size_t kLongestUnit = 255;  // UNIT_NAME_MAX of systemd, which includes the NUL
// Bounds of podqos's own, well above what its plans contain.
constexpr std::size_t kLongestPropertyName = 64;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostElements = 256;

/// Strings of D-Bus are UTF-8 without NUL; libdbus aborts the process on any other.
Status check_text(std::string_view what, const std::string& text) {
  if (text.size() > kLongestText) {
    return fail(ErrorCode::kInvalidArgument,
                cat(what, ": ", text.size(), " bytes, at most ", kLongestText));
  }
  if (text.find('\0') != std::string::npos || dbus_validate_utf8(text.c_str(), nullptr) == 0) {
    return fail(ErrorCode::kInvalidArgument,
                cat(what, ": \"", printable(text), "\" is not UTF-8 text"));
  }
  return {};
}

/// @note systemd.unit(5), "Description": the characters of a unit name.
Status check_unit(const std::string& unit) {
  const bool plain = std::ranges::all_of(unit, [](char c) {
    return is_alphanumeric(c) || std::string_view{":-_.\\@"}.find(c) != std::string_view::npos;
  });
  if (!unit.empty() && unit.size() <= kLongestUnit && plain) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat("\"", printable(unit), "\" is not a systemd unit name: expected 1 to ",
                  kLongestUnit, " letters, digits and :-_.\\@"));
}

Status check_count(std::string_view what, std::size_t count) {
  if (count <= kMostElements) return {};
  return fail(ErrorCode::kInvalidArgument,
              cat(what, ": ", count, " elements, at most ", kMostElements));
}

Status check_value(const std::string& name, const core::UnitValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return check_text(name, *text);
  if (const auto* numbers = std::get_if<std::vector<std::uint32_t>>(&value)) {
    return check_count(name, numbers->size());
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    PODQOS_TRY(check_count(name, texts->size()));
    for (const std::string& text : *texts) {
      PODQOS_TRY(check_text(name, text));
    }
  }
  return {};
}

Status check(const std::string& unit, const std::vector<core::UnitProperty>& properties) {
  PODQOS_TRY(check_unit(unit));
  PODQOS_TRY(check_count("properties", properties.size()));
  for (const auto& [name, value] : properties) {
    if (name.empty() || name.size() > kLongestPropertyName ||
        !std::ranges::all_of(name, is_alphanumeric)) {
      return fail(ErrorCode::kInvalidArgument,
                  cat("\"", printable(name),
                      "\" is not a unit property name: expected letters and digits"));
    }
    PODQOS_TRY(check_value(name, value));
  }
  return {};
}

/// Appends arguments to a message. The only possible failure is lack of memory, after which nothing
/// more is appended.
class Writer {
 public:
  explicit Writer(DBusMessage* message) { dbus_message_iter_init_append(message, &place_); }

  void boolean(bool value) {
    const dbus_bool_t number = value ? 1 : 0;
    basic(DBUS_TYPE_BOOLEAN, &number);
  }
  void number(std::uint64_t value) { basic(DBUS_TYPE_UINT64, &value); }
  void text(const std::string& value) {
    const char* start = value.c_str();
    basic(DBUS_TYPE_STRING, static_cast<const void*>(&start));
  }

  /// Appends a container and lets `fill` append its contents.
  /// @param contents  signature of an array's element or a variant's value; null for a struct
  template <class Fill>
  void container(int type, const char* contents, Fill fill) {
    Writer inner;
    if (!complete_ ||
        dbus_message_iter_open_container(&place_, type, contents, &inner.place_) == 0) {
      complete_ = false;
      return;
    }
    fill(inner);
    if (!inner.complete_) {
      dbus_message_iter_abandon_container(&place_, &inner.place_);
      complete_ = false;
      return;
    }
    complete_ = dbus_message_iter_close_container(&place_, &inner.place_) != 0;
  }

  void texts(const std::vector<std::string>& values) {
    container(DBUS_TYPE_ARRAY, "s", [&](Writer& array) {
      for (const std::string& value : values)
        array.text(value);
    });
  }
  void numbers(const std::vector<std::uint32_t>& values) {
    container(DBUS_TYPE_ARRAY, "u", [&](Writer& array) {
      for (const std::uint32_t value : values)
        array.basic(DBUS_TYPE_UINT32, &value);
    });
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  Writer() = default;

  void basic(int type, const void* value) {
    complete_ = complete_ && dbus_message_iter_append_basic(&place_, type, value) != 0;
  }

  DBusMessageIter place_{};
  /// False once memory has run out.
  bool complete_ = true;
};

/// Writes a property's value as a variant.
struct WriteValue {
  Writer& out;

  void operator()(bool flag) const {
    out.container(DBUS_TYPE_VARIANT, "b", [&](Writer& variant) { variant.boolean(flag); });
  }
  void operator()(std::uint64_t number) const {
    out.container(DBUS_TYPE_VARIANT, "t", [&](Writer& variant) { variant.number(number); });
  }
  void operator()(const std::string& text) const {
    out.container(DBUS_TYPE_VARIANT, "s", [&](Writer& variant) { variant.text(text); });
  }
  void operator()(const std::vector<std::string>& texts) const {
    out.container(DBUS_TYPE_VARIANT, "as", [&](Writer& variant) { variant.texts(texts); });
  }
  void operator()(const std::vector<std::uint32_t>& numbers) const {
    out.container(DBUS_TYPE_VARIANT, "au", [&](Writer& variant) { variant.numbers(numbers); });
  }
};

/// A property as systemd's API expects it: a struct (sv).
void write_property(Writer& array, const core::UnitProperty& property) {
  array.container(DBUS_TYPE_STRUCT, nullptr, [&](Writer& pair) {
    pair.text(property.name);
    std::visit(WriteValue{pair}, property.value);
  });
}

void write_properties(Writer& out, const std::vector<core::UnitProperty>& properties) {
  out.container(DBUS_TYPE_ARRAY, "(sv)", [&](Writer& array) {
    for (const core::UnitProperty& property : properties)
      write_property(array, property);
  });
}

/// A method call to the manager with the arguments that `fill` appends.
template <class Fill>
Result<Message> make_call(const char* method, Fill fill) {
  Message call{dbus_message_new_method_call(kSystemd, kManagerPath, kManagerInterface, method)};
  if (!call) return fail(ErrorCode::kIo, cat(method, ": out of memory"));
  Writer arguments{call.get()};
  fill(arguments);
  if (!arguments.complete()) return fail(ErrorCode::kIo, cat(method, ": out of memory"));
  return call;
}

/// The D-Bus object path of a unit.
/// @note systemd's bus_label_escape(): every byte but letters and digits, and a leading digit,
/// becomes "_" and two hexadecimal digits ("_2d").
std::string object_of(std::string_view unit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string path = "/org/freedesktop/systemd1/unit/";
  for (const char& c : unit) {
    const bool leading_digit = &c == unit.data() && is_digit(c);
    if (is_alphanumeric(c) && !leading_digit) {
      path += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    path += '_';
    path += kHex[byte >> 4U];
    path += kHex[byte & 0xfU];
  }
  return path;
}

/// Reads a string and advances; the reply's signature must have been checked.
const char* read_text(DBusMessageIter& place) {
  const char* text = nullptr;
  dbus_message_iter_get_basic(&place, static_cast<void*>(&text));
  dbus_message_iter_next(&place);
  return text;
}

}  // namespace

void UnrefMessage::operator()(DBusMessage* message) const {
  dbus_message_unref(message);
}

Result<Message> start_transient_call(const std::string& unit,
                                     const std::vector<core::UnitProperty>& wanted) {
  PODQOS_TRY(check(unit, wanted));
  return make_call("StartTransientUnit", [&](Writer& out) {
    out.text(unit);
    out.text(std::string{kJobMode});
    write_properties(out, wanted);
    // No auxiliary units.
    out.container(DBUS_TYPE_ARRAY, "(sa(sv))", [](Writer&) {});
  });
}

Result<Message> set_properties_call(const std::string& unit,
                                    const std::vector<core::UnitProperty>& wanted) {
  PODQOS_TRY(check(unit, wanted));
  return make_call("SetUnitProperties", [&](Writer& out) {
    out.text(unit);
    out.boolean(/*runtime*/ true);
    write_properties(out, wanted);
  });
}

Result<Message> job_call(const char* method, const std::string& unit) {
  PODQOS_TRY(check_unit(unit));
  return make_call(method, [&](Writer& out) {
    out.text(unit);
    out.text(std::string{kJobMode});
  });
}

Result<Message> reset_failed_call(const std::string& unit) {
  PODQOS_TRY(check_unit(unit));
  return make_call("ResetFailedUnit", [&](Writer& out) { out.text(unit); });
}

Result<Message> list_call(const std::string& pattern) {
  PODQOS_TRY(check_text("pattern", pattern));
  return make_call("ListUnitsByPatterns", [&](Writer& out) {
    out.texts({});  // in any state
    out.texts({pattern});
  });
}

Result<Message> find_call(const std::string& cgroup) {
  PODQOS_TRY(check_text("cgroup", cgroup));
  return make_call("GetUnitByControlGroup", [&](Writer& out) { out.text(cgroup); });
}

bool names_unit(DBusMessage* reply, std::string_view unit) {
  if (dbus_message_has_signature(reply, "o") == 0) return false;
  DBusMessageIter place{};
  dbus_message_iter_init(reply, &place);
  return std::string_view{read_text(place)} == object_of(unit);
}

Result<Message> hello_call() {
  Message call{dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS,
                                            "Hello")};
  if (!call) return fail(ErrorCode::kIo, "Hello: out of memory");
  return call;
}

Result<Message> ping_call() {
  // Without a destination: systemd's private socket is not a message bus.
  Message call{dbus_message_new_method_call(nullptr, "/", DBUS_INTERFACE_PEER, "Ping")};
  if (!call) return fail(ErrorCode::kIo, "Ping: out of memory");
  dbus_message_set_no_reply(call.get(), 1);
  return call;
}

Result<std::vector<ListedUnit>> parse_units(DBusMessage* reply) {
  if (dbus_message_has_signature(reply, "a(ssssssouso)") == 0) {
    return fail(ErrorCode::kIo,
                cat("unexpected reply of type \"", dbus_message_get_signature(reply), "\""));
  }
  DBusMessageIter place{};
  DBusMessageIter array{};
  dbus_message_iter_init(reply, &place);
  dbus_message_iter_recurse(&place, &array);
  std::vector<ListedUnit> units;
  for (; dbus_message_iter_get_arg_type(&array) == DBUS_TYPE_STRUCT;
       dbus_message_iter_next(&array)) {
    DBusMessageIter fields{};
    dbus_message_iter_recurse(&array, &fields);
    ListedUnit unit;
    unit.name = read_text(fields);
    // Order of the fields: name, description, load state, active state; the other six are not used.
    static_cast<void>(read_text(fields));  // description
    unit.load_state = read_text(fields);
    unit.active_state = read_text(fields);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace podqos::cgroup
