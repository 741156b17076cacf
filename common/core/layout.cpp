#include "common/core/layout.h"

namespace podqos::core {

std::optional<CgroupVersion> CgroupLayout::version_of(Controller controller) const {
  switch (controller) {
    case Controller::kCpu: return cpu;
    case Controller::kMemory: return memory;
    case Controller::kHugetlb: return hugetlb;
    case Controller::kPids: return pids;
    case Controller::kCpuset: return cpuset;
  }
  return std::nullopt;
}

}  // namespace podqos::core
