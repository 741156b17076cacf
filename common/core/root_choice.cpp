#include "common/core/root_choice.h"

#include <cstddef>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/core/naming.h"
#include "common/core/pod_plan.h"
#include "common/core/tree.h"

namespace podqos::core {

namespace {

/// `cgroup_root` without the suffixes of slices: "/mine" of "/mine.slice".
std::string without_slices(std::string_view cgroup_root) {
  constexpr std::string_view kSlice = ".slice";
  std::string path;
  for (std::string name : parse_cgroupfs(cgroup_root)) {
    if (name.ends_with(kSlice)) name.resize(name.size() - kSlice.size());
    if (!name.empty()) path += cat("/", name);
  }
  return path;
}

/// Checks that cgroupRoot can be a slice, with room for those of its pods in their names.
/// @note systemd src/basic/unit-name.h: VALID_CHARS, UNIT_NAME_MAX
Status check_slices(std::string_view cgroup_root) {
  constexpr std::string_view kAllowed =
      "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:-.@";
  constexpr std::string_view kLongestPod =
      "-kubepods-besteffort-pod01234567-89ab-cdef-0123-456789abcdef.slice";
  constexpr std::size_t kMaxUnitName = 255;
  constexpr std::size_t kMaxSize = kMaxUnitName - kLongestPod.size();
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument,
                cat("cgroupRoot \"", printable(cgroup_root), "\": with the systemd driver, ", why));
  };
  while (cgroup_root.ends_with('/'))
    cgroup_root.remove_suffix(1);
  if (const std::string plain = without_slices(cgroup_root); plain != cgroup_root)
    return refuse(cat("podqos makes the slice of a name: write \"", printable(plain), "\""));
  if (cgroup_root.find_first_not_of(kAllowed) != std::string_view::npos)
    return refuse("a name consists of letters, digits and \":-.@\"");
  // The name of the slice lacks the first "/" of the path.
  if (cgroup_root.size() > kMaxSize + 1) return refuse(cat("it has at most ", kMaxSize, " bytes"));
  return {};
}

}  // namespace

Result<RootChoice> choose_root(const TiersRecord& tiers, std::string_view cgroup_root,
                               Driver driver) {
  if (const TreeRecord* in_use = tree_in_use(tiers, driver))
    return RootChoice{.step = RootStep::kUse, .root = in_use->kubepods};
  std::string root = root_path(cgroup_root, driver);
  if (tree_at(tiers, root) != nullptr)
    return RootChoice{.step = RootStep::kUse, .root = std::move(root)};
  if (driver == Driver::kSystemd) {
    PODQOS_TRY(check_slices(cgroup_root));
  }
  return RootChoice{.step = RootStep::kCheck, .root = std::move(root)};
}

Status check_root(const std::string& root, const RootSnapshot& snapshot) {
  if (!snapshot.exists || snapshot.marked || snapshot.made_by_engine) return {};
  return fail(
      ErrorCode::kConflict,
      cat("cgroup ", root,
          " exists but was not created by podqos: set cgroupRoot to a cgroup reserved for podqos "
          "(default: /podqos), or remove ",
          root, " (rmdir) if nothing uses it"));
}

}  // namespace podqos::core
