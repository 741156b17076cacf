#pragma once

#include <cstdint>
#include <vector>

#include "common/base/error.h"

namespace podqos::sys {

/// Ids of the BPF programs that decide which devices a process in this cgroup may use (v2): those
/// attached to the cgroup and to its ancestors. Empty if the kernel lacks BPF device programs, so
/// that none can be attached.
/// @param cgroup  descriptor of the cgroup's directory
/// @return kPermission without CAP_NET_ADMIN.
/// @note bpf(2) BPF_PROG_QUERY with BPF_F_QUERY_EFFECTIVE; cgroup-v2.rst, "Device controller".
[[nodiscard]] Result<std::vector<std::uint32_t>> device_programs(int cgroup);

/// Attaches a loaded BPF device program, given by its id, to a further cgroup. It stays attached
/// until the cgroup is removed.
/// @return kPermission without CAP_SYS_ADMIN and CAP_NET_ADMIN, or if the program of an ancestor
/// does not allow further ones below it.
[[nodiscard]] Status attach_device_program(int cgroup, std::uint32_t id);

}  // namespace podqos::sys
