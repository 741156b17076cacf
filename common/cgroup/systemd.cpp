#include "common/cgroup/systemd.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/text.h"
#include "common/cgroup/bus_message.h"
#include "common/core/cgroups/naming.h"
#include "common/sys/wake_up.h"

namespace podqos::cgroup {

namespace {

using std::chrono::milliseconds;

// Longer error messages of systemd are cut.
constexpr std::size_t kLongestWords = 512;
// A list of 10,000 units takes 3 MB. A peer that announces a larger message is disconnected.
constexpr long kLargestMessage = 16L * 1024 * 1024;
constexpr milliseconds kRestartPause{20};
/// A conflicting queued job is replaced rather than the new one refused.
constexpr const char* kReplace = "replace";

}  // namespace

/// A private connection to systemd's manager, without a main loop or threads, and the error
/// messages of its calls. Connects at the first call, and again after systemd has disconnected.
///
/// libdbus does not need any DBUS_* variable to find the socket, does not change SIGPIPE and does
/// not exit the process when the peer disconnects. It reads the environment in one case only: if a
/// server rejects EXTERNAL authentication and asks for a cookie, libdbus looks for it below HOME.
/// systemd and the system bus do not ask for one.
class Bus {
 public:
  explicit Bus(SystemdOptions options) : options_(std::move(options)) {
    // libdbus aborts the process on a failed check and, if the environment asks for it, on a
    // warning, for example about a keyring that a server made it read. Programs that call systemd
    // do not execute others, which would inherit this variable.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    static_cast<void>(::setenv("DBUS_FATAL_WARNINGS", "0", /*replace*/ 1));
  }

  /// Whether NoSuchUnit is an error for a call.
  enum class Unloaded : std::uint8_t { kFails, kIsFine };

  /// Makes a call. Signals received before its reply are discarded.
  /// @param what  its name for errors: "StopUnit kubepods.slice"
  /// @return the reply; null for a unit that is not loaded, if that is accepted. kTimeout after an
  ///         earlier call has timed out.
  [[nodiscard]] Result<Message> call(const std::string& what, Result<Message> message,
                                     Unloaded unloaded = Unloaded::kFails) {
    if (!message) return fail(std::move(message).error().with_context(what));
    PODQOS_TRY(start_clock(what));
    Reply reply = call_with_retry(message->get());
    // The wait may end slightly before the deadline.
    hangs_ = clock().now() + kRestartPause >= deadline_;
    if (reply) return std::move(*reply);
    if (unloaded == Unloaded::kIsFine && reply.error().name == kNoSuchUnit) return Message{};
    return fail(error_for(what, reply.error()));
  }

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

  /// A DBusError, which libdbus requires to be initialised and freed.
  struct ErrorSlot : DBusError {
    ErrorSlot() : DBusError{} { dbus_error_init(this); }
    ~ErrorSlot() { dbus_error_free(this); }
    ErrorSlot(const ErrorSlot&) = delete;
    ErrorSlot& operator=(const ErrorSlot&) = delete;
  };
  struct UnrefPendingCall {
    void operator()(DBusPendingCall* call) const { dbus_pending_call_unref(call); }
  };
  struct CloseConnection {
    void operator()(DBusConnection* connection) const {
      dbus_connection_close(connection);
      dbus_connection_unref(connection);
    }
  };

  static std::unexpected<Failure> failed(const char* name, std::string text) {
    return std::unexpected(Failure{.name = name, .text = std::move(text)});
  }
  static std::unexpected<Failure> out_of_memory() {
    return failed(DBUS_ERROR_NO_MEMORY, "out of memory");
  }
  static std::unexpected<Failure> no_reply() {
    return failed(DBUS_ERROR_NO_REPLY, "no reply before the deadline");
  }

