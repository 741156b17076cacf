#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/core/pods/identity.h"
#include "common/core/pods/request.h"

namespace podqos::core::facts {

/// Of the node: a thousandth of it, as oom_score_adj counts, is a megabyte.
inline constexpr Bytes kNodeMemory{1'000'000'000};

/// linux.resources in short: 0 is unset, as in a config.json.
struct EngineValues {
  std::int64_t shares = 0;
  std::int64_t quota = 0;
  std::int64_t period = 0;
  std::int64_t memory = 0;
  std::int64_t pids = 0;
  std::int64_t reservation = 0;
};

inline EngineResources engine(const EngineValues& values) {
  const auto set = [](std::int64_t value) {
    return value == 0 ? std::nullopt : std::optional{value};
  };
  EngineResources out;
  out.cpu_shares = set(values.shares);
  out.cpu_quota = set(values.quota);
  out.cpu_period = set(values.period);
  out.memory_limit = set(values.memory);
  out.pids_limit = set(values.pids);
  out.memory_reservation = set(values.reservation);
  return out;
}

inline ContainerFacts container_facts(std::string id, std::string bundle = "/b") {
  ContainerFacts out;
  out.id = std::move(id);
  out.bundle = std::move(bundle);
  return out;
}

inline Identity identity(IdentitySource source, std::string container_name = "app") {
  Identity out;
  out.uid = "42";
  out.source = source;
  out.container_name = std::move(container_name);
  return out;
}

/// A kubelet's cgroup of pod 42.
inline PodCgroup kubelet_pod(QosClass qos_class) {
  PodCgroup out;
  out.qos_class = qos_class;
  out.uid = "42";
  return out;
}

}  // namespace podqos::core::facts
