#include "common/app/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <paths.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
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
class AppendSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
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
  void flush_() override {}

  sys::UniqueFd fd_;
  bool may_block_ = false;
};

/// Sends to the local log daemon. spdlog's sink uses syslog(3), which blocks while the daemon does
/// not read, here with the lock held.
class SyslogSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void connect() {
    fd_ = sys::UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    constexpr sockaddr_un kDaemon{.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
    // The socket calls take every kind of address as a sockaddr.
    const auto* address = reinterpret_cast<const sockaddr*>(&kDaemon);
    if (fd_.valid() && ::connect(fd_.get(), address, sizeof kDaemon) != 0) fd_ = {};
  }

  /// False without a connection to a daemon. A daemon whose queue is full loses the line.
  [[nodiscard]] bool send(const std::string& line) const {
    if (!fd_.valid()) return false;
    return ::sendto(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL, nullptr, 0) >= 0 ||
           errno == EAGAIN;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    constexpr std::array kPriorities{LOG_DEBUG, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR, LOG_ERR};
    const auto level = static_cast<std::size_t>(message.level);  // trace, debug … critical
    // RFC 3164 without the time: the daemon adds it.
    const std::string line =
        cat("<", LOG_DAEMON | kPriorities.at(level), ">", view_of(message.logger_name), "[",
            ::getpid(), "]: ", view_of(message.payload));
    if (send(line)) return;
    // The log daemon may have been restarted: the plugin runs long.
    connect();
    static_cast<void>(send(line));
  }
  void flush_() override {}

  sys::UniqueFd fd_;
};

/// Opens syslog, standard error, or the file `name`.
std::shared_ptr<spdlog::sinks::sink> open_sink(const std::string& name) {
  if (name == "syslog") return std::make_shared<SyslogSink>();
  if (name == "stderr") return std::make_shared<AppendSink>();
  return std::make_shared<AppendSink>(name);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (const char& c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
    control ? out += printable({&c, 1}) : out += c;
  }
  return out;
}

Log::Log(std::string program, const core::Settings& settings)
    : program_(std::move(program)), sink_name_(settings.log_sink), threshold_(settings.log_level) {}

void Log::write(core::LogLevel level, std::string_view line) {
  if (level < threshold_ || sink_name_ == "none") return;
  if (!logger_) {
    logger_ = std::make_shared<spdlog::logger>(program_, open_sink(sink_name_));
    logger_->set_level(spdlog::level::trace);
  }
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  const std::string shown = one_line(line);
  logger_->log(kLevels.at(static_cast<std::size_t>(level)),
               spdlog::string_view_t{shown.data(), shown.size()});
}

}  // namespace podqos::app
