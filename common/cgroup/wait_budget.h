#pragma once

#include <chrono>

namespace podqos::cgroup {

/// The total time that one transaction may wait for the kernel or systemd to release a cgroup or
/// unit: 50 ms. The state lock is held meanwhile, and all container starts on the node wait for it.
class WaitBudget {
 public:
  /// Sleeps for `time` and deducts it.
  /// @return false, without sleeping, if less than `time` is left.
  [[nodiscard]] bool wait(std::chrono::milliseconds time);

 private:
  std::chrono::milliseconds left_{50};
};

}  // namespace podqos::cgroup
