#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <dbus/dbus.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/sys/fd.h"
#include "tests/unit/child_process.h"

namespace podqos::cgroup {

struct UnrefTestMessage {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
};
using TestMessage = std::unique_ptr<DBusMessage, UnrefTestMessage>;

/// Arguments as text: "a.slice" t:5 b:1 [ … ] for arrays, ( … ) for structs, < … > for variants.
inline std::string describe(DBusMessageIter& place) {
  std::string out;
  const auto inner = [&](const char* open, const char* close) {
    DBusMessageIter contents{};
    dbus_message_iter_recurse(&place, &contents);
    out += open + describe(contents) + close;
  };
  for (; dbus_message_iter_get_arg_type(&place) != DBUS_TYPE_INVALID;
       dbus_message_iter_next(&place)) {
    if (!out.empty()) out += ' ';
    const char* text = nullptr;
    std::uint64_t number = 0;
    switch (const int type = dbus_message_iter_get_arg_type(&place)) {
      case DBUS_TYPE_STRING:
        dbus_message_iter_get_basic(&place, &text);
        out += cat("\"", text, "\"");
        break;
      case DBUS_TYPE_ARRAY: inner("[", "]"); break;
      case DBUS_TYPE_STRUCT: inner("(", ")"); break;
      case DBUS_TYPE_VARIANT: inner("<", ">"); break;
      default:
        // Little-endian: what is shorter stands at the front.
        dbus_message_iter_get_basic(&place, &number);
        out += cat(std::string(1, static_cast<char>(type)), ":", number);
    }
  }
  return out;
}

/// One line: destination path interface.method signature arguments.
inline std::string describe(DBusMessage* message) {
  const auto field = [](const char* text) { return text == nullptr ? "-" : text; };
  DBusMessageIter place{};
  dbus_message_iter_init(message, &place);
  return cat(field(dbus_message_get_destination(message)), " ",
             field(dbus_message_get_path(message)), " ", field(dbus_message_get_interface(message)),
             ".", field(dbus_message_get_member(message)), " ", dbus_message_get_signature(message),
             " ", describe(place));
}

/// The server's end of one connection, in the server's process. What else goes wrong here ends it,
/// which the client then sees.
class Session {
 public:
  /// Thrown when the client has gone.
  struct Gone {};

  Session(int listener, int transcript)
      : socket_(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)), transcript_(transcript) {
    if (!socket_.valid()) ::_exit(3);
  }

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) throw Gone{};
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// A line of the authentication, without its end.
  std::string line() {
    while (!buffer_.contains("\r\n"))
      more();
    const auto end = buffer_.find("\r\n");
    const std::string found = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return found;
  }

  /// As systemd does it: EXTERNAL for the user at the other end.
  void authenticate() {
    while (true) {
      const std::string said = line();
      if (said.contains("AUTH EXTERNAL")) send("OK 0123456789abcdef0123456789abcdef\r\n");
      if (said == "NEGOTIATE_UNIX_FD") send("AGREE_UNIX_FD\r\n");
      if (said == "BEGIN") return;
    }
  }

  /// The next message that wants an answer; its description goes into the transcript, as that of
  /// any before it.
  TestMessage receive() {
    TestMessage message = next();
    while (dbus_message_get_no_reply(message.get()) != 0)
      message = next();
    return message;
  }

  /// Waits until so much of what is to come is there.
  void need(std::size_t bytes) {
    while (buffer_.size() < bytes)
      more();
  }

  void send(DBusMessage* message) {
    char* bytes = nullptr;
    int size = 0;
    dbus_message_set_serial(message, ++serial_);
    if (dbus_message_marshal(message, &bytes, &size) == 0) ::_exit(7);
    send(std::string_view{bytes, static_cast<std::size_t>(size)});
    dbus_free(bytes);
  }

  /// @param type  of the only value of the answer: text, or an object's path
  void answer(DBusMessage* call, int type, const char* value) {
    const TestMessage reply{dbus_message_new_method_return(call)};
    dbus_message_append_args(reply.get(), type, &value, DBUS_TYPE_INVALID);
    send(reply.get());
  }
  /// As StartTransientUnit and its like are answered.
  void answer_job(DBusMessage* call) {
    answer(call, DBUS_TYPE_OBJECT_PATH, "/org/freedesktop/systemd1/job/1");
  }
  void refuse(DBusMessage* call, const char* name, const char* text) {
    send(TestMessage{dbus_message_new_error(call, name, text)}.get());
  }
  /// Answers a call with anything, and is silent then.
  void reply_with(std::string_view bytes) {
    authenticate();
    static_cast<void>(receive());
    send(bytes);
    wait();
  }
  /// What systemd broadcasts to all its clients.
  void broadcast(const char* signal) {
    send(TestMessage{dbus_message_new_signal("/org/freedesktop/systemd1",
                                             "org.freedesktop.systemd1.Manager", signal)}
             .get());
  }

  /// Stays connected, silently, until the client goes.
  void wait() {
    while (true)
      more();
  }

 private:
  TestMessage next() {
    // The fixed header tells how long the whole is.
    while (buffer_.size() < DBUS_MINIMUM_HEADER_SIZE ||
           static_cast<int>(buffer_.size()) < needed()) {
      more();
    }
    DBusError error{};
    dbus_error_init(&error);
    const int size = needed();
    TestMessage message{dbus_message_demarshal(buffer_.data(), size, &error)};
    if (!message) ::_exit(5);
    buffer_.erase(0, static_cast<std::size_t>(size));
    const std::string text = describe(message.get()) + "\n";
    if (::write(transcript_, text.data(), text.size()) < 0) ::_exit(6);
    return message;
  }

  [[nodiscard]] int needed() const {
    return dbus_message_demarshal_bytes_needed(buffer_.data(), static_cast<int>(buffer_.size()));
  }

  void more() {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(socket_.get(), bytes.data(), bytes.size());
    if (got <= 0) throw Gone{};
    buffer_.append(bytes.data(), static_cast<std::size_t>(got));
  }

  sys::UniqueFd socket_;
  int transcript_;
  std::string buffer_;
  dbus_uint32_t serial_ = 0;
};

