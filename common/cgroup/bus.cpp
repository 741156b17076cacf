#include "common/cgroup/bus.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <utility>

#include "common/base/text.h"
#include "common/sys/wake_up.h"

namespace podqos::cgroup {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";
constexpr std::string_view kUseCgroupfs =
    "; if systemd is not running, configure the engine to use the cgroupfs driver";
constexpr std::string_view kMayNot = "; run as root, or allow the call in the bus policy";
constexpr std::string_view kMasked = "; `systemctl unmask` it unless it was masked deliberately";
constexpr std::string_view kHangs =
    "; if systemd hangs, check `systemctl is-system-running` and the journal of PID 1";
// Longer error messages of systemd are cut.
constexpr std::size_t kLongestWords = 512;
// A list of 10,000 units takes 3 MB. A peer that announces a larger message is disconnected.
constexpr long kLargestMessage = 16L * 1024 * 1024;
constexpr milliseconds kRestartPause{20};

/// The error code and the remedy for a D-Bus error name.
struct Meaning {
  std::string_view name;
  ErrorCode code;
  std::string_view remedy;
};

// Errors of systemd and of the bus that callers distinguish; all others are kIo.
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

Meaning meaning_of(std::string_view name) {
  const auto* known = std::ranges::find(kMeanings, name, &Meaning::name);
  return known == kMeanings.end() ? Meaning{name, ErrorCode::kIo, ""} : *known;
}

struct UnrefPendingCall {
  void operator()(DBusPendingCall* call) const { dbus_pending_call_unref(call); }
};
using PendingCall = std::unique_ptr<DBusPendingCall, UnrefPendingCall>;

}  // namespace

class Bus::ErrorSlot {
 public:
  ErrorSlot() { dbus_error_init(&error_); }
  ~ErrorSlot() { dbus_error_free(&error_); }
  ErrorSlot(const ErrorSlot&) = delete;
  ErrorSlot& operator=(const ErrorSlot&) = delete;

  DBusError* get() { return &error_; }
  [[nodiscard]] std::unexpected<Failure> failure() const {
    return std::unexpected(Failure{.name = error_.name, .text = error_.message});
  }

  static std::unexpected<Failure> out_of_memory() {
    return std::unexpected(Failure{.name = DBUS_ERROR_NO_MEMORY, .text = "out of memory"});
  }
  static std::unexpected<Failure> no_reply() {
    return std::unexpected(
        Failure{.name = DBUS_ERROR_NO_REPLY, .text = "no reply before the deadline"});
  }

 private:
  DBusError error_{};
};

void Bus::CloseConnection::operator()(DBusConnection* connection) const {
  dbus_connection_close(connection);
  dbus_connection_unref(connection);
}

Bus::Bus(SystemdOptions options) : options_(std::move(options)) {
  // libdbus aborts the process on a failed check and, if the environment asks for it, on a warning,
  // for example about a keyring that a server made it read. Programs that call systemd do not
  // execute others, which would inherit this variable.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  static_cast<void>(::setenv("DBUS_FATAL_WARNINGS", "0", /*replace*/ 1));
}

Result<Message> Bus::call(const std::string& what, Result<Message> message, Unloaded unloaded) {
  if (!message) return fail(std::move(message).error().with_context(what));
  PODQOS_TRY(start_clock(what));
  Reply reply = call_with_retry(message->get());
  // The wait may end slightly before the deadline.
  hangs_ = clock().now() + kRestartPause >= deadline_;
  if (reply) return std::move(*reply);
  if (unloaded == Unloaded::kIsFine && reply.error().name == kNoSuchUnit) return Message{};
  return fail(error_for(what, reply.error()));
}

