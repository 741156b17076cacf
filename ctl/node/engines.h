#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "ctl/configure/daemon.h"
#include "ctl/configure/setup.h"
#include "ctl/node/finding.h"
#include "ctl/node/systemd_units.h"

namespace podqos::ctl {

/// The podqos-nri that serves the node's runtime or waits for one: systemd's, a DaemonSet's, or one
/// that was started in another way.
struct PluginFacts {
  std::optional<Pid> process = std::nullopt;  ///< nullopt: it has ended
  std::string status = {};                    ///< see served_process()
};

/// What was found of an engine that is installed.
struct EngineFacts {
  const Engine* engine = nullptr;
  std::optional<Version> version = std::nullopt;
  std::optional<Error> unknown = std::nullopt;  ///< why the version is not known
  std::optional<Pid> process = std::nullopt;    ///< of its daemon, which runs
  std::vector<Method> registered = {};          ///< what its files have
  bool outdated = false;  ///< `configure` would write other lines for one of these
  std::optional<Error> refusal = std::nullopt;  ///< why `configure` would not register podqos
  /// A runtime of podqos's name that is another program.
  std::optional<Error> wrong = std::nullopt;
  std::vector<std::string> missing = {};  ///< programs that are registered and do not exist
  std::optional<std::string> unread = std::nullopt;  ///< unread_file() of the registration
  /// Of Docker, while it runs.
  std::optional<Result<DockerAnswer>> docker = std::nullopt;
  EngineSettings settings = {};
  /// podqos-nri.service; nullopt if systemd cannot be asked.
  std::optional<UnitState> unit = std::nullopt;
  /// nullopt: none has run since the node was booted, as far as the caller may see.
  std::optional<PluginFacts> plugin = std::nullopt;
  /// Pods of its that podqos manages; nullopt: not looked for.
  std::optional<std::size_t> pods = std::nullopt;

  [[nodiscard]] bool has_daemon() const { return !engine->service.empty(); }
  [[nodiscard]] bool is_registered(Method method) const;
  /// Whether the plugin serves the daemon that runs.
  [[nodiscard]] bool is_connected() const;
  /// Whether the running daemon has podqos's registration; nullopt if it cannot be told, or there
  /// is no daemon.
  [[nodiscard]] std::optional<bool> known() const;
};

/// Looks at each engine that is installed, and asks those that run. Each question ends within 10 s.
/// To be called before narrow(), since it executes programs of engines.
/// @param units  of read_units(); empty if systemd cannot be asked
[[nodiscard]] std::vector<EngineFacts> read_engines(const Units& units,
                                                    const std::string& state_dir, const Run& run);

/// By nri.lock in the state directory; by the unit where the caller may not read that, or the unit
/// has not locked it yet.
[[nodiscard]] std::optional<PluginFacts> read_plugin(const std::string& state_dir,
                                                     const std::optional<UnitState>& unit);

/// The units that read_engines() wants to know of.
[[nodiscard]] std::vector<std::string> units_of_engines();

/// What is right and wrong with an engine's registration; the group of the checks is its name.
[[nodiscard]] Findings check_engine(const EngineFacts& facts);

/// "hooks and wrapper"; "" if it is not registered.
[[nodiscard]] std::string registered_by(const EngineFacts& facts);

/// run_program() that waits for 10 s.
[[nodiscard]] Result<std::string> run_briefly(const std::vector<std::string>& argv);

}  // namespace podqos::ctl
