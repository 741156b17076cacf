#include "common/cgroup/bus_client.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "common/base/text.h"
#include "common/sys/wake_up.h"

namespace podqos::cgroup {

namespace {

// 10,000 units are listed in 3 MB. A message that claims to be larger ends the connection.
constexpr long kLargestMessage = 16L * 1024 * 1024;

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

std::unexpected<BusFailure> broken(std::string_view moment) {
  return std::unexpected(
      BusFailure{.name = DBUS_ERROR_DISCONNECTED, .text = cat("connection closed ", moment)});
}

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
  // libdbus writes with MSG_NOSIGNAL, and would ignore SIGPIPE for the whole process all the same.
  dbus_connection_set_change_sigpipe(0);
  ErrorSlot error;
  DBusConnection* connection = nullptr;
  {
    // libdbus connects without a deadline, and a socket whose queue is full lets it wait for ever:
    // that of a PID 1 that is frozen, once 4096 clients have tried.
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
  // No reply brings descriptors.
  dbus_connection_set_max_message_unix_fds(connection, 0);
  return opened;
}

BusResult<void> BusClient::announce(DBusMessage* message) {
  if (dbus_connection_send(connection_.get(), message, nullptr) == 0) return out_of_memory();
  return {};
}

std::vector<BusResult<Message>> BusClient::call(std::span<DBusMessage* const> requests,
                                                Deadline deadline) {
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
    // Not dbus_connection_send_with_reply_and_block: its deadline begins when the request has left,
    // and it waits for ever for a server that never answers the authentication. What systemd tells
    // all its clients about units and jobs is dropped on the way.
    const bool goes_on = dbus_connection_read_write_dispatch(connection_.get(), timeout) != 0;
    if (!goes_on && dbus_pending_call_get_completed(pending) == 0) return broken(moment());
  }
  Message reply{dbus_pending_call_steal_reply(pending)};
  ErrorSlot error;
  if (dbus_set_error_from_message(error.get(), reply.get()) == 0) return reply;
  return error.failure();
}

/// For libdbus, which takes 0 for "look once" and INT_MAX for "for ever".
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
