#include "common/cgroup/discovery.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/hugepages.h"
#include "common/sys/atomic_file.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxMountinfo = 64U << 20U;  // some 400,000 mounts

constexpr std::string_view kMemoryName = "mountinfo";
constexpr std::size_t kMaxMemory = std::size_t{64} << 10U;

bool is_cgroup2_at(const std::string& path) {
  struct statfs file_system{};
  return ::statfs(path.c_str(), &file_system) == 0 && file_system.f_type == CGROUP2_SUPER_MAGIC;
}

Result<std::string> read_mountinfo(const std::string& path) {
  const sys::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", path));
  return sys::read_all(file.get(), kMaxMountinfo, path);
}

bool is_relevant(const Hierarchy& hierarchy) {
  return hierarchy.version == core::CgroupVersion::kV2 || has_used_controller(hierarchy);
}

std::vector<OpenHierarchy> usable_of(std::vector<Hierarchy> mounted, sys::Resolve resolve) {
  std::vector<OpenHierarchy> hierarchies;
  for (Hierarchy& description : mounted) {
    const bool relevant = is_relevant(description);
    OpenHierarchy hierarchy{std::move(description), resolve};
    if (!relevant || hierarchy.is_usable()) hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

std::optional<core::CgroupVersion> version_with(const std::vector<OpenHierarchy>& hierarchies,
                                                core::Controller controller) {
  for (const OpenHierarchy& hierarchy : hierarchies) {
    if (hierarchy.has(controller_name(controller))) return hierarchy.description().version;
  }
  return std::nullopt;
}

/// Is each controller that podqos uses in one of them? A hierarchy that is mounted now can then
/// have none of these: a controller is in one hierarchy only.
bool is_complete(const std::vector<OpenHierarchy>& hierarchies) {
  const core::CgroupLayout layout = layout_of(hierarchies);
  return layout.cpu && layout.memory && layout.hugetlb && layout.pids && layout.cpuset;
}

/// What an earlier event has found, if it is all still there and nothing else can be.
std::optional<std::vector<OpenHierarchy>> remembered(const sys::Directory& memory,
                                                     sys::Resolve resolve) {
  const auto text = memory.read_file(kMemoryName, kMaxMemory);
  if (!text) return std::nullopt;
  std::vector<OpenHierarchy> hierarchies = usable_of(parse_mountinfo(*text), resolve);
  const bool same = std::ranges::all_of(hierarchies, [](OpenHierarchy& hierarchy) {
    return !is_relevant(hierarchy.description()) || hierarchy.is_described();
  });
  if (!same || !is_complete(hierarchies)) return std::nullopt;
  return hierarchies;
}

/// Where that fails, the next event reads mountinfo as this one did.
void remember(const sys::Directory& memory, std::string_view lines) {
  static_cast<void>(sys::replace_file(memory, kMemoryName, lines,
                                      {.uid = ::geteuid(), .gid = ::getegid(), .mode = 0600}));
}

/// The page size behind "hugepages-2048kB".
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

bool has_used_controller(const Hierarchy& hierarchy) {
  using enum core::Controller;
  return std::ranges::any_of(
      std::array{kCpu, kMemory, kHugetlb, kPids, kCpuset}, [&](core::Controller controller) {
        return std::ranges::find(hierarchy.controllers, controller_name(controller)) !=
               hierarchy.controllers.end();
      });
}

Result<std::vector<OpenHierarchy>> find_hierarchies(const CgroupfsOptions& options) {
  if (is_cgroup2_at(options.unified)) {
    return usable_of(
        {{.version = core::CgroupVersion::kV2, .controllers = {}, .mount_point = options.unified}},
        options.resolve);
  }
  if (options.memory != nullptr) {
    if (auto known = remembered(*options.memory, options.resolve)) return std::move(*known);
  }
  const Result<std::string> text = read_mountinfo(options.mountinfo);
  if (!text) return fail(text.error());
  std::vector<Hierarchy> mounted = parse_mountinfo(*text);
  const std::string lines = options.memory != nullptr ? lines_about(mounted, *text) : std::string{};
  std::vector<OpenHierarchy> hierarchies = usable_of(std::move(mounted), options.resolve);
  if (options.memory != nullptr && is_complete(hierarchies)) remember(*options.memory, lines);
  return hierarchies;
}

core::CgroupLayout layout_of(const std::vector<OpenHierarchy>& hierarchies) {
  using core::Controller;
  core::CgroupLayout layout;
  layout.cpu = version_with(hierarchies, Controller::kCpu);
  layout.memory = version_with(hierarchies, Controller::kMemory);
  layout.hugetlb = version_with(hierarchies, Controller::kHugetlb);
  layout.pids = version_with(hierarchies, Controller::kPids);
  layout.cpuset = version_with(hierarchies, Controller::kCpuset);
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
  switch (controller) {
    case core::Controller::kCpu: return "cpu";
    case core::Controller::kMemory: return "memory";
    case core::Controller::kHugetlb: return "hugetlb";
    case core::Controller::kPids: return "pids";
    case core::Controller::kCpuset: return "cpuset";
  }
  return "";
}

}  // namespace podqos::cgroup