  /// Sets the deadline of a call.
  Status start_clock(std::string_view what) {
    const auto now = clock().now();
    if (hangs_) {
      return fail(ErrorCode::kTimeout,
                  cat(what, ": not called, since an earlier call timed out after ",
                      options_.deadline.count(), " ms", kHangs));
    }
    if (now >= options_.end) {
      return fail(
          ErrorCode::kTimeout,
          cat(what, ": not called, since the deadline for the reply to the runtime has passed"));
    }
    deadline_ = std::min(now + options_.deadline, options_.end);
    return {};
  }

  /// Repeats a call whose connection was closed.
  Reply call_with_retry(DBusMessage* request) {
    Reply reply = attempt(request);
    // During daemon-reexec systemd disconnects all clients, and its socket is missing for a moment.
    // Whether it has received a call is unknown, so that a call may be made twice.
    const auto give_up = std::min(clock().now() + options_.restart, deadline_);
    while (has_left(reply) && clock().now() < give_up) {
      // A sent message keeps its connection's serial number.
      const Message copy{dbus_message_copy(request)};
      if (!copy) break;
      static_cast<void>(clock().poll({}, clock().now() + kRestartPause));
      Reply again = attempt(copy.get());
      // Still not running: the first error of the call tells more.
      const bool absent = !again && again.error().name == DBUS_ERROR_NO_SERVER;
      if (!absent && !has_left(again)) return again;
    }
    return reply;
  }

  /// Connects if necessary. A connection that was closed is dropped.
  Reply attempt(DBusMessage* request) {
    if (!connection_) {
      if (auto connected = connect(); !connected) return std::unexpected(connected.error());
    }
    Reply reply = exchange(request);
    // The bus may notice systemd's restart later than its own socket does.
    if (has_left(reply) || dbus_connection_get_is_connected(connection_.get()) == 0)
      connection_.reset();
    return reply;
  }

  Reply exchange(DBusMessage* request) {
    ++round_trips_;
    if (!in_time()) return no_reply();
    DBusPendingCall* sent = nullptr;
    if (dbus_connection_send_with_reply(connection_.get(), request, &sent, DBUS_TIMEOUT_INFINITE) ==
        0)
      return out_of_memory();
    const std::unique_ptr<DBusPendingCall, UnrefPendingCall> pending{sent};
    if (!pending) return lost();
    while (dbus_pending_call_get_completed(sent) == 0) {
      // For libdbus 0 means do not block, and INT_MAX no timeout.
      const auto left = std::chrono::ceil<milliseconds>(clock().time_until(deadline_)).count();
      if (left == 0) {
        dbus_pending_call_cancel(sent);
        return no_reply();
      }
      // Not dbus_connection_send_with_reply_and_block(): its timeout starts when the request has
      // been sent, and it waits forever for a server that does not finish the authentication.
      // Signals about units and jobs, which systemd broadcasts, are discarded here.
      const int most = static_cast<int>(std::min<milliseconds::rep>(left, INT_MAX - 1));
      const bool goes_on = dbus_connection_read_write_dispatch(connection_.get(), most) != 0;
      if (!goes_on && dbus_pending_call_get_completed(sent) == 0) return lost();
    }
    Message reply{dbus_pending_call_steal_reply(sent)};
    ErrorSlot error;
    if (dbus_set_error_from_message(&error, reply.get()) == 0) return reply;
    return failed(error.name, error.message);
  }

  /// Connects to the first address at which a server listens; DBUS_ERROR_NO_SERVER if none does.
  /// Authentication happens during the first call.
  OrFailure<void> connect() {
    std::string tried;
    for (const SystemdAddress& place : options_.addresses) {
      address_ = place.address;
      const auto opened = open(place.address);
      if (opened) {
        auto greeted = greet(place.peer);
        if (!greeted) connection_.reset();
        return greeted;
      }
      const auto& [name, text] = opened.error();
      if (name != DBUS_ERROR_FILE_NOT_FOUND && name != DBUS_ERROR_NO_SERVER) return opened;
      tried += cat(tried.empty() ? "" : "; ", text);
    }
    return failed(DBUS_ERROR_NO_SERVER, std::move(tried));
  }

