#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {

/// How far --restart may go.
enum class Restart : std::uint8_t {
  kNo,
  kHarmless,  ///< unless running containers would stop
  kForce,     ///< whatever it costs
};

/// What a running Docker daemon says of itself (`docker info`).
struct DockerInfo {
  bool registered = false;       ///< knows a runtime "podqos"
  bool live_restore = false;     ///< containers survive a restart of the daemon
  std::uint32_t containers = 0;  ///< running or paused
  friend bool operator==(const DockerInfo&, const DockerInfo&) = default;
};

/// What became of the daemon.
struct DockerOutcome {
  bool reloaded = false;
  bool restarted = false;
  /// The daemon still has another configuration than the file; what a restart would cost is in
  /// `containers`.
  bool stale = false;
  /// Containers that a restart stops, or has stopped: running ones of a daemon without
  /// live-restore.
  std::uint32_t containers = 0;
  friend bool operator==(const DockerOutcome&, const DockerOutcome&) = default;
};

/// docker.service and its daemon.
class DockerService {
 public:
  /// @param client    path of the client `docker`; nullopt if it is not installed
  /// @param patience  how long a reload may take to show in `docker info`
  DockerService(Run run, std::optional<std::string> client, std::chrono::milliseconds patience)
      : run_(run), systemd_(std::move(run)), client_(std::move(client)), patience_(patience) {}

  /// Asks the daemon; nullopt if it does not run or cannot be asked. Starts none.
  [[nodiscard]] std::optional<DockerInfo> ask() const;

  /// Whether the daemon has another configuration than the file.
  /// @param registered  whether the file registers podqos
  /// @param changed     whether it was changed just now: for a daemon that cannot be asked
  [[nodiscard]] DockerOutcome observe(bool registered, bool changed) const;

  /// Makes the daemon take the file as it is now: reloads it, which costs no container anything,
  /// and restarts it only where that was not enough (a reload does not forget the last runtime).
  /// Does nothing if the daemon has this configuration already.
  /// @return kIo if systemd refuses.
  [[nodiscard]] Result<DockerOutcome> update(bool registered, bool changed, Restart restart) const;

 private:
  [[nodiscard]] bool is_active() const;
  [[nodiscard]] std::optional<DockerInfo> wait_for(bool registered) const;
  [[nodiscard]] DockerOutcome compare(const std::optional<DockerInfo>& info, bool registered,
                                      bool otherwise) const;

  Run run_;
  ServiceManager systemd_;
  std::optional<std::string> client_;
  std::chrono::milliseconds patience_;
};

}  // namespace podqos::ctl
