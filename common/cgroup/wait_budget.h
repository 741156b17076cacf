#pragma once

#include <chrono>

namespace podqos::cgroup {

/// How long an event may wait, in all, until the kernel or systemd has let go of what has ended:
/// the lock of the state is held meanwhile, and every start on the node waits for it.
class WaitBudget {
 public:
  /// Sleeps for `time`. @return false, without sleeping, where less than that is left.
  [[nodiscard]] bool wait(std::chrono::milliseconds time);

 private:
  std::chrono::milliseconds left_{50};
};

}  // namespace podqos::cgroup
