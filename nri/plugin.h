#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/engine_events.h"
#include "common/app/log.h"
#include "common/app/placement_cache.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/settings.h"
#include "common/sys/clock.h"
#include "nri/configuration.h"
#include "nri/deferred_events.h"
#include "nri/handler.h"
#include "nri/metrics.h"

namespace podqos::nri {

/// podqos inside the runtime: pods and containers join when the runtime tells of them, are placed
/// before they exist, and leave when they end. What goes wrong with one of them is logged and,
/// under onError "admit", stays without effect on it.
class Plugin : public Handler {
 public:
  /// All must outlive the plugin; the settings may change between two calls.
  /// @param metrics  told of each error.
  Plugin(Configuration& configuration, Metrics& metrics,
         const sys::Clock& clock = sys::kSteadyClock)
      : configuration_(configuration), metrics_(metrics), clock_(clock) {}

  /// All that takes long, and all that nobody tells of; between two requests. Compares what the
  /// runtime has with what is known; tries again what has failed; releases sandboxes that have
  /// ended without a word: containerd forgets to tell of pods that it had before it was started
  /// anew (containerd#8426).
  /// @return whether it wants to go on once the runtime has been served
  [[nodiscard]] bool housekeep();

  void registered(Status status) override;
  Status configure(const api::ConfigureRequest& request, Budget budget) override;
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
  void handled(Request request, std::chrono::nanoseconds time) override;

 private:
  using TimePoint = sys::Clock::TimePoint;
  /// A container that the runtime makes where it was told to.
  struct Creation {
    std::string sandbox;
    TimePoint since;
  };
  struct Sandbox {
    Pid pid;
    StartTime start_time;
  };

  /// A container's init, whose parent is what watches over it: the shim, or conmon.
  [[nodiscard]] static app::Process process_of(std::uint32_t pid);
  /// For one request: its deadline, which leaves time to answer.
  [[nodiscard]] app::Timeouts timeouts(Budget budget) const;
  /// For what no request waits for.
  [[nodiscard]] app::Timeouts housekeeping(std::chrono::milliseconds lock) const;
  [[nodiscard]] app::Log& log() { return configuration_.log(); }
  /// Logs and counts an error; it is an answer only under onError "reject".
  [[nodiscard]] Status report(std::string_view what, Status done);
  void log_failure(std::string_view what, const Error& error, std::string_view then);
  [[nodiscard]] Status start(Result<core::ContainerFacts> facts, std::uint32_t pid,
                             const core::Settings& settings, const app::Timeouts& timeouts);
  [[nodiscard]] Status update(Result<core::ContainerFacts> facts, std::uint32_t pid,
                              const app::Timeouts& timeouts);
  /// Applies the event, after older ones of the same pod or container. If another process holds the
  /// lock for too long, and the runtime goes on nevertheless, it is applied later.
  [[nodiscard]] Status apply_or_defer(ContainerEvent event, const core::Settings& settings,
                                      const app::Timeouts& timeouts);
  /// One that has started or changed.
  [[nodiscard]] Status apply_event(const ContainerEvent& event, const core::Settings& settings,
                                   const app::Timeouts& timeouts);
  [[nodiscard]] Result<Applied> apply_end(const std::string& id, const app::Timeouts& timeouts);
  void register_sandbox(const api::PodSandbox& pod);
  /// Ids of containers that the runtime makes in it.
  [[nodiscard]] std::vector<std::string> created_in(std::string_view sandbox) const;
  /// Releases a container; what does not succeed now is tried again later.
  [[nodiscard]] Status release(const std::string& id, const app::Timeouts& timeouts);

  /// What the runtime had when it synchronized, read once.
  /// @return whether a synchronization has begun
  [[nodiscard]] bool read_state();
  /// Registers the pod of which the next event is, before the others.
  void synchronize_pod(const std::string& sandbox, const app::Timeouts& timeouts);
  /// With the ids of containers that the runtime makes.
  [[nodiscard]] app::Listener listener() const;
  [[nodiscard]] std::vector<app::ContainerEvent> reported_in(const api::SynchronizeRequest& state);
  // Parts of housekeep(), each with its own bound.
  /// @return whether more of it is to be registered, at once
  [[nodiscard]] bool synchronize_piece();
  [[nodiscard]] bool note_synchronized(const Result<bool>& taken);
  /// The runtime has removed what it reported when it synchronized.
  void forget_reported(const std::string& id);
  // false: it has waited in vain.
  [[nodiscard]] bool apply_deferred();
  [[nodiscard]] bool release_ended_sandboxes();
  void reconcile();
  void reconciled();

  Configuration& configuration_;
  Metrics& metrics_;
  const sys::Clock& clock_;
  /// A container that is about to be made counts as long as somebody can still hear what becomes of
  /// it.
  Pid own_pid_{::getpid()};
  app::PlacementCache placement_cache_;
  std::map<std::string, Sandbox, std::less<>> sandboxes_;  ///< that live, by id
  std::string observed_;  ///< the last of them whose process was looked for
  std::map<std::string, Creation, std::less<>> created_;  ///< neither started nor ended yet, by id
  DeferredEvents deferred_{clock_};
  TimePoint next_release_;
  TimePoint next_recomputation_;
};

}  // namespace podqos::nri
