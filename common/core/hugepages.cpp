#include "common/core/hugepages.h"

#include <array>

#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
constexpr std::int64_t kUnitStep = 1024;

Result<Bytes> page_size_of(std::string_view resource) {
  auto size = Quantity::parse(resource.substr(kHugePagesPrefix.size()));
  if (!size || size->sign() <= 0) {
    return fail(ErrorCode::kInvalidArgument,
                cat("invalid huge page resource \"", printable(resource),
                    "\": expected hugepages-SIZE, such as hugepages-2Mi"));
  }
  return Bytes{size->value()};
}

}  // namespace

std::string hugepage_label(Bytes page_size) {
  std::int64_t size = page_size.value();
  std::size_t unit = 0;
  while (size % kUnitStep == 0 && unit + 1 < kUnits.size()) {
    size /= kUnitStep;
    ++unit;
  }
  return cat(size, kUnits.at(unit));
}

Result<HugePageLimits> hugepage_limits(const ResourceList& requests) {
  HugePageLimits limits;
  for (const auto& [name, quantity] : requests) {
    if (!name.starts_with(kHugePagesPrefix)) continue;
    PODQOS_ASSIGN(const auto page_size, page_size_of(name));
    Bytes& limit = limits[hugepage_label(page_size)];
    limit = Bytes{saturating_add(limit.value(), quantity.value())};
  }
  return limits;
}

HugePageLimits with_host_sizes(HugePageLimits limits, const std::vector<std::string>& host_labels) {
  for (const std::string& label : host_labels)
    limits.try_emplace(label, Bytes{0});
  return limits;
}

}  // namespace podqos::core
