#include "common/cgroup/wait_budget.h"

#include <thread>

namespace podqos::cgroup {

bool WaitBudget::wait(std::chrono::milliseconds time) {
  if (time > left_) return false;
  left_ -= time;
  std::this_thread::sleep_for(time);
  return true;
}

}  // namespace podqos::cgroup
