#pragma once

#include <string_view>

namespace podqos::cgroup {

/// Does `file` hold the value `want` already, as the kernel shows it?
///
/// The kernel rounds limits of memory down to the page size and of huge pages to theirs, shows "-1"
/// on v1 as the largest number that is a multiple of it, and cpu.max with the period behind it
/// ("max" is held by "max 100000").
/// @param have  content of the file, without the newline
/// @note mm/page_counter.c page_counter_memparse; mm/hugetlb_cgroup.c; kernel/sched/core.c
/// cpu_max_write.
[[nodiscard]] bool holds_value(std::string_view file, std::string_view have, std::string_view want);

}  // namespace podqos::cgroup
