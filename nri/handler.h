#pragma once

#include <chrono>

#include "common/base/error.h"
#include "nri/api.h"
#include "nri/node_state.h"
#include "nri/request.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

/// What a plugin does when the runtime calls it: the one port of a Session. The answer of a
/// function is sent when it returns. An Error is answered with its text: at configure and
/// synchronize that ends the plugin, at create_container, update_container and in the events of
/// pods it fails what the kubelet asked for, elsewhere the runtime logs it.
/// All texts of an answer are UTF-8: the runtime takes no other, and the call fails.
///
/// The budget is what the runtime granted (2 s, unless configured otherwise) when it sent the call:
/// whoever takes longer is disconnected, and the container is created as if there were no plugin.
class Handler {
 public:
  virtual ~Handler() = default;

  /// The answer to the registration; may come after configure(). An Error: the runtime does not
  /// want this plugin, and will close the connection.
  virtual void registered(Status status) = 0;

  /// Once, before everything else.
  virtual Status configure(const api::ConfigureRequest& request, Budget budget) = 0;

  /// Once, after configure(): all pods and containers that live, in whatever number of parts they
  /// came.
  virtual Result<api::SynchronizeResponse> synchronize(NodeState state, Budget budget) = 0;

  virtual Result<api::CreateContainerResponse> create_container(
      const api::CreateContainerRequest& request, Budget budget) = 0;
  virtual Result<api::UpdateContainerResponse> update_container(
      const api::UpdateContainerRequest& request, Budget budget) = 0;
  virtual Result<api::StopContainerResponse> stop_container(
      const api::StopContainerRequest& request, Budget budget) = 0;
  virtual Status update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget budget) = 0;

  // Events, whether they came as StateChange or as a call of their own.
  virtual Status run_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status stop_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status remove_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_update_pod_sandbox(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_create_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status start_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_start_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status post_update_container(const api::EventRequest& event, Budget budget) = 0;
  virtual Status remove_container(const api::EventRequest& event, Budget budget) = 0;

  /// The runtime is about to end the connection. No version up to 0.12 says so.
  virtual void shutdown() = 0;

  /// How long one of the above took; before its answer is sent.
  virtual void handled(Request request, std::chrono::nanoseconds time) = 0;
};

}  // namespace podqos::nri
