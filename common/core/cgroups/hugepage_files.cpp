#include "common/core/cgroups/hugepage_files.h"

#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::string_view kHugetlb = "hugetlb.";
constexpr std::string_view kReserved = "rsvd.";

std::string_view hugepage_limit(CgroupVersion version) {
  return version == CgroupVersion::kV1 ? "limit_in_bytes" : "max";
}

}  // namespace

std::string hugepage_file(std::string_view label, CgroupVersion version) {
  return cat(kHugetlb, label, ".", hugepage_limit(version));
}

std::string reserved_hugepage_file(std::string_view label, CgroupVersion version) {
  return cat(kHugetlb, label, ".", kReserved, hugepage_limit(version));
}

std::string_view hugepage_label_in(std::string_view file) {
  if (!file.starts_with(kHugetlb)) return {};
  file.remove_prefix(kHugetlb.size());
  const std::string_view label = read_until(file, '.');
  if (file.starts_with(kReserved)) file.remove_prefix(kReserved.size());
  const bool known =
      file == hugepage_limit(CgroupVersion::kV1) || file == hugepage_limit(CgroupVersion::kV2);
  return known ? label : std::string_view{};
}

}  // namespace podqos::core
