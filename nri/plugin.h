#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/app/hook_stages.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"
#include "nri/configuration.h"
#include "nri/handler.h"

namespace podqos::nri {

/// podqos inside the runtime: pods and containers join when the runtime tells of them, are placed
/// before they exist, and leave when they end. What goes wrong with one of them is logged and,
/// under onError "admit", stays without effect on it.
class Plugin : public Handler {
 public:
  /// Must outlive the plugin; its settings may change between two calls.
  explicit Plugin(Configuration& configuration) : configuration_(configuration) {}

  /// Releases sandboxes that have ended without a word: containerd forgets to tell of pods that it
  /// had before it was started anew (containerd#8426).
  void tend();

  void registered(Status status) override;
  Status configure(const api::ConfigureRequest& request, Budget budget) override;
  Result<api::SynchronizeResponse> synchronize(api::SynchronizeRequest request,
                                               Budget budget) override;
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
  /// Those in force, with a deadline for the lock that leaves time to answer.
  [[nodiscard]] core::Settings settings() const;
  [[nodiscard]] app::Log& log() { return configuration_.log(); }
  /// Logs an error; it is an answer only under onError "reject".
  [[nodiscard]] Status settle(std::string_view what, Status done);
  /// What is done with one that runs: app::container_started or container_updated.
  using Note = Status (*)(const core::Settings&, app::Log&, const core::ContainerFacts&,
                          const app::Process&);
  [[nodiscard]] Status note_sandbox(const api::PodSandbox& pod, Note note);
  [[nodiscard]] Status note_container(const api::PodSandbox& pod, const api::Container& container,
                                      Note note);

  Configuration& configuration_;
  std::map<std::string, Pid, std::less<>> sandboxes_;  ///< that live, by id
};

}  // namespace podqos::nri