Status Bus::start_clock(std::string_view what) {
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

Bus::Reply Bus::call_with_retry(DBusMessage* request) {
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

Bus::Reply Bus::attempt(DBusMessage* request) {
  if (!connection_) {
    if (auto connected = connect(); !connected) return std::unexpected(connected.error());
  }
  Reply reply = exchange(request);
  // The bus may notice systemd's restart later than its own socket does.
  if (has_left(reply) || dbus_connection_get_is_connected(connection_.get()) == 0)
    connection_.reset();
  return reply;
}

Bus::Reply Bus::exchange(DBusMessage* request) {
  ++round_trips_;
  if (!in_time()) return ErrorSlot::no_reply();
  DBusPendingCall* sent = nullptr;
  if (dbus_connection_send_with_reply(connection_.get(), request, &sent, DBUS_TIMEOUT_INFINITE) ==
      0)
    return ErrorSlot::out_of_memory();
  const PendingCall pending{sent};
  return pending ? answer_to(pending.get()) : lost();
}

Bus::Reply Bus::answer_to(DBusPendingCall* pending) {
  while (dbus_pending_call_get_completed(pending) == 0) {
    // For libdbus 0 means do not block, and INT_MAX no timeout.
    const auto left = std::chrono::ceil<milliseconds>(clock().time_until(deadline_)).count();
    if (left == 0) {
      dbus_pending_call_cancel(pending);
      return ErrorSlot::no_reply();
    }
    // Not dbus_connection_send_with_reply_and_block(): its timeout starts when the request has been
    // sent, and it waits forever for a server that does not finish the authentication. Signals
    // about units and jobs, which systemd broadcasts, are discarded here.
    const bool goes_on = dbus_connection_read_write_dispatch(
                             connection_.get(),
                             static_cast<int>(std::min<milliseconds::rep>(left, INT_MAX - 1))) != 0;
    if (!goes_on && dbus_pending_call_get_completed(pending) == 0) return lost();
  }
  Message reply{dbus_pending_call_steal_reply(pending)};
  ErrorSlot error;
  if (dbus_set_error_from_message(error.get(), reply.get()) == 0) return reply;
  return error.failure();
}

Bus::OrFailure<void> Bus::connect() {
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
  return std::unexpected(Failure{.name = DBUS_ERROR_NO_SERVER, .text = std::move(tried)});
}

Bus::OrFailure<void> Bus::open(const std::string& address) {
  const auto time = clock().time_until(deadline_);
  if (time == time.zero()) return ErrorSlot::no_reply();
  // libdbus sends with MSG_NOSIGNAL, but would still set SIGPIPE to ignored for the whole process.
  dbus_connection_set_change_sigpipe(0);
  ErrorSlot error;
  {
    // libdbus connects without a timeout, and connect(2) blocks while the socket's backlog is full:
    // for example when PID 1 is frozen and 4096 clients have connected.
    const sys::WakeUp wake_up{std::chrono::ceil<std::chrono::microseconds>(time)};
    connection_.reset(dbus_connection_open_private(address.c_str(), error.get()));
  }
  if (!connection_) return in_time() ? error.failure() : ErrorSlot::no_reply();
  dbus_connection_set_exit_on_disconnect(connection_.get(), 0);
  dbus_connection_set_max_message_size(connection_.get(), kLargestMessage);
  // No reply carries file descriptors.
  dbus_connection_set_max_message_unix_fds(connection_.get(), 0);
  return {};
}

Bus::OrFailure<void> Bus::greet(Peer peer) {
  const bool is_bus = peer == Peer::kMessageBus;
  // A message bus has to be greeted. systemd's own socket is none, and knows no destination.
  const Message first{
      is_bus ? dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS,
                                            "Hello")
             : dbus_message_new_method_call(nullptr, "/", DBUS_INTERFACE_PEER, "Ping")};
  if (!first) return ErrorSlot::out_of_memory();
  if (is_bus) {
    const auto reply = exchange(first.get());
    return reply ? OrFailure<void>{} : std::unexpected(reply.error());
  }
  dbus_message_set_no_reply(first.get(), 1);
  // systemd 252 to 257 reads the end of the authentication into a buffer of 256 bytes, and does not
  // process what else is in the buffer until more data arrives: a short call would get no reply.
  // After another message it does not fit into the buffer.
  if (dbus_connection_send(connection_.get(), first.get(), nullptr) == 0)
    return ErrorSlot::out_of_memory();
  return {};
}

bool Bus::has_left(const Reply& reply) const {
  if (reply) return false;
  const std::string& name = reply.error().name;
  // Before the deadline, NoReply comes from the bus: its peer has gone.
  if (name == DBUS_ERROR_NO_REPLY) return in_time();
  return name == DBUS_ERROR_DISCONNECTED || name == DBUS_ERROR_SERVICE_UNKNOWN ||
         name == DBUS_ERROR_NAME_HAS_NO_OWNER;
}

std::unexpected<Bus::Failure> Bus::lost() const {
  const bool is_known = dbus_connection_get_is_authenticated(connection_.get()) != 0;
  return std::unexpected(Failure{
      .name = DBUS_ERROR_DISCONNECTED,
      .text = cat("connection closed ", is_known ? "before the reply" : "during authentication")});
}

Error Bus::error_for(std::string_view what, const Failure& failure) const {
  if (failure.name == DBUS_ERROR_NO_SERVER) {
    return Error{ErrorCode::kNotFound,
                 cat(what, ": cannot connect to systemd: ", failure.text, kUseCgroupfs)};
  }
  const auto [name, code, remedy] = meaning_of(failure.name);
  const std::string allowed =
      code == ErrorCode::kTimeout ? cat("; the timeout is ", options_.deadline.count(), " ms") : "";
  return Error{code, cat(what, " at ", address_, ": ", printable(failure.text, kLongestWords), " (",
                         printable(failure.name), ")", allowed, remedy)};
}

}  // namespace podqos::cgroup
