#include "common/core/pod.h"

namespace podqos::core {

std::optional<Quantity> find(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  if (found == list.end()) return std::nullopt;
  return found->second;
}

std::string_view format_qos_class(QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: return "Guaranteed";
    case QosClass::kBurstable: return "Burstable";
    case QosClass::kBestEffort: return "BestEffort";
  }
  return "BestEffort";
}

std::optional<QosClass> parse_qos_class(std::string_view text) {
  for (const auto qos_class :
       {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    if (text == format_qos_class(qos_class)) return qos_class;
  }
  return std::nullopt;
}

}  // namespace podqos::core
