#include "common/core/layout.h"

#include <algorithm>

namespace podqos::core {

const ControllerRow& row_of(Controller controller) {
  return *std::ranges::find(kControllers, controller, &ControllerRow::controller);
}

std::optional<CgroupVersion> CgroupLayout::version_of(Controller controller) const {
  return this->*row_of(controller).version;
}

}  // namespace podqos::core
