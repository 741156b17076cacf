#include "common/cgroup/discovery.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/path.h"
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

/// Parses "0:26". Returns 0, which no mounted file system has, if it is malformed.
dev_t parse_device(std::string_view text) {
  const std::optional<std::int64_t> major_number = parse_int(read_until(text, ':'));
  const std::optional<std::int64_t> minor_number = parse_int(text);
  if (!major_number || !minor_number) return 0;
  return ::gnu_dev_makedev(static_cast<unsigned>(*major_number),
                           static_cast<unsigned>(*minor_number));
}

/// Decodes octal escapes (\040 is a space); any other backslash is kept.
std::string decode(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  constexpr int kOctal = 8;
  std::string out;
  while (!text.empty()) {
    const std::string_view digits = text.substr(1, kDigits);
    unsigned code = 0;
    const bool is_escape =
        text.front() == '\\' && digits.size() == kDigits &&
        std::from_chars(digits.begin(), digits.end(), code, kOctal).ptr == digits.end();
    out += is_escape ? static_cast<char>(code) : text.front();
    text.remove_prefix(is_escape ? 1 + kDigits : 1);
  }
  return out;
}

/// The hierarchy that a line describes; nullopt if it is about none, or malformed.
std::optional<Hierarchy> parse_line(std::string_view line) {
  // On a host with many containers few lines are about cgroups.
  if (!line.contains(" - cgroup")) return std::nullopt;
  // Id, id of the parent, device, root, mount point, options; optional fields ("shared:1"), which
  // end with a hyphen; type, source, options of the superblock.
  constexpr std::ptrdiff_t kFixed = 6;
  const std::vector<std::string> fields = parts_of(line, ' ');
  const auto hyphen = std::ranges::find(fields, "-");
  if (hyphen - fields.begin() < kFixed || fields.end() - hyphen < 3) return std::nullopt;
  const std::string& type = hyphen[1];
  // Any other root is a bind mount of a part of a hierarchy, as in a container, where paths would
  // name other cgroups.
  if (fields[3] != "/" || !fields[4].starts_with('/') || (type != "cgroup" && type != "cgroup2"))
    return std::nullopt;
  Hierarchy found{
      .controllers = {}, .mount_point = decode(fields[4]), .device = parse_device(fields[2])};
  if (type == "cgroup2") return found;
  found.version = core::CgroupVersion::kV1;
  // "rw,xattr,cpu,cpuacct": controllers, "name=…", and what else concerns the mount. A list of
  // controllers would lack those of later kernels.
  found.controllers = parts_of(fields.back(), ',');
  if (found.controllers.size() < 2) return std::nullopt;
  found.controllers.erase(found.controllers.begin());
  return found;
}

/// Hierarchies that podqos writes to: v2, or v1 with one of its controllers.
bool is_relevant(const Hierarchy& hierarchy) {
  return hierarchy.version == core::CgroupVersion::kV2 || has_used_controller(hierarchy);
}

/// Parses "hugepages-2048kB"; nullopt for any other name.
std::optional<Bytes> page_size_of(std::string_view name) {
  constexpr std::int64_t kKibi = 1024;
  if (read_until(name, '-') != "hugepages" || !name.ends_with("kB")) return std::nullopt;
  name.remove_suffix(2);
  const std::optional<std::int64_t> kilobytes = parse_int(name);
  if (!kilobytes || *kilobytes <= 0) return std::nullopt;
  return Bytes{mul_div(*kilobytes, kKibi, 1)};
}

/// The mounts of hierarchies, those included that another mount hides, and mountinfo, unless it was
/// not needed.
struct Mounts {
  std::vector<Hierarchy> hierarchies;
  sys::UniqueFd mountinfo;
};

Result<Mounts> find_mounts(const CgroupfsOptions& options) {
  // The common case: the unified hierarchy, without reading mountinfo.
  if (type_at(options.unified) == CGROUP2_SUPER_MAGIC)
    return Mounts{.hierarchies = {{.controllers = {}, .mount_point = options.unified}},
                  .mountinfo = {}};
  const std::string& path = options.mountinfo;
  sys::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", path));
  PODQOS_ASSIGN(const auto text, sys::read_all(file.get(), kMaxList, path));
  return Mounts{.hierarchies = parse_mountinfo(text), .mountinfo = std::move(file)};
}

