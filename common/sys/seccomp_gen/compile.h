#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "common/base/error.h"
#include "common/sys/seccomp_gen/filters.h"

namespace podqos::seccomp_gen {

/// Compiles an allow-list, that of the hook included, to BPF. System calls that the architecture
/// does not have get no rule; calls of any other architecture (32 bit, x32) kill the process. The
/// result does not depend on the kernel that it is compiled on.
/// @param architecture  libseccomp's SCMP_ARCH_*, SCMP_ARCH_NATIVE for that of this program
/// @return kInvalidArgument for a system call that libseccomp does not know; kIo if it fails
[[nodiscard]] Result<std::vector<sock_filter>> compile(const FilterSource& source,
                                                       std::uint32_t architecture);

}  // namespace podqos::seccomp_gen
