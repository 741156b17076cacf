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

/// Huge page size label as in file names ("2MB", "1GB") → limit.
using HugePageLimits = std::map<std::string, Bytes, std::less<>>;

/// Label of a page size: divided by 1024 while divisible, units B KB MB GB TB PB.
/// @note pkg/apis/core/v1/helper HugePageUnitSizeFromByteSize.
[[nodiscard]] std::string hugepage_label(Bytes page_size);

/// Limits per page size from aggregated *requests*; two spellings of one size are summed.
/// @return kInvalidArgument for a name like "hugepages-x" or "hugepages-0".
/// @note pkg/kubelet/cm/helpers_linux.go HugePageLimits, which skips such names.
[[nodiscard]] Result<HugePageLimits> hugepage_limits(const ResourceList& requests);

/// `limits` with 0 for each of the host's page sizes that is not mentioned.
[[nodiscard]] HugePageLimits with_host_sizes(HugePageLimits limits,
                                             const std::vector<std::string>& host_labels);

}  // namespace podqos::core
