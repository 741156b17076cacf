#include "common/core/kubernetes/memory_qos.h"

#include <cmath>
#include <string>

namespace podqos::core {

namespace {

/// memory.high; nullopt if there is none.
std::optional<Bytes> throttled_from(std::int64_t request, std::int64_t own_limit,
                                    const MemoryQosParams& params) {
  if (!params.throttling_thousandths || request == own_limit) return std::nullopt;
  const std::int64_t limit = own_limit != 0 ? own_limit : params.allocatable.value();
  if (limit <= 0) return std::nullopt;
  constexpr double kThousand = 1000.0;
  const double factor = static_cast<double>(*params.throttling_thousandths) / kThousand;
  const auto least = static_cast<double>(request);
  const double exact = std::floor(least + ((static_cast<double>(limit) - least) * factor));
  const auto page = static_cast<double>(params.page_size.value());
  const double pages = std::trunc(exact / page);
  if (pages * page >= static_cast<double>(kInt64Max)) return std::nullopt;
  const Bytes high{static_cast<std::int64_t>(pages) * params.page_size.value()};
  return high.value() > request ? std::optional{high} : std::nullopt;
}

void add(UnifiedValues& values, const char* file, std::optional<Bytes> value) {
  if (!value) return;
  values[file] = *value == kUnlimitedMemory ? "max" : std::to_string(value->value());
}

}  // namespace

MemoryQos container_memory_qos(QosClass qos_class, const Container& container,
                               const MemoryQosParams& params) {
  if (!params.enabled()) return {};
  const std::int64_t request = memory_of(container.resources.requests).value();
  MemoryQos qos{.high =
                    throttled_from(request, memory_of(container.resources.limits).value(), params)};
  if (!params.reserves || request == 0)
    qos.min = qos.low = Bytes{0};
  else
    (qos_class == QosClass::kGuaranteed ? qos.min : qos.low) = Bytes{request};
  return qos;
}

UnifiedValues unified_values(const MemoryQos& qos) {
  UnifiedValues values;
  add(values, "memory.min", qos.min);
  add(values, "memory.low", qos.low);
  add(values, "memory.high", qos.high);
  return values;
}

}  // namespace podqos::core
