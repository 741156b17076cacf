#pragma once

#include <string>

#include "common/base/error.h"
#include "common/sys/file_lock.h"

namespace podqos::nri {

/// The right to be the only plugin of this state directory: two connections that place the same
/// container make its creation fail. Held until the object goes, or the process, however it ends.
class SingleInstance {
 public:
  /// Locks `nri.lock` in the state directory, which is made if it is missing.
  /// @return kConflict: another plugin runs; the error names its process.
  static Result<SingleInstance> acquire(const std::string& state_directory);

 private:
  explicit SingleInstance(sys::FileLock lock) : lock_(std::move(lock)) {}
  sys::FileLock lock_;
};

}  // namespace podqos::nri
