#include "nri/service.h"

#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

// Indices of the polled descriptors; those of the HTTP server start at kHttpAt.
constexpr std::size_t kSignalsAt = 0;
constexpr std::size_t kLinkAt = 1;
constexpr std::size_t kHttpAt = 2;

}  // namespace

Service::Service(ServiceOptions options, ServicePorts ports)
    : options_{std::move(options)},
      ports_{std::move(ports)},
      waiting_{cat("waiting for a runtime at ", options_.socket)},
      retry_{options_.times.first_retry},
      next_attempt_{ports_.clock.now()} {
  set_status(false, waiting_);
}

Status Service::run() {
  if (ports_.notify.watchdog_interval()) next_watchdog_ = ports_.clock.now();
  ports_.notify.ready(waiting_);
  while (!stopping_) {
    PODQOS_TRY(apply_deadlines());
    PODQOS_TRY(wait());
    if (polled_[kSignalsAt].revents != 0) read_signals();
    // The runtime has precedence over metrics.
    if (link_ && !stopping_ && polled_[kLinkAt].revents != 0) serve_link();
    if (stopping_) break;
    ports_.http.serve(
        std::span{polled_}.subspan(kHttpAt),
        [this](std::string_view path) { return ports_.page(path, status_); }, ports_.clock.now());
  }
  ports_.notify.stopping();
  link_.reset();
  set_status(false, "stopped");
  return {};
}

Status Service::wait() {
  polled_.assign({{.fd = ports_.signals, .events = POLLIN, .revents = 0},
                  // poll(2) passes over a negative descriptor.
                  {.fd = link_ ? link_->fd() : -1,
                   .events = link_ ? link_->events() : short{0},
                   .revents = 0}});
  ports_.http.add_to(polled_);
  if (ports_.clock.poll(polled_, next_deadline()) < 0 && errno != EINTR)
    return fail_errno(errno, "poll");
  return {};
}

void Service::read_signals() {
  signalfd_siginfo signal{};
  while (::read(ports_.signals, &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo != SIGHUP) {
      stopping_ = true;
      return;
    }
    ports_.notify.reloading();
    ports_.reload();
    ports_.notify.ready(status_.synchronized ? cat("synchronized with ", peer_) : status_.obstacle);
  }
}

std::optional<Service::TimePoint> Service::next_deadline() const {
  std::optional<TimePoint> earliest;
  for (const std::optional<TimePoint>& each :
       {next_watchdog_, link_ ? timeout_ : next_attempt_,
        status_.synchronized ? std::optional{next_housekeeping_} : std::nullopt,
        ports_.http.next_deadline()}) {
    if (each && (!earliest || *each < *earliest)) earliest = each;
  }
  return earliest;
}

Status Service::apply_deadlines() {
  const auto now = ports_.clock.now();
  if (next_watchdog_ && now >= *next_watchdog_) {
    ports_.notify.watchdog();
    next_watchdog_ = now + *ports_.notify.watchdog_interval();
  }
  if (status_.synchronized && now >= next_housekeeping_) {
    // Between two pieces of long work the runtime is served, and other processes get the lock.
    const auto pause = ports_.housekeep() ? options_.times.piece : options_.times.housekeeping;
    next_housekeeping_ = ports_.clock.now() + pause;
  }
  if (link_ && timeout_ && now >= *timeout_) {
    end_link({ErrorCode::kTimeout, progress_ == Progress::kRegistering
                                       ? "the runtime did not configure the plugin in time"
                                       : "the runtime did not synchronize the plugin in time"});
  }
  return !link_ && now >= next_attempt_ ? try_to_connect() : Status{};
}

Status Service::connect() {
  if (!only_) {
    PODQOS_TRY(ports_.hold());
    only_ = true;
    status_.standby = false;
    const bool stood_by = !last_failure_.empty();
    if (stood_by) report(waiting_);
  }
  PODQOS_ASSIGN(auto socket, connect_to(options_.socket));
  return make_link(std::move(socket));
}

