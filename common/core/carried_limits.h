#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/layout.h"
#include "common/core/plan.h"

namespace podqos::core {

/// A control file by which an engine bounds a container.
struct LimitFile {
  Controller controller = Controller::kCpu;
  std::string name;
  /// What a new cgroup shows, "max" and "-1" standing for any number so large that nothing is
  /// bounded; absent where that is its parent's value.
  std::optional<std::string> unset;
  friend bool operator==(const LimitFile&, const LimitFile&) = default;
};

/// What a container's cgroup holds, to be held by another one as well.
struct CarriedLimit {
  Controller controller = Controller::kCpu;
  std::string file;
  std::string value;
  friend bool operator==(const CarriedLimit&, const CarriedLimit&) = default;
};

/// Every file that runc or crun writes for linux.resources (unified included) and that a cgroup
/// made by podqos has too, in an order in which a new cgroup takes them: memory before memory with
/// swap, the period before the quota.
/// @note runtime-spec config-linux.md; opencontainers/cgroups fs/, fs2/; crun src/libcrun/cgroup-*.
[[nodiscard]] std::vector<LimitFile> limit_files(const CgroupLayout& layout);

/// The value to write to a new cgroup's `file` so that it bounds as one does that shows `held`;
/// nullopt where that is what a new cgroup has anyway.
[[nodiscard]] std::optional<std::string> carried_value(const LimitFile& file,
                                                       std::string_view held);

/// The files of cgroup v2 that a cgroup made by podqos lacks, or that cannot be copied: of the
/// controllers io, rdma and misc, and a partition of the CPUs.
[[nodiscard]] std::vector<LimitFile> files_left_behind(const CgroupLayout& layout);
/// Does such a file bound anything that shows `held`?
[[nodiscard]] bool bounds(const LimitFile& file, std::string_view held);

/// The limits that systemd has to know of a scope, which it would write over otherwise (cgroup v2).
[[nodiscard]] std::vector<UnitProperty> carried_properties(const std::vector<CarriedLimit>& limits);

/// The container's own cgroup in the path that its process is in: runtimes may make more below.
/// @param cgroups_path  as the engine gave it; where it names no part of `actual`, that is it all.
[[nodiscard]] std::string own_cgroup_in(std::string_view actual,
                                        const std::optional<std::string>& cgroups_path);

}  // namespace podqos::core