/// The error of a call that fails.
inline Error error_of(const Status& done) {
  EXPECT_FALSE(done);
  return done ? Error{} : done.error();
}

/// The remedy that an error names where no systemd is found.
inline constexpr const char* kNoSystemdRemedy =
    "; if systemd is not running, configure the engine to use the cgroupfs driver";

/// The next connection, authenticated.
template <class Accept>
Session authenticated(Accept& accept) {
  Session session = accept();
  session.authenticate();
  return session;
}

/// Answers every call of the next connection as StartTransientUnit is answered.
constexpr auto kAnswersJobs = [](auto accept) {
  Session session = authenticated(accept);
  while (true)
    session.answer_job(session.receive().get());
};

/// A process that listens like systemd and behaves as `serve(accept)` says; accept() is the next
/// connection's Session.
class FakeSystemd {
 public:
  template <class Serve>
  FakeSystemd(std::string path, Serve serve, int backlog = 8) : path_(std::move(path)) {
    const sys::UniqueFd listener{listen_at(path_, backlog)};
    child_ = start_child([&] {
      ::alarm(600);  // even if the test is killed
      try {
        serve([&] { return Session{listener.get(), transcript_.get()}; });
      } catch (const Session::Gone&) {
        return;  // the client has what it wanted
      }
    });
  }
  ~FakeSystemd() { end(SIGKILL); }
  FakeSystemd(const FakeSystemd&) = delete;
  FakeSystemd& operator=(const FakeSystemd&) = delete;

  [[nodiscard]] std::string address() const { return "unix:path=" + path_; }

  /// All that it was told; it ends when its client has gone.
  [[nodiscard]] std::string heard() {
    end(0);
    std::string text(static_cast<std::size_t>(::lseek(transcript_.get(), 0, SEEK_END)), '\0');
    if (::pread(transcript_.get(), text.data(), text.size(), 0) < 0) std::abort();
    return text;
  }

  [[nodiscard]] static int listen_at(const std::string& path, int backlog) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(fd, generic, sizeof address) != 0 || ::listen(fd, backlog) != 0) std::abort();
    return fd;
  }

 private:
  void end(int signal) {
    if (child_ < 0) return;
    ::kill(child_, signal);
    static_cast<void>(wait_for(std::exchange(child_, -1)));
  }

  std::string path_;
  sys::UniqueFd transcript_{::memfd_create("transcript", MFD_CLOEXEC)};
  pid_t child_ = -1;
};

}  // namespace podqos::cgroup