Status Service::try_to_connect() {
  Status made = connect();
  if (made) return {};
  const Error& error = made.error();
  // The state directory is of no use: whatever has started this program starts it again.
  if (!only_ && error.code != ErrorCode::kTimeout) return made;
  log_failure(error);
  status_.obstacle = error.message;
  if (only_) {
    retry_later();
    if (error.code != ErrorCode::kNotFound && error.code != ErrorCode::kBusy) return {};
    // The next one to accept is another runtime, or has just started.
    retry_ = options_.times.first_retry;
    next_attempt_ = ports_.clock.now() + options_.times.absent;
    return {};
  }
  // Ready to follow, as far as that can be seen without a connection.
  struct stat socket{};
  status_.standby = ::stat(options_.socket.c_str(), &socket) == 0;
  if (!status_.standby) status_.obstacle = cat(options_.socket, " is missing");
  next_attempt_ = ports_.clock.now() + options_.times.standby;
  return {};
}

void Service::log_failure(const Error& error) {
  if (error.message == last_failure_) return;
  last_failure_ = error.message;
  if (!only_) {
    announce(cat(error.message, "; standing by until that one ends"), &app::Log::info);
  } else if (error.code == ErrorCode::kNotFound) {
    ports_.log.info(
        cat(error.message, "; waiting for a runtime with NRI enabled, see podqos-nri(8)"));
  } else if (error.code == ErrorCode::kBusy) {
    ports_.log.info(cat(error.message, "; retrying"));
  } else {
    ports_.log.warning(cat(error.message, "; retrying: check that ", options_.socket,
                           " is the socket of this node's runtime"));
  }
}

Status Service::make_link(sys::UniqueFd socket) {
  const auto runtime = runtime_at(socket.get());
  if (!runtime) return fail(Error{runtime.error()}.with_context(options_.socket));
  peer_ = cat("the runtime at ", options_.socket, " (process ", runtime->value(), ")");
  progress_ = Progress::kRegistering;
  link_.emplace(std::move(socket), options_.session, ports_.handler);
  link_->begin();
  ++status_.connections;
  set_status(true, cat("connected to ", peer_, ", which has not synchronized the plugin yet"));
  last_failure_.clear();
  announce(cat("connected to ", peer_), &app::Log::info);
  timeout_ = ports_.clock.now() + options_.times.configure;
  return {};
}

void Service::serve_link() {
  const Status served = link_->serve(polled_[kLinkAt].revents);
  observe_progress();
  if (link_ && !served) end_link(served.error());
}

void Service::observe_progress() {
  const Progress progress = link_->progress();
  // A large state comes in several parts: each of them renews the timeout.
  if (progress == progress_ && progress != Progress::kSynchronizing) return;
  progress_ = progress;
  switch (progress) {
    case Progress::kRegistering: return;
    case Progress::kConfigured:
    case Progress::kSynchronizing:
      timeout_ = ports_.clock.now() + options_.times.synchronize;
      return;
    case Progress::kSynchronized:
      timeout_.reset();
      set_status(true, "");
      next_housekeeping_ = ports_.clock.now();
      announce(cat("synchronized with ", peer_), &app::Log::info);
      return;
  }
}

void Service::end_link(const Error& reason) {
  link_.reset();
  timeout_.reset();
  std::string line = cat("connection to ", peer_, " ended: ", reason.message);
  bool& newest = options_.session.newest_events;
  bool expected = false;
  if (progress_ == Progress::kConfigured && reason.code == ErrorCode::kNotFound) {
    // A runtime closes the connection without an error if the event mask has unknown events.
    newest = !newest;
    // Runtimes with NRI up to 0.9 do not know the newest events.
    expected = !newest;
    line += " after Configure; requesting another set of events";
  } else if (status_.synchronized) {
    newest = true;
    retry_ = options_.times.first_retry;
  }
  // The runtime is there: pods that are created meanwhile are not placed.
  const auto pause = expected ? options_.times.first_retry : retry_;
  line += cat("; retrying in ", pause.count(), " ms");
  announce(line, expected ? &app::Log::info : &app::Log::warning);
  set_status(false, std::move(line));
  if (!expected) return retry_later();
  next_attempt_ = ports_.clock.now() + pause;
}

void Service::announce(const std::string& line, void (app::Log::*write)(std::string_view)) {
  (ports_.log.*write)(line);
  report(line);
}

void Service::report(std::string_view status) {
  ports_.notify.status(status);
  if (only_) ports_.record(status);
}

void Service::retry_later() {
  next_attempt_ = ports_.clock.now() + retry_;
  retry_ = std::min(retry_ * 2, options_.times.longest_retry);
}

void Service::set_status(bool connected, std::string obstacle) {
  status_.connected = connected;
  status_.synchronized = connected && obstacle.empty();
  status_.obstacle = std::move(obstacle);
  status_.since = ports_.clock.now();
}

}  // namespace podqos::nri
