#include "common/cgroup/discovery.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxList = 64U << 20U;  // some 400,000 mounts

/// The type of the file system at a path, one of linux/magic.h; nullopt if it cannot be told.
std::optional<long> type_at(const std::string& path) {
  struct statfs file_system{};
  if (::statfs(path.c_str(), &file_system) != 0) return std::nullopt;
  return file_system.f_type;
}

/// Whether a pure v2 host mounts its hierarchy here.
bool is_cgroup2_at(const std::string& path) {
  return type_at(path) == CGROUP2_SUPER_MAGIC;
}

Result<std::string> read_list(const std::string& path) {
  const sys::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", path));
  return sys::read_all(file.get(), kMaxList, path);
}

/// Hierarchies that podqos writes to: v2, or v1 with one of its controllers.
bool is_relevant(const Hierarchy& hierarchy) {
  return hierarchy.version == core::CgroupVersion::kV2 || has_used_controller(hierarchy);
}

/// Parses "hugepages-2048kB"; nullopt for any other name.
std::optional<Bytes> page_size_of(std::string_view name) {
  constexpr std::string_view kPrefix = "hugepages-";
  constexpr std::string_view kSuffix = "kB";
  constexpr std::int64_t kKibi = 1024;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const std::optional<std::int64_t> kilobytes = parse_int(name);
  if (!kilobytes || *kilobytes <= 0) return std::nullopt;
  return Bytes{mul_div(*kilobytes, kKibi, 1)};
}

}  // namespace

bool carries(const Hierarchy& hierarchy, const core::ControllerRow& row) {
  const bool is_v1 = hierarchy.version == core::CgroupVersion::kV1;
  const std::string_view name = is_v1 ? row.v1_name : row.v2_name;
  return std::ranges::find(hierarchy.controllers, name) != hierarchy.controllers.end();
}

bool has_used_controller(const Hierarchy& hierarchy) {
  return std::ranges::any_of(core::kControllers, [&](const core::ControllerRow& row) {
    return row.enabled == core::Enabled::kAlways && carries(hierarchy, row);
  });
}

Result<std::vector<OpenHierarchy>> find_hierarchies(const CgroupfsOptions& options) {
  std::vector<Hierarchy> mounts;
  // The common case: the unified hierarchy, without reading mountinfo.
  if (is_cgroup2_at(options.unified)) {
    mounts.push_back({.controllers = {}, .mount_point = options.unified});
  } else {
    PODQOS_ASSIGN(const auto text, read_list(options.mountinfo));
    mounts = parse_mountinfo(text);
  }
  std::vector<OpenHierarchy> hierarchies;
  std::vector<dev_t> taken;
  for (Hierarchy& mount : mounts) {
    // A hierarchy may be mounted hundreds of times, as by `mount --rbind /sys`.
    const dev_t device = mount.device;
    if (std::ranges::count(taken, device) != 0) continue;
    const bool relevant = is_relevant(mount);
    // Of several mounts one may be hidden by another.
    const bool is_only = std::ranges::count(mounts, device, &Hierarchy::device) == 1;
    OpenHierarchy hierarchy{std::move(mount), options.resolve};
    const Result<bool> usable = relevant || !is_only ? hierarchy.is_usable() : true;
    // Without it, a pod would lack limits, and its directory there would stay.
    if (!usable && relevant) return fail(usable.error());
    if (!usable.value_or(false)) continue;
    taken.push_back(device);
    hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

std::vector<std::string> mount_points(const CgroupfsOptions& options) {
  std::vector<std::string> points{options.unified};
  if (is_cgroup2_at(options.unified)) return points;
  const auto text = read_list(options.mountinfo);
  for (Hierarchy& hierarchy : parse_mountinfo(text.value_or(""))) {
    std::string& point = hierarchy.mount_point;
    if (point.starts_with(cat(options.unified, "/"))) continue;
    // Another mount may hide it.
    const auto type = type_at(point);
    if (type == CGROUP_SUPER_MAGIC || type == CGROUP2_SUPER_MAGIC)
      points.push_back(std::move(point));
  }
  return points;
}

core::CgroupLayout layout_of(const std::vector<OpenHierarchy>& hierarchies) {
  core::CgroupLayout layout;
  for (const core::ControllerRow& row : core::kControllers) {
    const auto found = std::ranges::find_if(hierarchies, [&](const OpenHierarchy& hierarchy) {
      return carries(hierarchy.description(), row);
    });
    if (found != hierarchies.end()) layout.*row.version = found->description().version;
  }
  return layout;
}

std::vector<std::string> hugepage_labels(const std::string& directory) {
  const Result<sys::Directory> pools = sys::Directory::open(directory);
  const auto names = pools ? pools->subdirectories() : fail(pools.error());
  if (!names) return {};
  std::vector<Bytes> sizes;
  for (const std::string& name : *names) {
    if (const std::optional<Bytes> size = page_size_of(name)) sizes.push_back(*size);
  }
  std::ranges::sort(sizes);
  std::vector<std::string> labels;
  labels.reserve(sizes.size());
  for (const Bytes size : sizes)
    labels.push_back(core::hugepage_label(size));
  return labels;
}

}  // namespace podqos::cgroup
