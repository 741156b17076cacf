#include "common/core/driver.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::string_view kScope = ".scope";
/// crun with systemd puts the processes into a cgroup of its own below the scope.
constexpr std::string_view kCrunInner = "/container";

/// Whether systemd has this slice. A directory with the suffix at another path than its name stands
/// for is not a slice: the unit of that name is elsewhere.
bool is_slice(std::string_view cgroup) {
  if (!cgroup.ends_with(kSlice)) return false;
  const auto expanded = expand_slice(leaf_of(cgroup));
  return expanded && *expanded == cgroup;
}

}  // namespace

std::string_view format_driver(Driver driver) {
  return driver == Driver::kSystemd ? "systemd" : "cgroupfs";
}

Driver driver_of(std::string_view cgroup) {
  const bool unit = is_slice(cgroup) || !scope_of(cgroup).empty();
  return unit ? Driver::kSystemd : Driver::kCgroupfs;
}

std::optional<Driver> detect_driver(const DriverSigns& signs) {
  if (signs.flags) return signs.flags;
  for (const auto& path : {signs.path, signs.real}) {
    if (path && is_systemd_path(*path)) return Driver::kSystemd;
    if (path && path->starts_with('/')) return Driver::kCgroupfs;
  }
  return std::nullopt;
}

Status check_driver(DriverSetting setting, Driver driver) {
  switch (setting) {
    case DriverSetting::kAuto: return {};
    case DriverSetting::kCgroupfs:
      if (driver == Driver::kCgroupfs) return {};
      return fail(
          ErrorCode::kUnsupported,
          "its runtime uses systemd's cgroup driver, but cgroupDriver is \"cgroupfs\": let the "
          "engine use cgroupfs (containerd: SystemdCgroup = false; CRI-O: cgroup_manager; Podman: "
          "--cgroup-manager; Docker: native.cgroupdriver), or set cgroupDriver to \"auto\"");
    case DriverSetting::kSystemd:
      if (driver == Driver::kSystemd) return {};
      return fail(
          ErrorCode::kUnsupported,
          "its runtime uses the cgroupfs driver, but cgroupDriver is \"systemd\": let the engine "
          "use systemd (containerd: SystemdCgroup = true; CRI-O: cgroup_manager; Podman: "
          "--cgroup-manager; Docker: native.cgroupdriver; by hand: runc --systemd-cgroup), or set "
          "cgroupDriver to \"auto\"");
  }
  return {};
}

bool is_systemd_path(std::string_view path) {
  return parse_systemd_cgroups_path(path) || !scope_of(path).empty();
}

std::optional<std::string> scope_path(const SystemdCgroupsPath& path) {
  auto slice = expand_slice(path.slice);
  if (!slice) return std::nullopt;
  if (*slice == "/") slice->clear();
  // Runtimes take a name with the suffix .slice as the unit itself, without prefix.
  if (path.name.ends_with(kSlice)) return cat(*slice, "/", path.name);
  return cat(*slice, "/", path.prefix, "-", path.name, kScope);
}

std::string oci_cgroups_path(std::string_view cgroup, std::string_view id) {
  if (cgroup.ends_with(kCrunInner) && !scope_of(cgroup).empty())
    cgroup.remove_suffix(kCrunInner.size());
  std::string_view leaf = leaf_of(cgroup);
  if (!leaf.ends_with(kScope)) return std::string{cgroup};
  const std::string_view slice = leaf_of(parent_of(cgroup));
  leaf.remove_suffix(kScope.size());
  const bool ends_with_id = !id.empty() && leaf.size() > id.size() && leaf.ends_with(id) &&
                            leaf[leaf.size() - id.size() - 1] == '-';
  const std::size_t dash = ends_with_id ? leaf.size() - id.size() - 1 : leaf.find('-');
  return cat(slice, ":", leaf.substr(0, dash), ":", leaf.substr(dash + 1));
}

std::string_view scope_of(std::string_view cgroup) {
  if (cgroup.ends_with(kCrunInner)) cgroup.remove_suffix(kCrunInner.size());
  const std::string_view leaf = leaf_of(cgroup);
  if (!leaf.ends_with(kScope) || leaf.size() == kScope.size()) return {};
  const std::string_view slice = cgroup.substr(0, cgroup.size() - leaf.size());
  return slice == "/" || (slice.ends_with('/') && is_slice(slice.substr(0, slice.size() - 1)))
             ? leaf
             : std::string_view{};
}

std::string_view unit_of(std::string_view cgroup) {
  const std::string_view scope = scope_of(cgroup);
  return scope.empty() ? leaf_of(cgroup) : scope;
}

}  // namespace podqos::core
