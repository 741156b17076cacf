#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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

/// What became of the daemon.
struct DockerOutcome {
  bool reloaded = false;
  bool restarted = false;
  /// The daemon still has another configuration than the file; what a restart would cost is in
  /// `containers`.
  bool stale = false;
  /// Containers that a restart stops, or has stopped: running ones of a daemon without
  /// live-restore.
  std::int64_t containers = 0;
  friend bool operator==(const DockerOutcome&, const DockerOutcome&) = default;
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
  [[nodiscard]] Result<DockerOutcome> update(bool registered, bool changed, Restart restart) const;

 private:
  /// What the daemon says of itself (`docker info`).
  struct DockerInfo {
    bool registered = false;      ///< knows a runtime "podqos"
    bool live_restore = false;    ///< containers survive a restart of the daemon
    std::int64_t containers = 0;  ///< running or paused
  };
  static std::optional<DockerInfo> parse_info(std::string_view line);
  /// Asks the daemon; nullopt if it does not run or cannot be asked. Starts none.
  [[nodiscard]] std::optional<DockerInfo> ask(bool active) const;
  [[nodiscard]] std::optional<DockerInfo> wait_for(bool registered) const;
  [[nodiscard]] static DockerOutcome compare(const std::optional<DockerInfo>& info, bool registered,
                                             bool otherwise);

  Run run_;
  ServiceManager systemd_;
  std::optional<std::string> client_;
  std::chrono::milliseconds patience_;
};

}  // namespace podqos::ctl
