#pragma once

#include <string>

namespace podqos::cgroup {

/// A unit as ListUnitsByPatterns returns it.
/// @note org.freedesktop.systemd1(5).
struct ListedUnit {
  std::string name;
  std::string load_state;    ///< "loaded", "not-found" …
  std::string active_state;  ///< "active", "deactivating", "inactive" …
};

}  // namespace podqos::cgroup
