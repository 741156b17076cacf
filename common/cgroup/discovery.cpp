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
#include "common/core/hugepages.h"
#include "common/sys/atomic_file.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxList = 64U << 20U;  // some 400,000 mounts

/// The file in the state directory that caches lines of mountinfo, and its maximum size.
constexpr std::string_view kMemoryName = "mountinfo";
constexpr std::size_t kMaxMemory = std::size_t{64} << 10U;

/// Whether a pure v2 host mounts its hierarchy here.
bool is_cgroup2_at(const std::string& path) {
  struct statfs file_system{};
  return ::statfs(path.c_str(), &file_system) == 0 && file_system.f_type == CGROUP2_SUPER_MAGIC;
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

/// Drops relevant hierarchies that are gone; others stay unopened.
Result<std::vector<OpenHierarchy>> usable_of(std::vector<Hierarchy> mounted, sys::Resolve resolve) {
  std::vector<OpenHierarchy> hierarchies;
  for (Hierarchy& description : mounted) {
    const bool relevant = is_relevant(description);
    OpenHierarchy hierarchy{std::move(description), resolve};
    const Result<bool> usable = relevant ? hierarchy.is_usable() : true;
    // Without it, a pod would lack limits, and its directory there would stay.
    if (!usable) return fail(usable.error());
    if (*usable) hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

/// Whether each relevant hierarchy is still mounted where its description says.
bool are_described(std::vector<OpenHierarchy>& hierarchies) {
  return std::ranges::all_of(hierarchies, [](OpenHierarchy& hierarchy) {
    return !is_relevant(hierarchy.description()) || hierarchy.is_described();
  });
}

/// The active hierarchies of the kernel, mounted or not.
struct ActiveHierarchies {
  /// "4:memory\n" for each hierarchy. The kernel does not reuse a hierarchy number soon, so that an
  /// equal text means the same hierarchies.
  std::string names;
  std::ptrdiff_t count = 0;
};

/// Reads /proc/self/cgroup; nullopt if it cannot be read.
/// @note cgroups(7), "/proc/[pid]/cgroup"
std::optional<ActiveHierarchies> read_active_hierarchies(const std::string& path) {
  // The kernel produces the file in one piece: proc_cgroup_show() in kernel/cgroup/cgroup.c.
  const auto text = read_list(path, sys::FileEnd::kShortRead);
  if (!text) return std::nullopt;
  ActiveHierarchies active;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    active.names += cat(line.substr(0, line.find(':', line.find(':') + 1)), "\n");
    ++active.count;
  }
  return active;
}

/// The hierarchies that an earlier transaction cached; nullopt if one was added, removed or moved
/// since.
std::optional<std::vector<OpenHierarchy>> cached_hierarchies(const CgroupfsOptions& options,
                                                             const ActiveHierarchies& active) {
  const auto text = options.memory->read_file(kMemoryName, kMaxMemory);
  const std::string head = cat(active.names, "\n");
  if (!text || !text->starts_with(head)) return std::nullopt;
  std::vector<Hierarchy> mounted = parse_mountinfo(std::string_view{*text}.substr(head.size()));
  if (std::ssize(mounted) != active.count) return std::nullopt;
  auto hierarchies = usable_of(std::move(mounted), options.resolve);
  if (!hierarchies || std::ssize(*hierarchies) != active.count || !are_described(*hierarchies))
    return std::nullopt;
  return std::move(*hierarchies);
}

/// Best effort: after a failure the next transaction reads mountinfo again.
void cache_lines(const sys::Directory& memory, std::string_view text) {
  static_cast<void>(sys::replace_file(memory, kMemoryName, text).has_value());
}

/// Reads the hierarchies from mountinfo, and caches the relevant lines.
Result<std::vector<OpenHierarchy>> mounted_hierarchies(
    const CgroupfsOptions& options, const std::optional<ActiveHierarchies>& active) {
  const Result<std::string> text = read_list(options.mountinfo, sys::FileEnd::kEmptyRead);
  if (!text) return fail(text.error());
  std::vector<Hierarchy> mounted = parse_mountinfo(*text);
  const bool is_whole = active && std::ssize(mounted) == active->count;
  const std::string lines = is_whole ? lines_about(mounted, *text) : std::string{};
  auto hierarchies = usable_of(std::move(mounted), options.resolve);
  // Not cached if the next transaction would reject it.
  if (hierarchies && is_whole && are_described(*hierarchies))
    cache_lines(*options.memory, cat(active->names, "\n", lines));
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
      options.memory != nullptr ? read_active_hierarchies(options.own_cgroups) : std::nullopt;
  if (active) {
    if (auto known = cached_hierarchies(options, *active)) return std::move(*known);
  }
  return mounted_hierarchies(options, active);
}

std::vector<std::string> mount_points(const CgroupfsOptions& options) {
  std::vector<std::string> points{options.unified};
  if (is_cgroup2_at(options.unified)) return points;
  auto text = options.memory != nullptr ? options.memory->read_file(kMemoryName, kMaxMemory)
                                        : fail(ErrorCode::kNotFound, "nothing is cached");
  if (!text) text = read_list(options.mountinfo, sys::FileEnd::kEmptyRead);
  for (Hierarchy& hierarchy : parse_mountinfo(text.value_or(""))) {
    if (!hierarchy.mount_point.starts_with(cat(options.unified, "/")))
      points.push_back(std::move(hierarchy.mount_point));
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

std::vector<std::string> hugepage_labels_of(const std::string& directory) {
  const Result<sys::Directory> sizes = sys::Directory::open(directory);
  if (!sizes) return {};
  const auto names = sizes->subdirectories();
  return names ? hugepage_labels(*names) : std::vector<std::string>{};
}

std::vector<std::string> hugepage_labels(const std::vector<std::string>& names) {
  std::vector<Bytes> sizes;
  for (const std::string& name : names) {
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
