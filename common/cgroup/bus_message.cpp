#include "common/cgroup/bus_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

/// Names of systemd's manager object; org.freedesktop.systemd1(5).
constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManagerInterface = "org.freedesktop.systemd1.Manager";

constexpr std::size_t kLongestUnit = 255;  // UNIT_NAME_MAX of systemd, which includes the NUL
// Bounds of podqos's own, well above what its plans contain.
constexpr std::size_t kLongestPropertyName = 64;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostElements = 256;

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

/// Checks the arguments of a call. `what` names one in errors.
struct Check {
  /// Flags and numbers.
  template <class T>
  Status operator()(std::string_view /*what*/, const T& /*value*/) const {
    return {};
  }

  /// Strings of D-Bus are UTF-8 without NUL; libdbus aborts the process on any other.
  Status operator()(std::string_view what, const std::string& text) const {
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
  Status operator()(std::string_view /*what*/, const UnitName& unit) const {
    const bool plain = std::ranges::all_of(unit.text, [](char c) {
      return is_alphanumeric(c) || std::string_view{":-_.\\@"}.contains(c);
    });
    if (plain && !unit.text.empty() && unit.text.size() <= kLongestUnit) return {};
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(unit.text), "\" is not a systemd unit name: expected 1 to ",
                    kLongestUnit, " letters, digits and :-_.\\@"));
  }

  Status operator()(std::string_view /*what*/, const core::UnitProperty& property) const {
    const std::string& name = property.name;
    if (name.empty() || name.size() > kLongestPropertyName ||
        !std::ranges::all_of(name, is_alphanumeric)) {
      return fail(ErrorCode::kInvalidArgument,
                  cat("\"", printable(name),
                      "\" is not a unit property name: expected letters and digits"));
    }
    return std::visit([&](const auto& value) { return (*this)(name, value); }, property.value);
  }

  template <class T>
  Status operator()(std::string_view what, const std::vector<T>& values) const {
    if (values.size() > kMostElements) {
      return fail(ErrorCode::kInvalidArgument,
                  cat(what, ": ", values.size(), " elements, at most ", kMostElements));
    }
    for (const T& value : values)
      PODQOS_TRY((*this)(what, value));
    return {};
  }
};

/// Appends arguments to a message. The only possible failure is lack of memory, after which nothing
/// more is appended.
class Writer {
 public:
  explicit Writer(DBusMessage* message) { dbus_message_iter_init_append(message, &place_); }

  void append(bool value) {
    const dbus_bool_t number = value ? 1 : 0;
    basic(DBUS_TYPE_BOOLEAN, &number);
  }
  void append(std::uint32_t value) { basic(DBUS_TYPE_UINT32, &value); }
  void append(std::uint64_t value) { basic(DBUS_TYPE_UINT64, &value); }
  void append(const std::string& value) {
    const char* start = value.c_str();
    basic(DBUS_TYPE_STRING, static_cast<const void*>(&start));
  }
  void append(const UnitName& unit) { append(unit.text); }
  void append(NoUnits /*none*/) {
    container(DBUS_TYPE_ARRAY, "(sa(sv))", [](Writer&) {});
  }
  template <class T>
  void append(const std::vector<T>& values) {
    container(DBUS_TYPE_ARRAY, kSignature<T>, [&](Writer& array) {
      for (const T& value : values)
        array.append(value);
    });
  }
  /// As systemd's API expects it: a struct (sv).
  void append(const core::UnitProperty& property) {
    container(DBUS_TYPE_STRUCT, nullptr, [&](Writer& pair) {
      pair.append(property.name);
      std::visit([&](const auto& value) { pair.variant(value); }, property.value);
    });
  }

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  Writer() = default;

  void basic(int type, const void* value) {
    complete_ = complete_ && dbus_message_iter_append_basic(&place_, type, value) != 0;
  }

  template <class T>
  void variant(const T& value) {
    container(DBUS_TYPE_VARIANT, kSignature<T>, [&](Writer& inner) { inner.append(value); });
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

  DBusMessageIter place_{};
  /// False once memory has run out.
  bool complete_ = true;
};

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

Result<Message> manager_call(const char* method, const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    const bool lists_properties = std::holds_alternative<std::vector<core::UnitProperty>>(argument);
    const std::string_view what = lists_properties ? "properties" : "argument";
    PODQOS_TRY(std::visit([&](const auto& value) { return Check{}(what, value); }, argument));
  }
  Message call{dbus_message_new_method_call(kSystemd, kManagerPath, kManagerInterface, method)};
  if (!call) return fail(ErrorCode::kIo, cat(method, ": out of memory"));
  Writer out{call.get()};
  for (const Argument& argument : arguments)
    std::visit([&](const auto& value) { out.append(value); }, argument);
  if (!out.complete()) return fail(ErrorCode::kIo, cat(method, ": out of memory"));
  return call;
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

bool names_unit(DBusMessage* reply, std::string_view unit) {
  if (dbus_message_has_signature(reply, "o") == 0) return false;
  DBusMessageIter place{};
  dbus_message_iter_init(reply, &place);
  return std::string_view{read_text(place)} == object_of(unit);
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
