#include "common/app/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include <paths.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <syslog.h>

#include "common/base/text.h"
#include "common/sys/fd.h"

namespace podqos::app {

namespace {

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
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
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
 public:
  explicit SyslogSink(std::string program) : program_(std::move(program)) { connect(); }

 private:
  void connect() {
    fd_ = sys::UniqueFd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    constexpr sockaddr_un kDaemon{.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
    // The socket calls take every kind of address as a sockaddr.
    const auto* address = reinterpret_cast<const sockaddr*>(&kDaemon);
    if (fd_.valid() && ::connect(fd_.get(), address, sizeof kDaemon) != 0) fd_ = {};
  }

  /// False if the daemon is gone. If it has no room, the line is dropped without a retry.
  [[nodiscard]] bool send(const std::string& line) const {
    if (!fd_.valid()) return false;
    return ::sendto(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL, nullptr, 0) >= 0 ||
           errno == EAGAIN;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    constexpr std::array kPriorities{LOG_DEBUG, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR, LOG_ERR};
    const auto level = static_cast<std::size_t>(message.level);  // trace, debug … critical
    // RFC 3164 without the time: the daemon adds it, and formatting it needs the time zone
    // database.
    std::string line =
        cat("<", LOG_DAEMON | kPriorities.at(level), ">", program_, "[", ::getpid(), "]: ");
    line.append(message.payload.data(), message.payload.size());
    if (send(line)) return;
    // The log daemon may have been restarted: the plugin runs long.
    connect();
    static_cast<void>(send(line));
  }
  void flush_() override {}

  std::string program_;
  sys::UniqueFd fd_;
};

/// Formats "2026-01-31T23:59:59.999Z" without the C library, which would read the time zone
/// database.
class UtcTime final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*local*/,
              spdlog::memory_buf_t& line) override {
    using namespace std::chrono;
    const auto day = floor<days>(message.time);
    const year_month_day date{day};
    const hh_mm_ss time{floor<milliseconds>(message.time - day)};
    std::int64_t digits = int{date.year()};
    digits = digits * 100 + static_cast<unsigned>(date.month());
    digits = digits * 100 + static_cast<unsigned>(date.day());
    digits = digits * 100 + time.hours().count();
    digits = digits * 100 + time.minutes().count();
    digits = digits * 100 + time.seconds().count();
    digits = digits * 1000 + time.subseconds().count();
    const std::string text = std::to_string(digits);
    constexpr std::string_view kBehind = "   - - T : : .  Z";
    for (std::size_t i = 0; i < text.size(); ++i) {
      line.push_back(text[i]);
      if (kBehind[i] != ' ') line.push_back(kBehind[i]);
    }
  }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<UtcTime>();
  }
};

/// Opens syslog, standard error, or the file `name`.
std::shared_ptr<spdlog::sinks::sink> open_sink(const std::string& name,
                                               const std::string& program) {
  if (name == "syslog") return std::make_shared<SyslogSink>(program);
  auto sink =
      name == "stderr" ? std::make_shared<AppendSink>() : std::make_shared<AppendSink>(name);
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<UtcTime>('Q').set_pattern("%Q %n[%P] %l: %v");
  sink->set_formatter(std::move(formatter));
  return sink;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  while (true) {
    const auto control = std::ranges::find_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
    out.append(text.begin(), control);
    if (control == text.end()) return out;
    out += printable({control, 1});
    text.remove_prefix(static_cast<std::size_t>(control - text.begin()) + 1);
  }
}

Log::Log(std::string program, const core::Settings& settings)
    : program_(std::move(program)), sink_name_(settings.log_sink), threshold_(settings.log_level) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

void Log::write(core::LogLevel level, std::string_view line) {
  if (level < threshold_ || sink_name_ == "none") return;
  if (!logger_) {
    logger_ = std::make_unique<spdlog::logger>(program_, open_sink(sink_name_, program_));
    logger_->set_level(spdlog::level::trace);
  }
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  const std::string shown = one_line(line);
  logger_->log(kLevels.at(static_cast<std::size_t>(level)),
               spdlog::string_view_t{shown.data(), shown.size()});
}

void log_report(Log& log, const cgroup::Report& report) {
  for (const std::string& line : report.written)
    log.debug(cat("wrote ", line));
  for (const std::string& line : report.ignored)
    log.debug(cat("ignored refused write: ", line));
}

}  // namespace podqos::app
