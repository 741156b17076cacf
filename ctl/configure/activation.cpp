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
#include "ctl/command.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using Time = std::chrono::sys_time<nanoseconds>;

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

/// When the process was started, by today's clock; suspensions of the machine count.
std::optional<Time> start_of(Pid pid) {
  const auto started = sys::start_time_of(pid);
  timespec now{};
  if (!started || !*started || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const auto age = seconds{now.tv_sec} + nanoseconds{now.tv_nsec} -
                   nanoseconds{seconds{1}} / ::sysconf(_SC_CLK_TCK) * (*started)->value();
  return std::chrono::system_clock::now() - age;
}

class Activation {
 public:
  Activation(Setup& setup, const Run& run, std::chrono::milliseconds patience)
      : setup_(setup), run_(run), patience_(patience), service_(setup.engine->service) {}

  Status activate() {
    setup_.stale = is_stale();
    if (setup_.changed() || (setup_.stale && may_restart())) {
      const auto checked = check();
      // Without podqos's lines the engine has another reason to refuse its configuration.
      if (!checked && setup_.undo) {
        setup_.stale = false;
        setup_.failure = checked.error();
        setup_.failure->message += "; removed anyway; not restarted";
        return {};
      }
      if (!checked) return setup_.files.roll_back(checked.error());
    }
    if (auto updated = is_docker() ? update_docker() : update_service(); !updated)
      return restart_with_old_files(updated.error());
    if (auto plugin = setup_.undo ? stop_plugin() : start_plugin(); !plugin)
      setup_.failure = std::move(plugin).error();
    return {};
  }

 private:
  [[nodiscard]] bool is_docker() const { return setup_.is(EngineId::kDocker); }
  [[nodiscard]] bool may_restart() const { return setup_.restart != Restart::kNo; }

  /// `systemctl WORDS…`.
  [[nodiscard]] Status systemctl(const std::vector<std::string>& words) const {
    const std::string command = join(words, " ");
    std::vector<std::string> argv = words;
    argv.insert(argv.begin(), kSystemctl);
    const auto end = run_(argv);
    if (!end && end.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kUnsupported,
                  cat("systemctl not found: run `systemctl ", command, "` manually"));
    if (!end) return fail(end.error());
    if (end->status == 0) return {};
    return fail(ErrorCode::kIo, cat(kSystemctl, " ", command, ": ", printable(end->output, 1000)));
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
    if (!pid || *pid <= 0) return std::nullopt;
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
    std::optional<Time> last;
    for (const std::string& path : setup_.registered_in) {
      struct stat found{};
      if (::stat(path.c_str(), &found) != 0) continue;
      const Time time{seconds{found.st_ctim.tv_sec} + nanoseconds{found.st_ctim.tv_nsec}};
      if (last && time <= *last) continue;
      last = time;
      setup_.last_changed = path;
    }
    if (!last || setup_.changed() || service_.empty() || is_docker()) return false;
    const auto pid = process();
    const auto start = pid ? start_of(*pid) : std::nullopt;
    if (!start || start >= last || *last > std::chrono::system_clock::now()) return false;
    return setup_.undo || setup_.method != Method::kNri ||
           !has_plugin(property(kPluginUnit, "StatusText"));
  }

  /// Has the engine check its configuration, if it can.
  Status check() {
    if (!setup_.program || (is_docker() && setup_.version < kDockerValidates)) return {};
    std::vector<std::string> command = parts_of(setup_.engine->check, ' ');
    command.insert(command.begin(), *setup_.program);
    PODQOS_ASSIGN(const auto end, run_(command));
    setup_.checked = end.status == 0;
    if (setup_.checked) return {};
    return fail(ErrorCode::kInvalidArgument,
                cat("`", join(command, " "),
                    "` rejected the configuration: ", printable(end.output, 2000)));
  }

  Status restart() {
    setup_.restarted = true;
    setup_.stale = false;
    return systemctl({"restart", service_});
  }

  /// Has containerd or CRI-O read what has changed.
  Status update_service() {
    const bool needed = !service_.empty() && (setup_.changed() || setup_.stale);
    return needed && may_restart() ? restart() : Status{};
  }

  /// Asks Docker's daemon, which must run, whether it has what the file says, and how many
  /// containers a restart would stop. @return false if it cannot be asked.
  bool ask_docker() {
    for (const char* client : kDockerClients) {
      const auto end = run_({client, "--host", kSocket, "info", "--format", kFormat});
      if (!end || end->status != 0) continue;
      std::string_view words = end->output;
      const auto running = parse_int(read_until(words, ' '));
      const auto paused = parse_int(read_until(words, ' '));
      if (!running || !paused) continue;
      setup_.stale = has_word(words, kHandler) == setup_.undo;
      setup_.containers = *running + *paused;
      return true;
    }
    return false;
  }

  Status update_docker() {
    // The socket is systemd's: to ask would start a daemon that is stopped. It reads the file when
    // it starts.
    if (!is("is-active", service_))
      return setup_.undo || !setup_.changed() || !may_restart() ? Status{} : restart();
    if (!ask_docker()) setup_.stale = setup_.changed();
    if (!setup_.stale || !may_restart()) return {};
    PODQOS_TRY(systemctl({"reload", service_}));
    setup_.reloaded = true;
    bool answers = false;
    static_cast<void>(wait_until(patience_, [&] {
      answers = is("is-active", service_) && ask_docker();
      return !answers || !setup_.stale;
    }));
    // A reload adds a runtime, but does not remove the last one.
    if (!answers) setup_.stale = setup_.undo;
    const bool harmless = answers && setup_.containers == 0;
    if (!setup_.stale || (setup_.restart != Restart::kForce && !harmless)) return {};
    setup_.reloaded = false;
    return restart();
  }

  Status stop_plugin() {
    const bool serves = setup_.program && setup_.engine->nri;
    if (!serves || !is("is-active", kPluginUnit)) return {};
    PODQOS_TRY(systemctl({"disable", "--now", kPluginUnit}));
    setup_.plugin_disabled = true;
    return {};
  }

  /// Starts the plugin if NRI was chosen, and waits until it is connected.
  Status start_plugin() {
    if (setup_.method != Method::kNri) return {};
    setup_.plugin_ready = is("is-active", kPluginUnit) && is("is-enabled", kPluginUnit);
    if (!may_restart()) return {};
    if (!setup_.plugin_ready) {
      PODQOS_TRY(systemctl({"enable", "--now", kPluginUnit}));
      setup_.plugin_enabled = true;
    }
    // An engine that does not run finds the plugin when it starts.
    if (!process()) return {};
    std::string status;
    bool stands_by = false;
    static_cast<void>(wait_until(patience_, [&] {
      status = property(kPluginUnit, "StatusText");
      setup_.plugin_connected = has_plugin(status);
      stands_by = status.contains("standing by until that one ends");
      return setup_.plugin_connected || stands_by;
    }));
    if (setup_.plugin_connected) return {};
    if (stands_by)
      return fail(ErrorCode::kConflict,
                  cat(kPluginUnit, " does not serve ", service_, ": ", printable(status, 500),
                      ": stop that one, or disable ", kPluginUnit));
    return fail(ErrorCode::kTimeout,
                cat(kPluginUnit, " has not connected to ", service_, " within ",
                    std::chrono::duration_cast<seconds>(patience_).count(), " s; its status: \"",
                    printable(status, 500),
                    "\"; until it has, pods are not placed: see journalctl -u ", kPluginUnit));
  }

  /// Restores the files after a start that has failed, and has the engine started with them.
  Status restart_with_old_files(const Error& error) {
    Status failed = setup_.files.roll_back(error);
    // systemd counts the starts that have failed, and may refuse one more.
    if (auto reset = systemctl({"reset-failed", service_}); !reset) warn(reset.error().message);
    // A reload that systemd refused has changed nothing, and a restart may stop containers.
    if (is_docker() && is("is-active", service_)) return failed;
    if (auto again = restart(); !again) warn(again.error().message);
    return failed;
  }

  Setup& setup_;
  const Run& run_;
  std::chrono::milliseconds patience_;
  std::string service_;
};

}  // namespace

Status activate(Setup& setup, const Run& run, std::chrono::milliseconds patience) {
  return Activation{setup, run, patience}.activate();
}

}  // namespace podqos::ctl
