#include "ctl/configure/activation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/sys/process.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr const char* kPluginUnit = "podqos-nri.service";
constexpr const char* kSystemctl = "/usr/bin/systemctl";
/// The client of Docker, which says what the daemon knows.
constexpr std::array kDockerClients = {"/usr/bin/docker", "/usr/local/bin/docker"};
/// Not the socket of another machine, which a context of the client's may name.
constexpr const char* kSocket = "unix:///run/docker.sock";
/// Containers that a restart stops, and the runtimes.
constexpr const char* kFormat =
    "{{if .LiveRestoreEnabled}}0 0{{else}}{{.ContainersRunning}} {{.ContainersPaused}}{{end}}"
    "{{range $name, $runtime := .Runtimes}} {{$name}}{{end}}";
/// dockerd --validate came with this version.
constexpr Version kDockerValidates{.major = 23, .minor = 0};
/// How much of the plugin's status a message has.
constexpr std::size_t kMaxStatus = 500;

/// When the process was started, by today's clock; suspensions of the machine count.
std::optional<std::chrono::sys_time<nanoseconds>> start_of(Pid pid) {
  const auto started = sys::start_time_of(pid);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  timespec now{};
  if (!started || !*started || ticks_per_second <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return std::nullopt;
  const auto age = seconds{now.tv_sec} + nanoseconds{now.tv_nsec} -
                   nanoseconds{seconds{1}} / ticks_per_second * (*started)->value();
  return std::chrono::system_clock::now() - age;
}

class Activation {
 public:
  Activation(Registration& registration, const Run& run, std::chrono::milliseconds patience)
      : registration_(registration),
        outcome_(registration.outcome),
        run_(run),
        patience_(patience),
        service_(registration.engine->service),
        is_docker_(registration.engine->id == EngineId::kDocker),
        changed_(!registration.changes.empty()),
        restart_(registration.restart) {}

  Status activate() {
    outcome_.stale = !changed_ && !is_docker_ && is_stale();
    if (changed_ || (outcome_.stale && restart_ != Restart::kNo)) {
      auto checked = check();
      // Without podqos's lines the engine has another reason to refuse its configuration.
      if (!checked && registration_.undo) {
        outcome_ = {.failure = Error{checked.error().code, cat(checked.error().message,
                                                               "; removed anyway; not restarted")}};
        return {};
      }
      if (!checked) return roll_back(checked.error());
    }
    if (auto updated = is_docker_ ? update_docker() : update_service(); !updated)
      return restart_with_old_files(updated.error());
    if (auto plugin = registration_.undo ? stop_plugin() : start_plugin(); !plugin)
      outcome_.failure = std::move(plugin).error();
    return {};
  }

 private:
  /// `systemctl WORDS…`.
  [[nodiscard]] Status systemctl(const std::vector<std::string>& words) const {
    std::vector<std::string> argv = {kSystemctl};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto end = run_(argv);
    if (!end && end.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kUnsupported,
                  cat("systemctl not found: run `systemctl ", join(words, " "), "` manually"));
    if (!end) return fail(end.error());
    if (end->status == 0) return {};
    return fail(ErrorCode::kIo, cat(join(argv, " "), ": ", printable(end->output, 1000)));
  }

  /// Whether `systemctl QUESTION UNIT` says so.
  [[nodiscard]] bool is(const char* question, const std::string& unit) const {
    return systemctl({question, "--quiet", unit}).has_value();
  }

  /// A property of a unit; "" if systemd cannot be asked.
  [[nodiscard]] std::string property(const std::string& unit, const char* name) const {
    const auto end = run_({kSystemctl, "show", cat("--property=", name), "--value", unit});
    return end && end->status == 0 ? end->output : "";
  }

  /// The engine's main process; nullopt if it does not run, or not as this service.
  [[nodiscard]] std::optional<Pid> process() const {
    const auto pid = parse_int(property(service_, "MainPID"));
    if (!pid || *pid <= 0 || !std::in_range<pid_t>(*pid)) return std::nullopt;
    return Pid{*pid};
  }

  /// Whether the plugin's STATUS= (nri/service.cpp) says that it serves the engine that runs now:
  /// the one before it may have ended a moment ago.
  [[nodiscard]] bool has_plugin(std::string_view status) const {
    const auto runtime = process();
    return runtime && status.starts_with("synchronized with ") &&
           status.ends_with(cat(" (process ", runtime->value(), ")"));
  }

  /// Whether containerd or CRI-O has run since before a file changed that is right by now
  /// (st_ctime, which no program sets). Where the clock was set back beyond that, nothing can be
  /// said. A plugin that is connected shows that NRI is on.
  [[nodiscard]] bool is_stale() {
    std::optional<std::chrono::sys_time<nanoseconds>> last;
    for (const std::string& path : registration_.registered_in) {
      struct stat found{};
      if (::stat(cat(registration_.root, path).c_str(), &found) != 0) continue;
      const std::chrono::sys_time<nanoseconds> time{seconds{found.st_ctim.tv_sec} +
                                                    nanoseconds{found.st_ctim.tv_nsec}};
      if (last && time <= *last) continue;
      last = time;
      outcome_.last_changed = path;
    }
    const auto pid = last && !service_.empty() ? process() : std::nullopt;
    const auto start = pid ? start_of(*pid) : std::nullopt;
    if (!start || *start >= *last || *last > std::chrono::system_clock::now()) return false;
    return registration_.undo || registration_.method != Method::kNri ||
           !has_plugin(property(kPluginUnit, "StatusText"));
  }

  /// Has the engine check its configuration, if it can.
  Status check() {
    const Engine& engine = *registration_.engine;
    const bool can =
        !is_docker_ || (registration_.version && *registration_.version >= kDockerValidates);
    if (!registration_.program || !can) return {};
    std::vector<std::string> command = parts_of(engine.check, ' ');
    command.insert(command.begin(), *registration_.program);
    PODQOS_ASSIGN(const auto end, run_(command));
    outcome_.checked = end.status == 0;
    if (outcome_.checked) return {};
    return fail(ErrorCode::kInvalidArgument,
                cat("`", join(command, " "),
                    "` rejected the configuration: ", printable(end.output, 2000)));
  }

  /// Has containerd or CRI-O read what has changed.
  Status update_service() {
    if (restart_ == Restart::kNo || service_.empty() || !(changed_ || outcome_.stale)) return {};
    outcome_.restarted = true;
    outcome_.stale = false;
    return systemctl({"restart", service_});
  }

  /// Asks Docker's daemon, which must run, whether it has what the file says, and how many
  /// containers a restart would stop. @return false if it cannot be asked.
  bool ask_docker() {
    for (const char* client : kDockerClients) {
      const auto end = run_({client, "--host", kSocket, "info", "--format", kFormat});
      if (!end || end->status != 0) continue;
      const auto words = parts_of(end->output, ' ');
      const auto running = words.size() < 2 ? std::nullopt : parse_int(words[0]);
      const auto paused = words.size() < 2 ? std::nullopt : parse_int(words[1]);
      if (!running || !paused) continue;
      outcome_.stale = has_word(end->output, kHandler) == registration_.undo;
      outcome_.containers = *running + *paused;
      return true;
    }
    return false;
  }

  Status update_docker() {
    // The socket is systemd's: to ask would start a daemon that is stopped.
    if (!is("is-active", service_)) {
      // It reads the file when it starts.
      if (registration_.undo || !changed_ || restart_ == Restart::kNo) return {};
      outcome_.restarted = true;
      return systemctl({"restart", service_});
    }
    if (!ask_docker()) outcome_.stale = changed_;
    if (!outcome_.stale || restart_ == Restart::kNo) return {};
    PODQOS_TRY(systemctl({"reload", service_}));
    outcome_.reloaded = true;
    bool answers = false;
    static_cast<void>(wait_until(patience_, [&] {
      answers = is("is-active", service_) && ask_docker();
      return !answers || !outcome_.stale;
    }));
    // A reload adds a runtime, but does not remove the last one.
    if (!answers) outcome_.stale = registration_.undo;
    const bool harmless = answers && outcome_.containers == 0;
    if (!outcome_.stale || (restart_ != Restart::kForce && !harmless)) return {};
    outcome_.reloaded = outcome_.stale = false;
    outcome_.restarted = true;
    return systemctl({"restart", service_});
  }

  Status stop_plugin() {
    const bool serves = registration_.program && registration_.engine->nri;
    if (!serves || !is("is-active", kPluginUnit)) return {};
    PODQOS_TRY(systemctl({"disable", "--now", kPluginUnit}));
    outcome_.plugin_disabled = true;
    return {};
  }

  /// Starts the plugin if NRI was chosen, and waits until it is connected.
  Status start_plugin() {
    if (registration_.method != Method::kNri) return {};
    outcome_.plugin_ready = is("is-active", kPluginUnit) && is("is-enabled", kPluginUnit);
    if (restart_ == Restart::kNo) return {};
    if (!outcome_.plugin_ready) {
      PODQOS_TRY(systemctl({"enable", "--now", kPluginUnit}));
      outcome_.plugin_enabled = true;
    }
    // An engine that does not run finds the plugin when it starts.
    if (!process()) return {};
    PODQOS_TRY(wait_for_plugin());
    outcome_.plugin_connected = true;
    return {};
  }

  Status wait_for_plugin() const {
    std::string status;
    bool stands_by = false;
    const bool done = wait_until(patience_, [&] {
      status = property(kPluginUnit, "StatusText");
      stands_by = status.contains("standing by until that one ends");
      return stands_by || has_plugin(status);
    });
    if (stands_by)
      return fail(ErrorCode::kConflict,
                  cat(kPluginUnit, " does not serve ", service_, ": ",
                      printable(status, kMaxStatus), ": stop that one, or disable ", kPluginUnit));
    if (done) return {};
    return fail(ErrorCode::kTimeout,
                cat(kPluginUnit, " has not connected to ", service_, " within ",
                    std::chrono::duration_cast<seconds>(patience_).count(), " s; its status: \"",
                    printable(status, kMaxStatus),
                    "\"; until it has, pods are not placed: see journalctl -u ", kPluginUnit));
  }

  /// Restores the files after a start that has failed, and has the engine started with them.
  Status restart_with_old_files(const Error& error) {
    Status failed = roll_back(error);
    // systemd counts the starts that have failed, and may refuse one more.
    if (auto reset = systemctl({"reset-failed", service_}); !reset) warn(reset.error().message);
    // A reload that systemd refused has changed nothing, and a restart may stop containers.
    if (is_docker_ && is("is-active", service_)) return failed;
    if (auto again = systemctl({"restart", service_}); !again) warn(again.error().message);
    return failed;
  }

  /// Restores the files. @return the error, with what became of them.
  Status roll_back(const Error& error) {
    const auto undone = registration_.files.roll_back();
    return fail(error.code,
                cat(error.message, "; ", undone ? "changes rolled back" : undone.error().message));
  }

  Registration& registration_;
  Outcome& outcome_;
  const Run& run_;
  std::chrono::milliseconds patience_;
  std::string service_;
  bool is_docker_;
  bool changed_;
  Restart restart_;
};

}  // namespace

Status activate(Registration& registration, const Run& run, std::chrono::milliseconds patience) {
  return Activation{registration, run, patience}.activate();
}

}  // namespace podqos::ctl
