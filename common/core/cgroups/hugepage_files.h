#pragma once

#include <string>
#include <string_view>

#include "common/core/cgroups/layout.h"

// The names of the files with limits of huge pages, of which there are some for each page size.
namespace podqos::core {

/// "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes".
/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/hugetlb.rst
[[nodiscard]] std::string hugepage_file(std::string_view label, CgroupVersion version);
/// The limit of reserved pages: "hugetlb.2MB.rsvd.max". Kernels before 5.7 have none.
[[nodiscard]] std::string reserved_hugepage_file(std::string_view label, CgroupVersion version);
/// The label in the name of either: "2MB"; "" for any other file.
[[nodiscard]] std::string_view hugepage_label_in(std::string_view file);

}  // namespace podqos::core