  /// NoReply when the deadline has passed, also while the socket's backlog is full.
  OrFailure<void> open(const std::string& address) {
    const auto time = clock().time_until(deadline_);
    if (time == time.zero()) return no_reply();
    // libdbus sends with MSG_NOSIGNAL, but would still set SIGPIPE to ignored for the whole
    // process.
    dbus_connection_set_change_sigpipe(0);
    ErrorSlot error;
    {
      // libdbus connects without a timeout, and connect(2) blocks while the socket's backlog is
      // full: for example when PID 1 is frozen and 4096 clients have connected.
      const sys::WakeUp wake_up{std::chrono::ceil<std::chrono::microseconds>(time)};
      connection_.reset(dbus_connection_open_private(address.c_str(), &error));
    }
    if (!connection_) return in_time() ? failed(error.name, error.message) : no_reply();
    dbus_connection_set_exit_on_disconnect(connection_.get(), 0);
    dbus_connection_set_max_message_size(connection_.get(), kLargestMessage);
    // No reply carries file descriptors.
    dbus_connection_set_max_message_unix_fds(connection_.get(), 0);
    return {};
  }

  OrFailure<void> greet(Peer peer) {
    const bool is_bus = peer == Peer::kMessageBus;
    // A message bus has to be greeted. systemd's own socket is none, and knows no destination.
    const Message first{
        is_bus ? dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS,
                                              DBUS_INTERFACE_DBUS, "Hello")
               : dbus_message_new_method_call(nullptr, "/", DBUS_INTERFACE_PEER, "Ping")};
    if (!first) return out_of_memory();
    if (is_bus) {
      const auto reply = exchange(first.get());
      return reply ? OrFailure<void>{} : std::unexpected(reply.error());
    }
    dbus_message_set_no_reply(first.get(), 1);
    // systemd 252 to 257 reads the end of the authentication into a buffer of 256 bytes, and does
    // not process what else is in the buffer until more data arrives: a short call would get no
    // reply. After another message it does not fit into the buffer.
    if (dbus_connection_send(connection_.get(), first.get(), nullptr) == 0) return out_of_memory();
    return {};
  }

  /// Whether systemd has disconnected, so that no reply will arrive. A message bus reports this
  /// with errors of its own.
  [[nodiscard]] bool has_left(const Reply& reply) const {
    if (reply) return false;
    const std::string& name = reply.error().name;
    // Before the deadline, NoReply comes from the bus: its peer has gone.
    if (name == DBUS_ERROR_NO_REPLY) return in_time();
    return name == DBUS_ERROR_DISCONNECTED || name == DBUS_ERROR_SERVICE_UNKNOWN ||
           name == DBUS_ERROR_NAME_HAS_NO_OWNER;
  }

  /// The connection was lost; in which phase.
  [[nodiscard]] std::unexpected<Failure> lost() const {
    const bool is_known = dbus_connection_get_is_authenticated(connection_.get()) != 0;
    return failed(
        DBUS_ERROR_DISCONNECTED,
        cat("connection closed ", is_known ? "before the reply" : "during authentication"));
  }

  [[nodiscard]] Error error_for(std::string_view what, const Failure& failure) const {
    if (failure.name == DBUS_ERROR_NO_SERVER) {
      return Error{ErrorCode::kNotFound,
                   cat(what, ": cannot connect to systemd: ", failure.text, kUseCgroupfs)};
    }
    const auto [name, code, remedy] = meaning_of(failure.name);
    const std::string allowed = code == ErrorCode::kTimeout
                                    ? cat("; the timeout is ", options_.deadline.count(), " ms")
                                    : "";
    return Error{code, cat(what, " at ", address_, ": ", printable(failure.text, kLongestWords),
                           " (", printable(failure.name), ")", allowed, remedy)};
  }

