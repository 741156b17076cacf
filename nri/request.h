#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace podqos::nri {

/// What a runtime asks a plugin, in the order of kRequestNames.
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
constexpr std::array<std::string_view, 15> kRequestNames = {
    "Configure",           "Synchronize",          "RunPodSandbox",
    "UpdatePodSandbox",    "PostUpdatePodSandbox", "StopPodSandbox",
    "RemovePodSandbox",    "CreateContainer",      "PostCreateContainer",
    "StartContainer",      "PostStartContainer",   "UpdateContainer",
    "PostUpdateContainer", "StopContainer",        "RemoveContainer"};
static_assert(kRequestNames[static_cast<std::size_t>(Request::kRemoveContainer)] ==
              "RemoveContainer");

[[nodiscard]] constexpr std::string_view name_of(Request request) {
  return kRequestNames.at(static_cast<std::size_t>(request));
}

}  // namespace podqos::nri
