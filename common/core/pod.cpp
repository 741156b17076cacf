#include "common/core/pod.h"

#include <algorithm>

namespace podqos::core {

std::optional<Quantity> find(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  if (found == list.end()) return std::nullopt;
  return found->second;
}

Quantity memory_of(const ResourceList& list) {
  return find(list, kMemory).value_or(Quantity{});
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

const Container* find_container(const Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    const auto found = std::ranges::find(*list, name, &Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace podqos::core
