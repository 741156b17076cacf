#include "common/cgroup/nested.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace podqos::cgroup {

namespace {

/// Bounds the descriptors: below it the walk goes on, and leaves what is above to the next call.
constexpr std::size_t kMaxOpen = 128;

/// A cgroup on the way down, and those of its children that are still to be removed.
struct Level {
  sys::Directory cgroup;
  std::vector<std::string> children;
  bool was_in_last = false;  ///< what is nested in the last child was gone through
};

}  // namespace

bool remove_nested(const sys::Directory& parent, std::string_view name, int& steps) {
  bool removed = false;
  std::vector<Level> way;
  const auto enter = [&](const sys::Directory& above, std::string_view child) {
    auto cgroup = above.open_directory(child);
    if (!cgroup) return;
    auto children = cgroup->subdirectories(static_cast<std::size_t>(steps));
    if (!children) return;
    if (way.size() == kMaxOpen) way.erase(way.begin());
    way.push_back({.cgroup = std::move(*cgroup), .children = std::move(*children)});
  };
  if (steps > 0) enter(parent, name);
  while (!way.empty() && steps > 0) {
    Level& here = way.back();
    if (here.children.empty()) {
      way.pop_back();
      continue;
    }
    const std::string child = here.children.back();
    const auto gone = here.cgroup.remove_directory(child);
    const bool is_removed = gone && *gone;
    removed = removed || is_removed;
    steps -= is_removed ? kRemovalSteps : 1;
    // Refused for what is nested in it, or else for a process or a mount.
    const bool goes_in = !gone && !here.was_in_last;
    here.was_in_last = goes_in;
    if (!goes_in) {
      here.children.pop_back();
      continue;
    }
    enter(here.cgroup, child);
  }
  return removed;
}

}  // namespace podqos::cgroup
