#pragma once

#include <chrono>

#include "common/base/error.h"
#include "nri/api.h"
#include "nri/node_state.h"
#include "nri/request.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

/// What a plugin does when the runtime calls it: the port of a Session. The answer is sent when the
/// function returns. An Error is answered with its message: at configure and synchronize the
/// runtime then drops the plugin; at create_container, update_container and the events of pods
/// it fails the kubelet's request; otherwise it logs the message. All texts of an answer have to be
/// UTF-8, or the call fails.
///
/// The budget is the time that the runtime granted when it sent the call (2 s by default). If the
/// answer is late, the runtime disconnects the plugin and creates the container without it
/// (containerd/nri, pkg/adaptation/plugin.go).
class Handler {
 public:
  virtual ~Handler() = default;

  /// The answer to the registration; may come after configure(). An Error: the runtime rejects this
  /// plugin, and will close the connection.
  virtual void registered(Status status) = 0;

  /// Called once per connection, before the other requests.
  virtual Status configure(const api::ConfigureRequest& request, Budget budget) = 0;

  /// Called once per connection, after configure(), with all existing pods and containers, however
  /// many messages they came in.
  virtual Result<api::SynchronizeResponse> synchronize(NodeState state, Budget budget) = 0;

  // Requests with an answer.
  virtual Result<api::CreateContainerResponse> create_container(
      const api::CreateContainerRequest& request, Budget budget) = 0;
  virtual Result<api::UpdateContainerResponse> update_container(
      const api::UpdateContainerRequest& request, Budget budget) = 0;
  virtual Result<api::StopContainerResponse> stop_container(
      const api::StopContainerRequest& request, Budget budget) = 0;
  virtual Status update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget budget) = 0;

  // Events without an answer, whether sent as StateChange (NRI up to 0.11) or as calls of their
  // own.
  virtual Status run_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status stop_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status remove_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_update_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_create_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status start_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_start_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_update_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status remove_container(const api::EventRequest& event, Budget budget) = 0;

  /// The runtime is about to close the connection. No version up to 0.12 sends this.
  virtual void shutdown() = 0;

  /// Reports the time that a request took; called before its answer is sent.
  virtual void handled(Request request, std::chrono::nanoseconds time) = 0;
};

}  // namespace podqos::nri
