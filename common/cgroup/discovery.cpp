#include "common/cgroup/discovery.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/cgroup/control_file.h"
#include "common/core/hugepages.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxMountinfo = 64U << 20U;  // some 400,000 mounts

bool is_cgroup2(const struct statfs& file_system) {
  return file_system.f_type == CGROUP2_SUPER_MAGIC;
}

bool is_of(core::CgroupVersion version, const struct statfs& file_system) {
  switch (version) {
    case core::CgroupVersion::kV1: return file_system.f_type == CGROUP_SUPER_MAGIC;
    case core::CgroupVersion::kV2: return is_cgroup2(file_system);
  }
  return false;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) words.emplace_back(text.substr(0, space));
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return words;
}

/// nullopt: not there, or something else is visible at the mount point.
std::optional<OpenHierarchy> open_hierarchy(Hierarchy description, sys::Resolve resolve) {
  Result<sys::Directory> root = sys::Directory::open(description.mount_point);
  if (!root) return std::nullopt;
  struct statfs file_system{};
  if (::fstatfs(root->fd(), &file_system) != 0) return std::nullopt;
  if (!is_of(description.version, file_system)) return std::nullopt;
  description.writable = (static_cast<std::uint64_t>(file_system.f_flags) & ST_RDONLY) == 0;
  if (description.version == core::CgroupVersion::kV2) {
    const OrErrno<std::string> controllers = read_value(*root, "cgroup.controllers");
    if (controllers) description.controllers = split_words(*controllers);
  }
  return OpenHierarchy{std::move(description), std::move(*root), resolve};
}

Result<std::vector<Hierarchy>> mounted_hierarchies(const CgroupfsOptions& options) {
  struct statfs file_system{};
  if (::statfs(options.unified.c_str(), &file_system) == 0 && is_cgroup2(file_system)) {
    return std::vector<Hierarchy>{
        {.version = core::CgroupVersion::kV2, .controllers = {}, .mount_point = options.unified}};
  }
  const sys::UniqueFd file{::open(options.mountinfo.c_str(), O_RDONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) return fail_errno(err, cat("open ", options.mountinfo));
  const Result<std::string> text = sys::read_all(file.get(), kMaxMountinfo, options.mountinfo);
  if (!text) return fail(text.error());
  return parse_mountinfo(*text);
}

std::optional<core::CgroupVersion> version_with(const std::vector<OpenHierarchy>& hierarchies,
                                                core::Controller controller) {
  for (const OpenHierarchy& hierarchy : hierarchies) {
    if (hierarchy.has(controller_name(controller))) return hierarchy.description().version;
  }
  return std::nullopt;
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

Result<std::vector<OpenHierarchy>> open_hierarchies(const CgroupfsOptions& options) {
  Result<std::vector<Hierarchy>> mounted = mounted_hierarchies(options);
  if (!mounted) return fail(std::move(mounted).error());
  std::vector<OpenHierarchy> hierarchies;
  for (Hierarchy& description : *mounted) {
    std::optional<OpenHierarchy> opened = open_hierarchy(std::move(description), options.resolve);
    if (opened) hierarchies.push_back(std::move(*opened));
  }
  return hierarchies;
}

core::CgroupLayout layout_of(const std::vector<OpenHierarchy>& hierarchies,
                             const CgroupfsOptions& options) {
  using core::Controller;
  core::CgroupLayout layout;
  layout.cpu = version_with(hierarchies, Controller::kCpu);
  layout.memory = version_with(hierarchies, Controller::kMemory);
  layout.hugetlb = version_with(hierarchies, Controller::kHugetlb);
  layout.pids = version_with(hierarchies, Controller::kPids);
  layout.cpuset = version_with(hierarchies, Controller::kCpuset);
  if (!layout.hugetlb) return layout;
  const Result<sys::Directory> directory = sys::Directory::open(options.hugepages);
  if (!directory) return layout;
  if (const auto names = directory->subdirectories())
    layout.hugepage_labels = hugepage_labels(*names);
  return layout;
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
