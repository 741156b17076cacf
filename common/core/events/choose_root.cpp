#include "common/core/events/choose_root.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// `cgroup_root` without the suffixes of slices: "/mine" of "/mine.slice".
std::string without_slices(std::string_view cgroup_root) {
  std::string path;
  for (std::string_view name : parts_of(cgroup_root, '/')) {
    if (name.ends_with(kSlice)) name.remove_suffix(kSlice.size());
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

Result<std::string> choose_root(const NodeState& state, std::string_view cgroup_root,
                                Driver driver) {
  if (const TreeRecord* in_use = tree_in_use(state, driver)) return in_use->kubepods;
  std::string root = root_path(cgroup_root, driver);
  if (driver == Driver::kSystemd && tree_at(state, root) == nullptr)
    PODQOS_TRY(check_slices(cgroup_root));
  return root;
}

Status check_root(const std::string& root, CgroupOrigin origin) {
  if (origin != CgroupOrigin::kOther) return {};
  return fail(
      ErrorCode::kConflict,
      cat("cgroup ", root,
          " exists but was not created by podqos: set cgroupRoot to a cgroup reserved for podqos "
          "(default: /podqos), or remove ",
          root, " (rmdir) if nothing uses it"));
}

std::vector<std::string> with_parents(std::string_view path) {
  std::vector<std::string> out;
  while (path.size() > 1) {
    out.emplace_back(path);
    path = parent_of(path);
  }
  return out;
}

Plan plan_root(NodeState& state, const std::string& kubepods,
               std::span<const std::string> missing) {
  TreeRecord* tree = tree_at(state, kubepods);
  if (tree == nullptr) tree = &state.trees.emplace_back(TreeRecord{.kubepods = kubepods});
  // A transaction interrupted here may have left directories without marks.
  const std::string known = tree->top;
  std::vector<std::string> made;
  for (std::string& path : with_parents(kubepods))
    if (path == kubepods || is_at_or_below(path, known) || std::ranges::count(missing, path) > 0)
      made.push_back(std::move(path));
  tree->top = made.back() == kubepods ? "" : made.back();
  Plan plan = plan_tree(kubepods, tree->top);
  // Without support for the attribute, only the state directory names the root.
  for (std::string& path : made)
    plan.emplace_back(SetAttribute{.path = std::move(path),
                                   .name = kMadeAttribute,
                                   .value = kMade,
                                   .on_refusal = OnRefusal::kIgnoreIfUnsupported});
  return plan;
}

void forget_root(NodeState& state, std::string_view kubepods) {
  std::erase_if(state.trees, [&](const TreeRecord& tree) { return tree.kubepods == kubepods; });
}

}  // namespace podqos::core
