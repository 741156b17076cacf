#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/pod.h"

namespace podqos::core {

/// Limit by huge page size label as in cgroup file names ("2MB", "1GB").
using HugePageLimits = std::map<std::string, Bytes, std::less<>>;

/// Label of a page size: divided by 1024 while divisible, with the unit B, KB, MB, GB, TB or PB.
/// @note pkg/apis/core/v1/helper HugePageUnitSizeFromByteSize.
[[nodiscard]] std::string hugepage_label(Bytes page_size);

/// Limits per page size for a pod's summed *requests*. Two spellings of one size (2Mi, 2048Ki) are
/// added.
/// @return kInvalidArgument for a name like "hugepages-x" or "hugepages-0"
/// @note pkg/kubelet/cm/helpers_linux.go HugePageLimits, which skips such names.
[[nodiscard]] Result<HugePageLimits> hugepage_limits(const ResourceList& requests);

/// Adds a limit of 0 for each page size of the host that `limits` lacks, as the kubelet does.
/// @note pkg/kubelet/cm/cgroup_manager_linux.go maybeSetHugetlb.
[[nodiscard]] HugePageLimits with_host_sizes(HugePageLimits limits,
                                             const std::vector<std::string>& host_labels);

}  // namespace podqos::core
