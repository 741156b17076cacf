#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "nri/messages.h"
#include "nri/wire.h"

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

/// What a request means for cgroups, for metrics.
enum class Operation : std::uint8_t { kCreate, kUpdate, kDestroy, kNone };

/// How a request is called, and how its message is read.
struct RequestKind {
  std::string_view name;   ///< the ttrpc method, also the label "request" in metrics
  std::int32_t event = 0;  ///< of a StateChange, by which NRI up to 0.11 reports it; 0: never
  Operation operation = Operation::kNone;
  EventFields fields = {};
};
constexpr std::array kRequests = {
    RequestKind{.name = "Configure"},
    RequestKind{.name = "Synchronize"},
    RequestKind{.name = "RunPodSandbox", .event = 1, .operation = Operation::kCreate},
    RequestKind{.name = "UpdatePodSandbox",
                .operation = Operation::kUpdate,
                .fields = {.container = 0, .resources = 3}},
    RequestKind{.name = "PostUpdatePodSandbox", .event = 13},
    RequestKind{.name = "StopPodSandbox", .event = 2, .operation = Operation::kDestroy},
    RequestKind{.name = "RemovePodSandbox", .event = 3, .operation = Operation::kDestroy},
    RequestKind{.name = "CreateContainer", .operation = Operation::kCreate},
    RequestKind{.name = "PostCreateContainer", .event = 5},
    RequestKind{.name = "StartContainer", .event = 6, .operation = Operation::kUpdate},
    RequestKind{.name = "PostStartContainer", .event = 7},
    RequestKind{
        .name = "UpdateContainer", .operation = Operation::kUpdate, .fields = {.resources = 3}},
    RequestKind{.name = "PostUpdateContainer", .event = 9},
    RequestKind{.name = "StopContainer", .operation = Operation::kDestroy},
    RequestKind{.name = "RemoveContainer", .event = 11, .operation = Operation::kDestroy},
};
static_assert(kRequests[static_cast<std::size_t>(Request::kRemoveContainer)].name ==
              "RemoveContainer");

/// The row of a request in kRequests.
[[nodiscard]] constexpr const RequestKind& kind_of(Request request) {
  return kRequests.at(static_cast<std::size_t>(request));
}

/// What a plugin does when the runtime calls it: the port of a Connection. The answer is sent when
/// the function returns. An Error is answered with its message: at configure and synchronize the
/// runtime then drops the plugin; at CreateContainer, UpdateContainer and the events of pods it
/// fails the kubelet's request; otherwise it logs the message.
///
/// The budget is the time that the runtime granted when it sent the call (2 s by default). If the
/// answer is late, the runtime disconnects the plugin and creates the container without it
/// (containerd/nri, pkg/adaptation/plugin.go).
class Handler {
 public:
  virtual ~Handler() = default;

  /// Called once per connection, before the other requests.
  virtual Status configure(const ConfigureRequest& request, Budget budget) = 0;

  /// Called once per connection, after configure(), with all existing pods and containers, however
  /// many messages they came in.
  virtual Status synchronize(NodeState state, Budget budget) = 0;

  /// Called for each other request, whether sent as StateChange (NRI up to 0.11) or as a call of
  /// its own.
  /// @return the answer's message, in which texts have to be UTF-8.
  virtual Result<std::string> handle(Request request, const PodEvent& event, Budget budget) = 0;
};

}  // namespace podqos::nri
