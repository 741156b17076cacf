#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/pods/request.h"

/// The messages of NRI, as far as podqos reads and writes them: containerd/nri, pkg/api/api.proto.
/// Of annotations only podqos's own are kept, and of resources 0 is unset, as in NRI.
namespace podqos::nri {

/// A pod's sandbox or a container.
struct Reported {
  /// A pod has its resources as sums in its identity, and lacks a score; the identity of a
  /// container is its name alone. To be checked by sandbox_facts() and container_facts().
  core::ContainerFacts facts;
  std::string sandbox;    ///< id of the container's sandbox; of a sandbox its own
  std::uint32_t pid = 0;  ///< 0: it has no process
  bool created = false;   ///< a container whose state is CONTAINER_CREATED

  Reported() { facts.engine.emplace().cri = true; }
  friend bool operator==(const Reported&, const Reported&) = default;
};

/// The facts of a container that the runtime is about to create or has started. The identity comes
/// from the messages' own fields only: a pod author's annotations with the keys of an engine are
/// ignored. podqos.io/ annotations of the pod apply to each of its containers, which can override
/// them.
/// @return kTooLarge for more than 256 podqos.io/ annotations, or one of more than 256 KiB;
///         kInvalidArgument for a uid, id or name that cannot be part of a cgroup name.
[[nodiscard]] Result<core::ContainerFacts> container_facts(
    const Reported& pod, const Reported& container,
    const std::optional<core::Engine>& engine = std::nullopt);

/// The facts of a pod's sandbox, with the pod's resources and overhead as the kubelet passed them
/// to the CRI. Errors as for container_facts().
[[nodiscard]] Result<core::ContainerFacts> sandbox_facts(
    const Reported& pod, const std::optional<core::Engine>& engine = std::nullopt);

/// The request of a runtime about a pod or one of its containers.
struct PodEvent {
  Reported pod;
  Reported container;
  std::int32_t number = 0;  ///< of a StateChangeEvent: which event it is
};

/// Where a request has its fields; 0: it does not have this one.
struct EventFields {
  std::uint32_t pod = 1;
  std::uint32_t container = 2;
  std::uint32_t resources = 0;  ///< new resources of the container or, without one, of the pod
  std::uint32_t event = 0;
};
/// StateChangeEvent, by which NRI up to 0.11 reports most events.
constexpr EventFields kStateChange{.pod = 2, .container = 3, .event = 1};

/// The requests of a runtime that podqos asks for, in the order of kRequests (containerd/nri,
/// pkg/api/api.proto, service Plugin).
enum class Request : std::uint8_t {
  kConfigure,
  kSynchronize,
  kRunPodSandbox,
  kUpdatePodSandbox,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kStartContainer,
  kUpdateContainer,
  kStopContainer,
  kRemoveContainer,
};

/// What requests mean for cgroups: the operation types of the kubelet's cgroup manager metric
/// (pkg/kubelet/metrics/metrics.go, cgroup_manager_duration_seconds).
constexpr std::string_view kCreate = "create";
constexpr std::string_view kUpdate = "update";
constexpr std::string_view kDestroy = "destroy";

/// How a request is called, and how its message is read.
struct RequestKind {
  std::string_view name;   ///< the ttrpc method, also the label "request" in metrics
  std::int32_t event = 0;  ///< of a StateChange, by which NRI up to 0.11 reports it; 0: never
  std::string_view operation = {};  ///< of the above, for metrics
  EventFields fields = {};
};
constexpr std::array kRequests = {
    RequestKind{.name = "Configure"},
    RequestKind{.name = "Synchronize"},
    RequestKind{.name = "RunPodSandbox", .event = 1, .operation = kCreate},
    RequestKind{.name = "UpdatePodSandbox",
                .operation = kUpdate,
                .fields = {.container = 0, .resources = 3}},
    RequestKind{.name = "StopPodSandbox", .event = 2, .operation = kDestroy},
    RequestKind{.name = "RemovePodSandbox", .event = 3, .operation = kDestroy},
    RequestKind{.name = "CreateContainer", .operation = kCreate},
    RequestKind{.name = "StartContainer", .event = 6, .operation = kUpdate},
    RequestKind{.name = "UpdateContainer", .operation = kUpdate, .fields = {.resources = 3}},
    RequestKind{.name = "StopContainer", .operation = kDestroy},
    RequestKind{.name = "RemoveContainer", .event = 11, .operation = kDestroy},
};
static_assert(kRequests[static_cast<std::size_t>(Request::kRemoveContainer)].name ==
              "RemoveContainer");

/// The row of a request in kRequests.
[[nodiscard]] constexpr const RequestKind& kind_of(Request request) {
  return kRequests.at(static_cast<std::size_t>(request));
}

/// Parses a request. New resources are merged into those of its container or pod.
/// @return kInvalidArgument: malformed bytes; likewise below.
[[nodiscard]] Result<PodEvent> parse_event(std::string_view bytes, const EventFields& fields);

/// ConfigureRequest.
struct ConfigureRequest {
  std::string runtime_name;
  std::string runtime_version;
  std::string nri_version;  ///< from NRI 0.12 on
};
[[nodiscard]] Result<ConfigureRequest> parse_configure_request(std::string_view bytes);

/// All pods and containers of a runtime, from the parts of a Synchronize: NRI 0.7 and newer split a
/// state that exceeds one message. What podqos does not read is not kept: pod authors decide how
/// much that is, and must not be able to keep a node from being synchronized.
struct NodeState {
  /// Bytes of one Synchronize, a hundred times what the largest nodes have.
  static constexpr std::size_t kLimit = std::size_t{64} << 20U;

  std::vector<Reported> pods;
  std::vector<Reported> containers;
  std::size_t size = 0;  ///< bytes of both

  /// Adds a part, a SynchronizeRequest. After an error all parts are dropped.
  /// @param limit  of the bytes that are kept
  /// @return whether it was the last part; kInvalidArgument: malformed bytes; kTooLarge: beyond the
  ///         limit.
  [[nodiscard]] Result<bool> add(std::string_view bytes, std::size_t limit = kLimit);
};

/// RegisterPluginRequest.
[[nodiscard]] std::string format_registration(std::string_view name, std::string_view index);
/// ConfigureResponse.
/// @param events  one bit for each event that the plugin asks for
[[nodiscard]] std::string format_configure_response(std::int32_t events);
/// The answer to a part of a Synchronize that is not the last one: `more`, without updates.
constexpr const char* kMoreResponse = "\x10\x01";
/// CreateContainerResponse. Only values that are set are present: a runtime claims present fields
/// for this plugin, and fails a container for which two plugins claim the same.
[[nodiscard]] std::string format_create_response(const core::ConfigEdit& edit);

}  // namespace podqos::nri
