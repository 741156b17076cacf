#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core::pod_text {

/// Resource lists as people write them: list({{"cpu", "250m"}}).
inline ResourceList list(std::initializer_list<std::pair<const char*, const char*>> entries) {
  ResourceList out;
  for (const auto& [name, text] : entries) {
    const auto quantity = Quantity::parse(text);
    if (!quantity) {
      ADD_FAILURE() << quantity.error().message;
      continue;
    }
    out.emplace(name, *quantity);
  }
  return out;
}

inline ResourceList memory(const char* text) {
  return list({{"memory", text}});
}

inline Container container(std::string name, ResourceList requests, ResourceList limits = {},
                           ContainerKind kind = ContainerKind::kApp) {
  return {std::move(name), kind, {std::move(requests), std::move(limits)}};
}

inline Container init(std::string name, ResourceList requests, ResourceList limits = {}) {
  return container(std::move(name), std::move(requests), std::move(limits), ContainerKind::kInit);
}

inline Container sidecar(std::string name, ResourceList requests, ResourceList limits = {}) {
  return container(std::move(name), std::move(requests), std::move(limits),
                   ContainerKind::kSidecar);
}

inline Pod pod(std::vector<Container> containers, std::vector<Container> init_containers = {}) {
  Pod out;
  out.containers = std::move(containers);
  out.init_containers = std::move(init_containers);
  return out;
}

}  // namespace podqos::core::pod_text
