#pragma once

#include "nri/handler.h"
#include "nri/measures.h"

namespace podqos::nri {

/// Another handler, with each call timed and counted.
class MeteredHandler : public Handler {
 public:
  /// Both outlive the object.
  MeteredHandler(Handler& inner, Measures& measures) : inner_(inner), measures_(measures) {}

  void registered(Status status) override;
  Status configure(const api::ConfigureRequest& request, Budget budget) override;
  /// One without a failure is a reconcile.
  Result<api::SynchronizeResponse> synchronize(NodeState state, Budget budget) override;
  Result<api::CreateContainerResponse> create_container(const api::CreateContainerRequest& request,
                                                        Budget budget) override;
  Result<api::UpdateContainerResponse> update_container(const api::UpdateContainerRequest& request,
                                                        Budget budget) override;
  Result<api::StopContainerResponse> stop_container(const api::StopContainerRequest& request,
                                                    Budget budget) override;
  Status update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget budget) override;
  Status run_pod_sandbox(const api::EventRequest& event, Budget budget) override;
  Status stop_pod_sandbox(const api::EventRequest& event, Budget budget) override;
  Status remove_pod_sandbox(const api::EventRequest& event, Budget budget) override;
  Status post_update_pod_sandbox(const api::EventRequest& event, Budget budget) override;
  Status post_create_container(const api::EventRequest& event, Budget budget) override;
  Status start_container(const api::EventRequest& event, Budget budget) override;
  Status post_start_container(const api::EventRequest& event, Budget budget) override;
  Status post_update_container(const api::EventRequest& event, Budget budget) override;
  Status remove_container(const api::EventRequest& event, Budget budget) override;
  void shutdown() override;

 private:
  template <class Call>
  auto timed(Request request, const Call& call);

  Handler& inner_;
  Measures& measures_;
};

}  // namespace podqos::nri
