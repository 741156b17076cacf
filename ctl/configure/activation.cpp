#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/base/units.h"
#include "ctl/configure/daemon.h"
#include "ctl/configure/setup.h"
#include "ctl/node/systemd_units.h"

namespace podqos::ctl {
namespace {

using std::chrono::seconds;

/// Each question to a service starts a program.
constexpr std::chrono::milliseconds kInterval{100};
/// Of a reload that removes its last runtime, Docker never shows anything.
constexpr std::chrono::milliseconds kRemovalPatience{10'000};
/// dockerd --validate came with this version.
constexpr Version kDockerValidates{.major = 23, .minor = 0};

class Activation {
 public:
  Activation(Setup& setup, const Run& run, std::chrono::milliseconds patience)
      : setup_(setup), run_(run), patience_(patience), service_(setup.engine->service) {}

  Status activate() {
    find_stale();
    if (setup_.changed() || (setup_.stale && may_restart())) {
      auto checked = check();
      if (!checked && !setup_.undo) return setup_.files.roll_back(std::move(checked).error());
      // Without podqos's lines the engine has another reason to refuse its configuration.
      if (!checked) {
        setup_.stale = false;
        setup_.failure = std::move(checked).error();
        setup_.failure->message += "; removed anyway; not restarted";
        return {};
      }
    }
    if (!setup_.is_service()) return {};
    if (auto updated = is_docker() ? update_docker() : update_service(); !updated)
      return restart_with_old_files(updated.error());
    if (setup_.stale) setup_.events["stale"] = cat(service_, why_stale_);
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
    auto done = run_(argv);
    if (done) return {};
    if (done.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kUnsupported,
                  cat("systemctl not found: run `systemctl ", command, "` manually"));
    return fail(std::move(done).error().with_context(cat(kSystemctl, " ", command)));
  }

  /// What systemd says of a unit; nothing if it cannot be asked.
  [[nodiscard]] UnitState unit(const std::string& name) const {
    const auto units = read_units({&name, 1}, run_);
    return units ? units->begin()->second : UnitState{};
  }

  /// The engine's main process; nullopt if it does not run, or not as this service.
  [[nodiscard]] std::optional<Pid> process() const { return unit(service_).process; }

  /// Whether the plugin serves the engine that runs now.
  [[nodiscard]] bool has_plugin(std::string_view status) const {
    const auto runtime = process();
    return runtime && served_process(status) == runtime;
  }

  /// Finds out whether containerd or CRI-O has run since before a file changed that is right by
  /// now. A plugin that is connected shows that NRI is on.
  void find_stale() {
    const auto& files = setup_.registered_in;
    if (setup_.changed() || service_.empty() || is_docker() || files.empty() ||
        !setup_.is_service())
      return;
    const auto pid = process();
    const auto file = pid ? unread_file(files, *pid) : std::nullopt;
    if (!file) return;
    setup_.stale =
        setup_.undo || setup_.method != Method::kNri || !has_plugin(unit(kPluginUnit).status);
    why_stale_ = cat(" has not been restarted since ", *file, " changed, and ",
                     setup_.undo ? "may still have podqos registered" : "may not know podqos yet");
  }

  /// Has the engine check its configuration, if it can.
  Status check() {
    if (!setup_.program || (is_docker() && setup_.version < kDockerValidates)) return {};
    std::vector<std::string> command = parts_of(setup_.engine->check, ' ');
    if (!setup_.config.empty())
      command.insert(command.begin(), {std::string{setup_.engine->config_option}, setup_.config});
    command.insert(command.begin(), *setup_.program);
    if (const auto done = run_(command); !done)
      return fail(
          ErrorCode::kInvalidArgument,
          cat("`", join(command, " "), "` rejected the configuration: ", done.error().message));
    setup_.events["checked"] = cat(setup_.engine->title, " accepts its configuration");
    return {};
  }

  Status restart() {
    setup_.stale = false;
    setup_.events["restarted"] = cat(service_, " restarted");
    if (setup_.containers > 0)
      setup_.events["restarted"] +=
          cat(", which stopped ", format_count(setup_.containers, "running container"),
              ": live-restore is off");
    return systemctl({"restart", service_});
  }

  /// Has containerd or CRI-O read what has changed.
  Status update_service() {
    const bool needed = !service_.empty() && (setup_.changed() || setup_.stale);
    return needed && may_restart() ? restart() : Status{};
  }

  /// Asks Docker's daemon, which must run, whether it has what the file says, and how many
  /// containers a restart would stop. @return false if it cannot be asked.
  bool update_from_docker() {
    const auto answer = ask_docker(run_);
    if (!answer) return false;
    const bool is_default = answer->default_runtime == kHandler;
    setup_.stale = answer->knows_podqos == setup_.undo || (setup_.set_default && !is_default);
    setup_.containers = answer->containers;
    return true;
  }

  Status update_docker() {
    why_stale_ = cat(setup_.undo ? " still knows" : " does not know",
                     " the runtime \"podqos\": it has not read this configuration yet");
    // The socket is systemd's: to ask would start a daemon that is stopped. It reads the file when
    // it starts.
    if (!unit(service_).active)
      return setup_.undo || !setup_.changed() || !may_restart() ? Status{} : restart();
    if (!update_from_docker()) setup_.stale = setup_.changed();
    if (!setup_.stale || !may_restart()) return {};
    PODQOS_TRY(systemctl({"reload", service_}));
    bool answers = false;
    wait_until(setup_.undo ? std::min(patience_, kRemovalPatience) : patience_, kInterval, [&] {
      answers = unit(service_).active && update_from_docker();
      return !answers || !setup_.stale;
    });
    // A reload adds a runtime, but does not remove the last one.
    if (!answers) setup_.stale = setup_.undo;
    const bool harmless = answers && setup_.containers == 0;
    if (setup_.stale && (setup_.restart == Restart::kForce || harmless)) return restart();
    setup_.events["reloaded"] = cat(service_, " reloaded");
    return {};
  }

  Status stop_plugin() {
    if (!setup_.program || !setup_.engine->nri) return {};
    const UnitState plugin = unit(kPluginUnit);
    if (!plugin.active) return {};
    const auto served = served_process(plugin.status);
    // One that has ended was this engine before a restart.
    if (served && served != process() && start_of(*served)) {
      setup_.notes.push_back(cat(kPluginUnit, " stays: it serves another engine than ",
                                 setup_.engine->title, ", and is ", printable(plugin.status, 500)));
      return {};
    }
    PODQOS_TRY(systemctl({"disable", "--now", kPluginUnit}));
    setup_.events["pluginDisabled"] = cat(kPluginUnit, " stopped and disabled");
    return {};
  }

  /// Starts the plugin if NRI was chosen, and waits until it is connected.
  Status start_plugin() {
    if (setup_.method != Method::kNri) return {};
    const UnitState plugin = unit(kPluginUnit);
    setup_.plugin_ready = plugin.active && plugin.enabled;
    if (!may_restart()) return {};
    if (!setup_.plugin_ready) {
      PODQOS_TRY(systemctl({"enable", "--now", kPluginUnit}));
      setup_.events["pluginEnabled"] = cat(kPluginUnit, " enabled and started");
      setup_.plugin_ready = true;
    }
    // An engine that does not run finds the plugin when it starts.
    if (!process()) return {};
    std::string status;
    bool connected = false;
    bool stands_by = false;
    wait_until(patience_, kInterval, [&] {
      status = unit(kPluginUnit).status;
      connected = has_plugin(status);
      stands_by = status.contains("standing by until that one ends");
      return connected || stands_by;
    });
    if (stands_by)
      return fail(ErrorCode::kConflict,
                  cat(kPluginUnit, " does not serve ", service_, ": ", printable(status, 500),
                      ": stop that one, or disable ", kPluginUnit));
    if (!connected)
      return fail(ErrorCode::kTimeout,
                  cat(kPluginUnit, " has not connected to ", service_, " within ",
                      std::chrono::duration_cast<seconds>(patience_).count(), " s; its status: \"",
                      printable(status, 500),
                      "\"; until it has, pods are not placed: see journalctl -u ", kPluginUnit));
    setup_.events["pluginConnected"] = cat(kPluginUnit, " is connected to ", setup_.engine->title);
    return {};
  }

  /// Restores the files after a start that has failed, and has the engine started with them.
  Status restart_with_old_files(const Error& error) {
    Status failed = setup_.files.roll_back(error);
    const auto add = [&](const Status& done) {
      if (!done) failed.error().message += cat("; ", done.error().message);
    };
    // systemd counts the starts that have failed, and may refuse one more.
    add(systemctl({"reset-failed", service_}));
    // A reload that systemd refused has changed nothing, and a restart may stop containers.
    if (is_docker() && unit(service_).active) return failed;
    add(restart());
    return failed;
  }

  Setup& setup_;
  const Run& run_;
  std::chrono::milliseconds patience_;
  std::string service_;
  std::string why_stale_;  ///< behind the service's name
};

}  // namespace

Status activate(Setup& setup, const Run& run, std::chrono::milliseconds patience) {
  return Activation{setup, run, patience}.activate();
}

}  // namespace podqos::ctl
