#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/layout.h"
#include "common/core/plan.h"

namespace podqos::core {

/// A cgroup file in which an engine sets a limit of a container.
struct LimitFile {
  Controller controller = Controller::kCpu;
  std::string name;
  /// Content in a new cgroup; "max" and "-1" also stand for the numbers that mean "no limit".
  /// nullopt if a new cgroup inherits its parent's value.
  std::optional<std::string> unset;
  friend bool operator==(const LimitFile&, const LimitFile&) = default;
};

/// A limit to copy from a container's cgroup to the cgroup that it moves to.
struct CarriedLimit {
  Controller controller = Controller::kCpu;
  std::string file;
  std::string value;
  friend bool operator==(const CarriedLimit&, const CarriedLimit&) = default;
};

/// The files that runc or crun writes for linux.resources (unified included) and that cgroups made
/// by podqos have too. The order is one in which a new cgroup accepts the values: memory before
/// memory with swap, period before quota.
/// @note runtime-spec config-linux.md; opencontainers/cgroups fs/, fs2/; crun src/libcrun/cgroup-*.
[[nodiscard]] std::vector<LimitFile> limit_files(const CgroupLayout& layout);

/// The value to write to `file` of a new cgroup to copy the content `held`; nullopt if a new cgroup
/// has that value already.
[[nodiscard]] std::optional<std::string> carried_value(const LimitFile& file,
                                                       std::string_view held);

/// The cgroup v2 files whose limits are lost when a container moves: those of io, rdma and misc,
/// which podqos does not enable, and cpuset partitions, which cannot be copied.
[[nodiscard]] std::vector<LimitFile> files_left_behind(const CgroupLayout& layout);
/// Whether such a file with the content `held` sets a limit.
[[nodiscard]] bool bounds(const LimitFile& file, std::string_view held);

/// The limits as properties of a systemd scope (cgroup v2). Without them systemd would overwrite
/// the copied values.
[[nodiscard]] std::vector<UnitProperty> carried_properties(const std::vector<CarriedLimit>& limits);

/// The container's own cgroup, given the cgroup `actual` of its process. Runtimes may create more
/// cgroups below it.
/// @param cgroups_path  linux.cgroupsPath; if no part of `actual` has its name, the result is
///                      `actual`
[[nodiscard]] std::string own_cgroup_in(std::string_view actual,
                                        const std::optional<std::string>& cgroups_path);

}  // namespace podqos::core
