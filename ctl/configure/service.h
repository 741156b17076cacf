#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {

constexpr const char* kPluginUnit = "podqos-nri.service";

/// Runs a program, as run_program() does.
using Run = std::function<Result<ProgramEnd>(const std::vector<std::string>& argv)>;

/// systemd, by systemctl.
class ServiceManager {
 public:
  explicit ServiceManager(Run run) : run_(std::move(run)) {}

  /// `systemctl WORDS…`.
  /// @return kUnsupported without systemctl; kIo with its output if it fails.
  [[nodiscard]] Status ask(const std::vector<std::string>& words) const;
  /// Whether `systemctl QUESTION UNIT` says so, such as is-active.
  [[nodiscard]] bool is(const char* question, const std::string& unit) const;
  /// A property of a unit; nullopt if systemd cannot be asked.
  [[nodiscard]] std::optional<std::string> property(const std::string& unit,
                                                    const char* name) const;

 private:
  Run run_;
};

/// The service of containerd or CRI-O, and podqos-nri.service beside it, as systemd sees them.
class EngineService {
 public:
  /// @param unit      "containerd.service"
  /// @param patience  how long the plugin may take to connect to an engine that has just started
  EngineService(Run run, std::string unit, std::chrono::milliseconds patience)
      : systemd_(std::move(run)), unit_(std::move(unit)), patience_(patience) {}

  /// The engine's main process; nullopt if it does not run, or not as this service.
  [[nodiscard]] std::optional<Pid> process() const;

  /// Whether the engine has run since before `change`, and so has not read what changed then. By
  /// today's clock: where it was set back beyond `change`, this is false.
  [[nodiscard]] bool is_older_than(std::chrono::sys_time<std::chrono::nanoseconds> change) const;

  /// Whether the engine that runs now sends podqos-nri its events.
  [[nodiscard]] bool has_plugin() const;

  /// Waits for has_plugin(). To be called while the engine runs.
  /// @return kTimeout, with what the plugin says and where to look.
  [[nodiscard]] Status wait_for_plugin() const;

 private:
  ServiceManager systemd_;
  std::string unit_;
  std::chrono::milliseconds patience_;
};

/// How far --restart may go.
enum class Restart : std::uint8_t {
  kNo,
  kHarmless,  ///< unless running containers would stop
  kForce,     ///< whatever it costs
};

/// What became of an engine's service.
struct ServiceOutcome {
  bool reloaded = false;
  bool restarted = false;
  bool stale = false;  ///< what runs has another configuration than the files
  /// Containers that a restart stops, or has stopped: running ones of a Docker without
  /// live-restore.
  std::int64_t containers = 0;
  friend bool operator==(const ServiceOutcome&, const ServiceOutcome&) = default;
};

/// docker.service and its daemon.
class DockerService {
 public:
  /// @param client    path of the client `docker`; nullopt if it is not installed
  /// @param patience  how long a reload may take to show in `docker info`
  DockerService(Run run, std::optional<std::string> client, std::chrono::milliseconds patience)
      : run_(run), systemd_(std::move(run)), client_(std::move(client)), patience_(patience) {}

  /// Makes the daemon take the file as it is now: reloads it, which costs no container anything,
  /// and restarts it only where that was not enough (a reload does not forget the last runtime).
  /// Does nothing if the daemon has this configuration already.
  /// @param registered  whether the file registers podqos
  /// @param changed     whether it was changed just now: for a daemon that cannot be asked
  /// @return kIo if systemd refuses.
  [[nodiscard]] Result<ServiceOutcome> update(bool registered, bool changed, Restart restart) const;

 private:
  /// What the daemon says of itself (`docker info`).
  struct Answer {
    bool registered = false;      ///< knows a runtime "podqos"
    bool live_restore = false;    ///< containers survive a restart of the daemon
    std::int64_t containers = 0;  ///< running or paused
  };
  static std::optional<Answer> parse_answer(std::string_view line);
  /// nullopt if the daemon does not run or cannot be asked. Starts none.
  [[nodiscard]] std::optional<Answer> ask(bool active) const;
  [[nodiscard]] std::optional<Answer> wait_for(bool registered) const;
  static ServiceOutcome compare(const std::optional<Answer>& answer, bool registered,
                                bool otherwise);

  Run run_;
  ServiceManager systemd_;
  std::optional<std::string> client_;
  std::chrono::milliseconds patience_;
};

}  // namespace podqos::ctl
