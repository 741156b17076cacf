#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/cgroups/plan.h"

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

/// Does the kernel make room before it takes this value: a memory limit of cgroup v1 that is lower
/// than the present one? The first limit of a cgroup is not, which nothing has filled before.
/// @param have  content of the file, without the newline
/// @note mm/memcontrol-v1.c mem_cgroup_resize_max.
[[nodiscard]] bool makes_room(std::string_view file, std::string_view have, std::string_view want);

/// The value of `key` in the text of a flat keyed file ("key value" per line); nullopt if the key
/// is missing or its value is not an integer.
/// @note Documentation/admin-guide/cgroup-v2.rst, "Format".
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

/// What a control file holds, for people: memory as "64Mi" or "unlimited", all else as its first
/// line, printable.
[[nodiscard]] std::string shown_value(core::Controller controller, std::string_view value);

/// "PATH/FILE: 200Mi → max", of a value that was changed; bytes with units.
/// @param before  content of the file, without the newline; "": not known
[[nodiscard]] std::string describe_change(const core::WriteFile& step, std::string_view before);

/// The error for a write that the kernel refused: "PATH: write "VALUE" to FILE: cause (remedy)",
/// with the code that fits the errno `err`. The remedy is present where podqos knows one.
[[nodiscard]] Error refusal(const core::WriteFile& step, int err);

}  // namespace podqos::cgroup
