#include "common/app/log_sinks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include <paths.h>
#include <syslog.h>

#include "common/base/text.h"
#include "common/base/utc_time.h"
#include "common/sys/fd.h"

namespace podqos::app {

namespace {

std::string_view view_of(spdlog::string_view_t part) {
  return {part.data(), part.size()};
}

std::string utc(spdlog::log_clock::time_point time) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  return format_utc(UnixMillis{since.count()});
}

/// Appends to a file. spdlog's file sink follows a symlink at the path and leaves the descriptor
/// open across exec.
class AppendSink final : public LogSink {
 public:
  explicit AppendSink(const std::string& path)
      : fd_(::open(path.c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {}
  /// Standard error, whose flags others may share.
  AppendSink() : fd_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)), may_block_(true) {}

 private:
  /// Whether a write of a line will not block; a pipe has room for PIPE_BUF bytes then (pipe(7)).
  [[nodiscard]] bool has_room() const {
    pollfd polled{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    return ::poll(&polled, 1, 0) == 1 && polled.revents == POLLOUT;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string line =
        cat(utc(message.time), " ", view_of(message.logger_name), "[", ::getpid(), "] ",
            view_of(spdlog::level::to_string_view(message.level)), ": ", view_of(message.payload),
            "\n");
    // One write per line, so that lines of concurrent programs do not mix. Errors are ignored: they
    // must not keep a container from starting.
    if (fd_.valid() && (!may_block_ || has_room()))
      static_cast<void>(::write(fd_.get(), line.data(), line.size()) < 0);
  }

  sys::UniqueFd fd_;
  bool may_block_ = false;
};

constexpr sockaddr_un kJournal{.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
constexpr sockaddr_un kSyslog{.sun_family = AF_UNIX, .sun_path = _PATH_LOG};

/// Sends to the local log daemon. spdlog's sink uses syslog(3), which blocks while the daemon does
/// not read, here with the lock held.
class DaemonSink final : public LogSink {
  bool connect_to(const sockaddr_un& daemon) {
    // The socket calls take every kind of address as a sockaddr.
    const auto* address = reinterpret_cast<const sockaddr*>(&daemon);
    return ::connect(fd_.get(), address, sizeof daemon) == 0;
  }

  void connect() {
    fd_ = sys::UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!fd_.valid()) return;
    is_journal_ = connect_to(kJournal);
    if (!is_journal_ && !connect_to(kSyslog)) fd_ = {};
  }

  /// False without a connection to a daemon. A daemon whose queue is full loses the line.
  [[nodiscard]] bool send(const spdlog::details::log_msg& message) const {
    if (!fd_.valid()) return false;
    constexpr std::array kPriorities{LOG_DEBUG, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR, LOG_ERR};
    const int priority = kPriorities.at(static_cast<std::size_t>(message.level));
    const std::string line =
        is_journal_
            ? cat("PRIORITY=", priority, "\nSYSLOG_FACILITY=", LOG_FAC(LOG_DAEMON),
                  "\nSYSLOG_IDENTIFIER=", view_of(message.logger_name), "\nSYSLOG_PID=", ::getpid(),
                  "\n", fields(), "MESSAGE=", view_of(message.payload), "\n")
            // RFC 3164 without the time: the daemon adds it.
            : cat("<", LOG_DAEMON | priority, ">", view_of(message.logger_name), "[", ::getpid(),
                  "]: ", view_of(message.payload));
    return ::sendto(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL, nullptr, 0) >= 0 ||
           errno == EAGAIN;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    if (send(message)) return;
    // The log daemon may have been restarted: the plugin runs long.
    connect();
    static_cast<void>(send(message));
  }

  sys::UniqueFd fd_;
  bool is_journal_ = false;
};

}  // namespace

std::shared_ptr<LogSink> open_sink(const std::string& name) {
  if (name == "syslog") return std::make_shared<DaemonSink>();
  if (name == "stderr") return std::make_shared<AppendSink>();
  return std::make_shared<AppendSink>(name);
}

}  // namespace podqos::app
