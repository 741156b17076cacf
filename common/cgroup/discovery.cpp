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
#include "common/sys/atomic_file.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxList = 64U << 20U;  // some 400,000 mounts

/// The file in the state directory that caches lines of mountinfo, and its maximum size.
constexpr std::string_view kCacheName = "mountinfo";
constexpr std::size_t kMaxCache = std::size_t{64} << 10U;

/// The inode number of a hierarchy's root: kernfs_create_root() allocates it first. A bind mount of
/// a part, or a cgroup namespace, has another one.
constexpr ino_t kTopmost = 1;

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

Result<std::string> read_list(const std::string& path, sys::FileEnd end) {
  const sys::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", path));
  return sys::read_all(file.get(), kMaxList, path, end);
}

/// Hierarchies that podqos writes to: v2, or v1 with one of its controllers.
bool is_relevant(const Hierarchy& hierarchy) {
  return hierarchy.version == core::CgroupVersion::kV2 || has_used_controller(hierarchy);
}

/// Opens the relevant ones of hierarchies, and drops those that are gone.
Result<std::vector<OpenHierarchy>> usable_of(std::vector<Hierarchy> mounted, sys::Resolve resolve) {
  std::vector<OpenHierarchy> hierarchies;
  for (Hierarchy& description : mounted) {
    const bool relevant = is_relevant(description);
    OpenHierarchy hierarchy{std::move(description), resolve};
    // Without it, a pod would lack limits, and its directory there would stay.
    PODQOS_ASSIGN(const bool usable, relevant ? hierarchy.is_usable() : true);
    if (usable) hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

/// The active hierarchies of the kernel, mounted or not, from /proc/self/cgroup: "4:memory\n" for
/// each; nullopt if they cannot be read. The kernel does not reuse a hierarchy number soon, so that
/// an equal text means the same hierarchies.
/// @note cgroups(7), "/proc/[pid]/cgroup"
std::optional<std::string> active_hierarchies(const std::string& path) {
  // The kernel produces the file in one piece: proc_cgroup_show() in kernel/cgroup/cgroup.c.
  const auto text = read_list(path, sys::FileEnd::kShortRead);
  if (!text) return std::nullopt;
  std::string active;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = read_until(rest, '\n');
    const std::string_view number = read_until(line, ':');
    active += cat(number, ":", read_until(line, ':'), "\n");
  }
  return active;
}

/// Whether these are all active hierarchies, and each relevant one is mounted where its description
/// says.
bool are_all(std::vector<OpenHierarchy>& hierarchies, std::string_view active) {
  return std::ranges::count(active, '\n') == std::ssize(hierarchies) &&
         std::ranges::all_of(hierarchies, [](OpenHierarchy& hierarchy) {
           return !is_relevant(hierarchy.description()) || hierarchy.root_inode() == kTopmost;
         });
}

/// The hierarchies that an earlier transaction cached; nullopt if one was added, removed or moved
/// since.
std::optional<std::vector<OpenHierarchy>> cached_hierarchies(const CgroupfsOptions& options,
                                                             const std::string& active) {
  const auto text = options.mountinfo_cache->read_file(kCacheName, kMaxCache);
  const std::string head = cat(active, "\n");
  if (!text || !text->starts_with(head)) return std::nullopt;
  auto hierarchies =
      usable_of(parse_mountinfo(std::string_view{*text}.substr(head.size())), options.resolve);
  if (!hierarchies || !are_all(*hierarchies, active)) return std::nullopt;
  return std::move(*hierarchies);
}

/// Reads the hierarchies from mountinfo, without those that another mount hides, and each only
/// once. Caches the relevant lines unless the next transaction would reject them.
Result<std::vector<OpenHierarchy>> mounted_hierarchies(const CgroupfsOptions& options,
                                                       const std::optional<std::string>& active) {
  PODQOS_ASSIGN(const auto text, read_list(options.mountinfo, sys::FileEnd::kEmptyRead));
  std::vector<OpenHierarchy> hierarchies;
  std::vector<Hierarchy> described;
  for (Hierarchy& mount : parse_mountinfo(text)) {
    // A hierarchy may be mounted hundreds of times, as by `mount --rbind /sys`.
    const bool is_known = std::ranges::count(described, mount.device, &Hierarchy::device) != 0;
    if (is_known) continue;
    const bool relevant = is_relevant(mount);
    OpenHierarchy hierarchy{std::move(mount), options.resolve};
    const auto usable = hierarchy.is_usable();
    if (!usable && relevant) return fail(usable.error());
    if (!usable || !*usable || !hierarchy.root_inode()) continue;
    described.push_back(hierarchy.description());
    hierarchies.push_back(std::move(hierarchy));
  }
  // Best effort: after a failure the next transaction reads mountinfo again.
  if (active && are_all(hierarchies, *active)) {
    static_cast<void>(sys::replace_file(*options.mountinfo_cache, kCacheName,
                                        cat(*active, "\n", lines_about(described, text)))
                          .has_value());
  }
  return hierarchies;
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
  // The common case: the unified hierarchy, without reading mountinfo.
  if (is_cgroup2_at(options.unified)) {
    return usable_of(
        {{.version = core::CgroupVersion::kV2, .controllers = {}, .mount_point = options.unified}},
        options.resolve);
  }
  const auto active =
      options.mountinfo_cache != nullptr ? active_hierarchies(options.own_cgroups) : std::nullopt;
  if (active) {
    if (auto known = cached_hierarchies(options, *active)) return std::move(*known);
  }
  return mounted_hierarchies(options, active);
}

std::vector<std::string> mount_points(const CgroupfsOptions& options) {
  std::vector<std::string> points{options.unified};
  if (is_cgroup2_at(options.unified)) return points;
  auto text = options.mountinfo_cache != nullptr
                  ? options.mountinfo_cache->read_file(kCacheName, kMaxCache)
                  : fail(ErrorCode::kNotFound, "nothing is cached");
  if (!text) text = read_list(options.mountinfo, sys::FileEnd::kEmptyRead);
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

std::string_view controller_name(core::Controller controller) {
  return core::row_of(controller).v2_name;
}

}  // namespace podqos::cgroup
