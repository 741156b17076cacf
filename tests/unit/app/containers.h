#pragma once

#include <cstdint>
#include <string>

#include "tests/unit/app/fake_node.h"

/// Containers of the tests of events, and what follows from their annotations.
namespace podqos::app::containers {

inline constexpr const char* kRoot = "/podqos/kubepods";
inline const FakeContainer kWebContainer{
    .id = "web", .uid = "a", .annotations = {{"podqos.io/requests.web", "cpu=500m,memory=64Mi"}}};
inline const FakeContainer kLogContainer{
    .id = "log", .uid = "a", .annotations = {{"podqos.io/requests.log", "cpu=250m,memory=64Mi"}}};
inline const FakeContainer kBatchContainer{.id = "batch", .uid = "b"};
inline const FakeContainer kDatabaseContainer{
    .id = "db", .uid = "c", .annotations = {{"podqos.io/limits", "cpu=1,memory=1Gi"}}};

/// The weight of cgroup v2 for shares: runc's and KEP-2254's linear formula.
inline std::string weight_of(std::int64_t shares) {
  return std::to_string(1 + ((shares - 2) * 9999 / 262142));
}

}  // namespace podqos::app::containers