  [[nodiscard]] const sys::Clock& clock() const { return *options_.clock; }
  [[nodiscard]] bool in_time() const { return clock().now() < deadline_; }

  SystemdOptions options_;
  sys::Clock::TimePoint deadline_;  ///< of the latest call
  bool hangs_ = false;              ///< a call has timed out
  std::unique_ptr<DBusConnection, CloseConnection> connection_;
  std::string address_;
  int round_trips_ = 0;
};

namespace {

/// Makes a call about a unit, with what comes after its name.
Status tell(Bus& bus, const char* method, const std::vector<Argument>& arguments,
            Bus::Unloaded unloaded = Bus::Unloaded::kFails) {
  const std::string& unit = std::get<std::string>(arguments.front());
  PODQOS_TRY(
      bus.call(cat(method, " ", printable(unit)), manager_call(method, arguments), unloaded));
  return {};
}

}  // namespace

Systemd::Systemd(SystemdOptions options) : bus_(std::make_unique<Bus>(std::move(options))) {}
Systemd::~Systemd() = default;
Systemd::Systemd(Systemd&&) noexcept = default;
Systemd& Systemd::operator=(Systemd&&) noexcept = default;

Status Systemd::start_transient(const std::string& unit,
                                const std::vector<core::UnitProperty>& properties) {
  return tell(*bus_, "StartTransientUnit", {unit, kReplace, properties, NoUnits{}});
}

Status Systemd::start(const std::string& unit) {
  return tell(*bus_, "StartUnit", {unit, kReplace});
}

Status Systemd::set_properties(const std::string& unit,
                               const std::vector<core::UnitProperty>& properties) {
  return tell(*bus_, "SetUnitProperties", {unit, /*runtime*/ true, properties});
}

Status Systemd::stop(const std::string& unit) {
  return tell(*bus_, "StopUnit", {unit, kReplace}, Bus::Unloaded::kIsFine);
}

Status Systemd::reset_failed(const std::string& unit) {
  return tell(*bus_, "ResetFailedUnit", {unit}, Bus::Unloaded::kIsFine);
}

Result<bool> Systemd::holds(const std::string& cgroup) {
  // "" for a unit that is not loaded.
  const auto object = [this](const char* method, std::string_view about,
                             const Argument& argument) -> Result<std::string> {
    PODQOS_ASSIGN(const auto reply,
                  bus_->call(cat(method, " ", printable(about)), manager_call(method, {argument}),
                             Bus::Unloaded::kIsFine));
    return reply ? parse_object_path(reply.get()) : std::string{};
  };
  PODQOS_ASSIGN(const auto holder, object("GetUnitByControlGroup", cgroup, cgroup));
  if (holder.empty()) return false;
  const std::string unit{core::unit_of(cgroup)};
  PODQOS_ASSIGN(const auto named, object("GetUnit", unit, unit));
  return holder == named;
}

Result<std::optional<UnitProperties>> Systemd::properties(const std::string& unit) {
  const std::string what = cat("GetAll ", printable(unit));
  PODQOS_ASSIGN(const auto reply, bus_->call(what, properties_call(unit), Bus::Unloaded::kIsFine));
  if (!reply) return std::nullopt;
  auto properties = parse_properties(reply.get());
  if (!properties) return fail(std::move(properties).error().with_context(what));
  return properties;
}

Result<std::vector<ListedUnit>> Systemd::list(const std::string& pattern) {
  using Texts = std::vector<std::string>;
  constexpr const char* kMethod = "ListUnitsByPatterns";
  const std::string what = cat(kMethod, " ", printable(pattern));
  // Those in any state.
  PODQOS_ASSIGN(const auto reply,
                bus_->call(what, manager_call(kMethod, {Texts{}, Texts{pattern}})));
  auto units = parse_units(reply.get());
  if (!units) return fail(std::move(units).error().with_context(what));
  return units;
}

int Systemd::round_trips() const {
  return bus_->round_trips();
}

}  // namespace podqos::cgroup
