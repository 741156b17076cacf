#pragma once

#include <string>

#include "tests/unit/app/fake_node.h"

/// Containers of the tests of events.
namespace podqos::app::containers {

/// A container that is called as its pod and requests resources: "cpu=1,memory=64Mi".
inline FakeContainer requesting(const std::string& id, const std::string& requests) {
  return {.id = id, .uid = id, .annotations = {{"podqos.io/requests", requests}}};
}

inline constexpr const char* kBurstable = "/podqos/kubepods/burstable";
inline constexpr const char* kBestEffort = "/podqos/kubepods/besteffort";
inline constexpr const char* kWebPod = "/podqos/kubepods/burstable/poda";
inline constexpr const char* kDatabasePod = "/podqos/kubepods/podc";
inline const FakeContainer kWebContainer{
    .id = "web", .uid = "a", .annotations = {{"podqos.io/requests.web", "cpu=500m,memory=64Mi"}}};
inline const FakeContainer kLogContainer{
    .id = "log", .uid = "a", .annotations = {{"podqos.io/requests.log", "cpu=250m,memory=64Mi"}}};
inline const FakeContainer kBatchContainer{.id = "batch", .uid = "b"};
inline const FakeContainer kDatabaseContainer{
    .id = "db", .uid = "c", .annotations = {{"podqos.io/limits", "cpu=1,memory=1Gi"}}};

}  // namespace podqos::app::containers
