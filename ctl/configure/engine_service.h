#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {

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

}  // namespace podqos::ctl
