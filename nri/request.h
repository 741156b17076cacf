#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nri/messages.h"

namespace podqos::nri {

/// The requests of a runtime to a plugin, in the order of kRequests (containerd/nri,
/// pkg/api/api.proto, service Plugin).
enum class Request : std::uint8_t {
  kConfigure,
  kSynchronize,
  kRunPodSandbox,
  kUpdatePodSandbox,
  kPostUpdatePodSandbox,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kPostCreateContainer,
  kStartContainer,
  kPostStartContainer,
  kUpdateContainer,
  kPostUpdateContainer,
  kStopContainer,
  kRemoveContainer,
};

/// How a request is called, and how its message is read.
struct RequestKind {
  std::string_view name;   ///< the ttrpc method, also the label "request" in metrics
  std::int32_t event = 0;  ///< of a StateChange, by which NRI up to 0.11 reports it; 0: never
  EventFields fields = {};
};
constexpr std::array kRequests = {
    RequestKind{.name = "Configure"},
    RequestKind{.name = "Synchronize"},
    RequestKind{.name = "RunPodSandbox", .event = 1},
    RequestKind{.name = "UpdatePodSandbox", .fields = {.container = 0, .resources = 3}},
    RequestKind{.name = "PostUpdatePodSandbox", .event = 13},
    RequestKind{.name = "StopPodSandbox", .event = 2},
    RequestKind{.name = "RemovePodSandbox", .event = 3},
    RequestKind{.name = "CreateContainer"},
    RequestKind{.name = "PostCreateContainer", .event = 5},
    RequestKind{.name = "StartContainer", .event = 6},
    RequestKind{.name = "PostStartContainer", .event = 7},
    RequestKind{.name = "UpdateContainer", .fields = {.resources = 3}},
    RequestKind{.name = "PostUpdateContainer", .event = 9},
    RequestKind{.name = "StopContainer"},
    RequestKind{.name = "RemoveContainer", .event = 11},
};
static_assert(kRequests[static_cast<std::size_t>(Request::kRemoveContainer)].name ==
              "RemoveContainer");

/// The row of a request in kRequests.
[[nodiscard]] constexpr const RequestKind& kind_of(Request request) {
  return kRequests.at(static_cast<std::size_t>(request));
}

}  // namespace podqos::nri
