#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"

namespace podqos::nri {

/// Whether a process runs the same program as this one, by its name.
[[nodiscard]] bool is_plugin(Pid pid);

/// A lock that allows only one plugin per state directory to serve a runtime: if two connections
/// adjust the same container, its creation fails (containerd/nri, pkg/adaptation/result.go). The
/// kernel releases it if the process ends without the destructor.
class SingleInstance {
 public:
  /// How long to wait for a previous plugin to exit: it notices the end of its runtime only after
  /// answering the last request. Below the 5 s that a runtime grants for the registration.
  static constexpr std::chrono::milliseconds kTimeout{3000};

  /// Locks `nri.lock` in the state directory, which is created if it is missing.
  /// @return kConflict: another plugin held the lock during the whole timeout; the error names its
  ///         process.
  static Result<SingleInstance> acquire(const std::string& state_directory,
                                        std::chrono::milliseconds timeout = kTimeout,
                                        const sys::Clock& clock = sys::kSteadyClock);

  /// How long take() waits for the holder to yield: it answers no request meanwhile, and a round of
  /// its housekeeping takes half a second. Below the 2 s that a runtime grants for Synchronize.
  static constexpr std::chrono::milliseconds kYieldTimeout{1000};

  /// As acquire(), but the lock may stay with another plugin until take() is called.
  static Result<SingleInstance> contend(const std::string& state_directory,
                                        const sys::Clock& clock = sys::kSteadyClock);

  [[nodiscard]] bool is_held() const { return lock_.has_value(); }
  /// Locks `nri.lock` if it is free.
  /// @return kConflict: another plugin holds it
  [[nodiscard]] Status hold() { return lock({}); }
  /// Locks `nri.lock`; a plugin that holds it is sent SIGUSR1 and has `timeout` to release it. To
  /// be called once the runtime was found to be in this pid namespace, where the holder then is,
  /// too.
  /// @return kConflict: it did not, or `nri.lock` does not name it
  [[nodiscard]] Status take(std::chrono::milliseconds timeout = kYieldTimeout);
  /// Releases the lock: another plugin serves the runtime from now on.
  void release() { lock_.reset(); }

 private:
  SingleInstance(sys::Directory directory, const sys::Clock& clock)
      : directory_(std::move(directory)), clock_(&clock) {}
  /// Opens the state directory.
  static Result<SingleInstance> open(const std::string& state_directory, const sys::Clock& clock);
  /// Locks `nri.lock` within `timeout`, and names this process in it.
  [[nodiscard]] Status lock(std::chrono::milliseconds timeout);

  sys::Directory directory_;
  const sys::Clock* clock_;
  std::optional<sys::FileLock> lock_;
};

}  // namespace podqos::nri
