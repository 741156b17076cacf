#pragma once

#include <cstdint>
#include <vector>

#include "common/base/error.h"

namespace podqos::sys {

/// Ids of the programs that decide which devices a process in this cgroup v2 may use: its own and
/// those of the cgroups above it. Empty where the kernel has no such programs, so that nobody can
/// have attached one; kPermission without CAP_NET_ADMIN.
/// @param cgroup  a descriptor of the cgroup's directory
[[nodiscard]] Result<std::vector<std::uint32_t>> device_programs(int cgroup);

/// Attaches a program that is in force elsewhere. It stays until the cgroup goes.
/// @return kPermission without CAP_SYS_ADMIN and CAP_NET_ADMIN, or where a cgroup above has one
///         that lets none be attached below.
[[nodiscard]] Status attach_device_program(int cgroup, std::uint32_t id);

}  // namespace podqos::sys
