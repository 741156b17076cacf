#include "common/cgroup/bus_client.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "common/base/text.h"
#include "common/sys/wake_up.h"

namespace podqos::cgroup {

namespace {

// A list of 10,000 units takes 3 MB. A peer that announces a larger message is disconnected.
constexpr long kLargestMessage = 16L * 1024 * 1024;

/// Owns a DBusError, which libdbus requires to be initialised and freed.
class ErrorSlot {
 public:
  ErrorSlot() { dbus_error_init(&error_); }
  ~ErrorSlot() { dbus_error_free(&error_); }
  ErrorSlot(const ErrorSlot&) = delete;
  ErrorSlot& operator=(const ErrorSlot&) = delete;

  DBusError* get() { return &error_; }
  [[nodiscard]] std::unexpected<BusFailure> failure() const {
    return std::unexpected(BusFailure{.name = error_.name, .text = error_.message});
  }

 private:
  DBusError error_{};
};

std::unexpected<BusFailure> out_of_memory() {
  return std::unexpected(BusFailure{.name = DBUS_ERROR_NO_MEMORY, .text = "out of memory"});
}

/// The connection was lost in this phase.
std::unexpected<BusFailure> broken(std::string_view moment) {
  return std::unexpected(
      BusFailure{.name = DBUS_ERROR_DISCONNECTED, .text = cat("connection closed ", moment)});
}

/// The deadline has passed.
std::unexpected<BusFailure> no_reply() {
  return std::unexpected(
      BusFailure{.name = DBUS_ERROR_NO_REPLY, .text = "no reply before the deadline"});
}

}  // namespace

void BusClient::CloseConnection::operator()(DBusConnection* connection) const {
  dbus_connection_close(connection);
  dbus_connection_unref(connection);
}

void BusClient::UnrefPendingCall::operator()(DBusPendingCall* call) const {
  dbus_pending_call_unref(call);
}

BusResult<BusClient> BusClient::open(const std::string& address, Deadline deadline,
                                     const sys::Clock& clock) {
  const auto time = clock.time_until(deadline);
  if (time == time.zero()) return no_reply();
  // libdbus sends with MSG_NOSIGNAL, but would still set SIGPIPE to ignored for the whole process.
  dbus_connection_set_change_sigpipe(0);
  ErrorSlot error;
  DBusConnection* connection = nullptr;
  {
    // libdbus connects without a timeout, and connect(2) blocks while the socket's backlog is full:
    // for example when PID 1 is frozen and 4096 clients have connected.
    const sys::WakeUp wake_up{std::chrono::ceil<std::chrono::microseconds>(time)};
    connection = dbus_connection_open_private(address.c_str(), error.get());
  }
  if (connection == nullptr) {
    if (clock.now() >= deadline) return no_reply();
    return error.failure();
  }
  BusClient opened{connection, clock};
  dbus_connection_set_exit_on_disconnect(connection, 0);
  dbus_connection_set_max_message_size(connection, kLargestMessage);
  // No reply carries file descriptors.
  dbus_connection_set_max_message_unix_fds(connection, 0);
  return opened;
}

BusResult<void> BusClient::send_without_reply(DBusMessage* message) {
  if (dbus_connection_send(connection_.get(), message, nullptr) == 0) return out_of_memory();
  return {};
}

std::vector<BusResult<Message>> BusClient::call(std::span<DBusMessage* const> requests,
                                                Deadline deadline) {
  // All requests are queued before the first reply is awaited: one round trip.
  std::vector<BusResult<PendingCall>> sent;
  for (DBusMessage* request : requests)
    sent.push_back(clock_->now() >= deadline ? no_reply() : send(request));
  std::vector<BusResult<Message>> replies;
  for (const auto& pending : sent) {
    if (pending) {
      replies.push_back(answer_to(pending->get(), deadline));
    } else {
      replies.emplace_back(std::unexpected(pending.error()));
    }
  }
  return replies;
}

BusResult<BusClient::PendingCall> BusClient::send(DBusMessage* request) {
  DBusPendingCall* sent = nullptr;
  if (dbus_connection_send_with_reply(connection_.get(), request, &sent, DBUS_TIMEOUT_INFINITE) ==
      0) {
    return out_of_memory();
  }
  if (sent == nullptr) return broken(moment());
  return PendingCall{sent};
}

BusResult<Message> BusClient::answer_to(DBusPendingCall* pending, Deadline deadline) {
  while (dbus_pending_call_get_completed(pending) == 0) {
    const int timeout = milliseconds_until(deadline);
    if (timeout == 0) {
      dbus_pending_call_cancel(pending);
      return no_reply();
    }
    // Not dbus_connection_send_with_reply_and_block(): its timeout starts when the request has been
    // sent, and it waits forever for a server that does not finish the authentication. Signals
    // about units and jobs, which systemd broadcasts, are discarded here.
    const bool goes_on = dbus_connection_read_write_dispatch(connection_.get(), timeout) != 0;
    if (!goes_on && dbus_pending_call_get_completed(pending) == 0) return broken(moment());
  }
  Message reply{dbus_pending_call_steal_reply(pending)};
  ErrorSlot error;
  if (dbus_set_error_from_message(error.get(), reply.get()) == 0) return reply;
  return error.failure();
}

/// For libdbus, where 0 means do not block and INT_MAX means no timeout.
int BusClient::milliseconds_until(Deadline deadline) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(clock_->time_until(deadline));
  return static_cast<int>(std::min<long>(left.count(), INT_MAX - 1));
}

std::string_view BusClient::moment() const {
  return dbus_connection_get_is_authenticated(connection_.get()) == 0 ? "during authentication"
                                                                      : "before the reply";
}

bool BusClient::is_connected() const {
  return dbus_connection_get_is_connected(connection_.get()) != 0;
}

}  // namespace podqos::cgroup
