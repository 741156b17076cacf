#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"

namespace podqos::nri {

/// A lock that allows only one plugin per state directory to serve a runtime: if two connections
/// adjust the same container, its creation fails (containerd/nri, pkg/adaptation/result.go). The
/// kernel releases it when the process ends.
class SingleInstance {
 public:
  /// Opens the state directory, which is created if it is missing.
  static Result<SingleInstance> open(const std::string& state_directory);

  /// Locks `nri.lock` there and writes the pid of this process into it.
  /// @return kTimeout: another plugin held it during the whole timeout; the error names its
  ///         process.
  [[nodiscard]] Status hold(std::chrono::milliseconds timeout,
                            const sys::Clock& clock = sys::kSteadyClock);

 private:
  explicit SingleInstance(sys::Directory directory) : directory_(std::move(directory)) {}

  sys::Directory directory_;
  std::optional<sys::FileLock> lock_;
};

}  // namespace podqos::nri
