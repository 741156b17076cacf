#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace podqos::nri {

/// The requests of a runtime to a plugin, in the order of kRequestNames (containerd/nri,
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
/// The ttrpc method of each request, also the value of the label "request" in metrics.
constexpr std::array<std::string_view, 15> kRequestNames = {
    "Configure",           "Synchronize",          "RunPodSandbox",
    "UpdatePodSandbox",    "PostUpdatePodSandbox", "StopPodSandbox",
    "RemovePodSandbox",    "CreateContainer",      "PostCreateContainer",
    "StartContainer",      "PostStartContainer",   "UpdateContainer",
    "PostUpdateContainer", "StopContainer",        "RemoveContainer"};
static_assert(kRequestNames[static_cast<std::size_t>(Request::kRemoveContainer)] ==
              "RemoveContainer");

/// The name of a request in kRequestNames.
[[nodiscard]] constexpr std::string_view name_of(Request request) {
  return kRequestNames.at(static_cast<std::size_t>(request));
}

}  // namespace podqos::nri
