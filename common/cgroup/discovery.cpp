#include "common/cgroup/discovery.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/hugepages.h"

namespace podqos::cgroup {

namespace {

constexpr std::size_t kMaxMountinfo = 64U << 20U;  // some 400,000 mounts

bool is_cgroup2(const struct statfs& file_system) {
  return file_system.f_type == CGROUP2_SUPER_MAGIC;
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

bool has_used_controller(const Hierarchy& hierarchy) {
  using enum core::Controller;
  return std::ranges::any_of(
      std::array{kCpu, kMemory, kHugetlb, kPids, kCpuset}, [&](core::Controller controller) {
        return std::ranges::find(hierarchy.controllers, controller_name(controller)) !=
               hierarchy.controllers.end();
      });
}

Result<std::vector<OpenHierarchy>> find_hierarchies(const CgroupfsOptions& options) {
  Result<std::vector<Hierarchy>> mounted = mounted_hierarchies(options);
  if (!mounted) return fail(std::move(mounted).error());
  std::vector<OpenHierarchy> hierarchies;
  for (Hierarchy& description : *mounted) {
    const bool relevant =
        description.version == core::CgroupVersion::kV2 || has_used_controller(description);
    OpenHierarchy hierarchy{std::move(description), options.resolve};
    if (!relevant || hierarchy.is_usable()) hierarchies.push_back(std::move(hierarchy));
  }
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
