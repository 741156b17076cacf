#pragma once

#include <chrono>
#include <string>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/file_lock.h"

namespace podqos::nri {

/// The right to be the only plugin of this state directory: two connections that place the same
/// container make its creation fail. Held until the object goes, or the process, however it ends.
class SingleInstance {
 public:
  /// How long a plugin may take to end: it sees that its runtime has gone when it has answered what
  /// that one asked last. Below the 5 s that a runtime gives a plugin to register.
  static constexpr std::chrono::milliseconds kTimeout{3000};

  /// Locks `nri.lock` in the state directory, which is made if it is missing.
  /// @return kConflict: another plugin runs, and did so all the time; the error names its process.
  static Result<SingleInstance> acquire(const std::string& state_directory,
                                        std::chrono::milliseconds timeout = kTimeout,
                                        const sys::Clock& clock = sys::kSteadyClock);

 private:
  explicit SingleInstance(sys::FileLock lock) : lock_(std::move(lock)) {}
  sys::FileLock lock_;
};

}  // namespace podqos::nri