/// What a process that stays keeps from one transaction to the next, and the wrapper for its child:
/// they are a third of the system calls of an event on a v1 host, where the kernel takes 2 us for
/// each mount of the node to tell them.
struct Kept {
  sys::UniqueFd mountinfo;  ///< as it was when the hierarchies were found
  Hierarchies hierarchies;
};

/// The kept ones for another transaction; null if mounts have changed, which the kernel tells as an
/// error of mountinfo: proc_pid_mountinfo(5), mounts_poll() in fs/proc_namespace.c.
Result<Hierarchies> take_up(const Kept& kept) {
  pollfd mounts{.fd = kept.mountinfo.get(), .events = POLLPRI, .revents = 0};
  if (!kept.hierarchies || ::poll(&mounts, 1, 0) != 0) return nullptr;
  for (OpenHierarchy& hierarchy : *kept.hierarchies)
    PODQOS_TRY(hierarchy.begin_again());
  return kept.hierarchies;
}

/// A hierarchy whose mount point is listed once has no other mounted over it: the type of the file
/// system tells, and devices need not be compared.
OpenHierarchy to_open(Hierarchy mount, const std::vector<Hierarchy>& mounts, sys::Resolve resolve) {
  if (std::ranges::count(mounts, mount.mount_point, &Hierarchy::mount_point) == 1) mount.device = 0;
  return {std::move(mount), resolve};
}

}  // namespace

std::vector<Hierarchy> parse_mountinfo(std::string_view text) {
  std::vector<Hierarchy> hierarchies;
  while (!text.empty()) {
    if (auto found = parse_line(read_until(text, '\n'))) hierarchies.push_back(*std::move(found));
  }
  return hierarchies;
}

bool carries(const Hierarchy& hierarchy, const core::ControllerRow& row) {
  const bool is_v1 = hierarchy.version == core::CgroupVersion::kV1;
  const std::string_view name = is_v1 ? row.v1_name : row.v2_name;
  return std::ranges::find(hierarchy.controllers, name) != hierarchy.controllers.end();
}

bool has_used_controller(const Hierarchy& hierarchy) {
  return std::ranges::any_of(core::kControllers, [&](const core::ControllerRow& row) {
    return !row.on_demand && carries(hierarchy, row);
  });
}

Result<Hierarchies> find_hierarchies(const CgroupfsOptions& options) {
  static Kept kept;
  if (options.keep) {
    PODQOS_ASSIGN(auto again, take_up(kept));
    if (again) return again;
  }
  PODQOS_ASSIGN(auto found, find_mounts(options));
  std::vector<Hierarchy>& mounts = found.hierarchies;
  auto hierarchies = std::make_shared<std::vector<OpenHierarchy>>();
  std::vector<dev_t> taken;
  for (Hierarchy& mount : mounts) {
    // A hierarchy may be mounted hundreds of times, as by `mount --rbind /sys`.
    const dev_t device = mount.device;
    if (std::ranges::count(taken, device) != 0) continue;
    const bool relevant = is_relevant(mount);
    // Of several mounts one may be hidden by another.
    const bool is_only = std::ranges::count(mounts, device, &Hierarchy::device) == 1;
    OpenHierarchy hierarchy = to_open(mount, mounts, options.resolve);
    const Result<bool> usable = relevant || !is_only ? hierarchy.is_usable() : true;
    // Without it, a pod would lack limits, and its directory there would stay.
    if (!usable && relevant) return fail(usable.error());
    if (!usable.value_or(false)) continue;
    taken.push_back(device);
    hierarchies->push_back(std::move(hierarchy));
  }
  if (options.keep && found.mountinfo.valid())
    kept = {.mountinfo = std::move(found.mountinfo), .hierarchies = hierarchies};
  return hierarchies;
}

std::vector<std::string> mount_points(const CgroupfsOptions& options) {
  std::vector<std::string> points{options.unified};
  if (type_at(options.unified) == CGROUP2_SUPER_MAGIC) return points;
  const auto found = find_hierarchies(options);
  if (!found) return points;
  for (const OpenHierarchy& hierarchy : **found) {
    const std::string& point = hierarchy.description().mount_point;
    if (is_at_or_below(point, options.unified)) continue;
    // Another mount may hide it.
    const auto type = type_at(point);
    if (type == CGROUP_SUPER_MAGIC || type == CGROUP2_SUPER_MAGIC) points.push_back(point);
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
