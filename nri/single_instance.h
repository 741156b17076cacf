#pragma once

#include <chrono>
#include <string>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/file_lock.h"

namespace podqos::nri {

/// A lock that allows only one plugin per state directory: if two connections adjust the same
/// container, its creation fails (containerd/nri, pkg/adaptation/result.go). The kernel releases it
/// if the process ends without the destructor.
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

 private:
  explicit SingleInstance(sys::FileLock lock) : lock_(std::move(lock)) {}
  sys::FileLock lock_;
};

}  // namespace podqos::nri
