#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/engine_events.h"
#include "common/app/eviction.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/pods/request.h"
#include "common/sys/clock.h"
#include "common/sys/process.h"
#include "nri/connection.h"
#include "nri/deferred_events.h"
#include "nri/plugin_configuration.h"
#include "nri/plugin_metrics.h"

namespace podqos::nri {

/// The NRI plugin: places containers before they are created, registers pods and containers that
/// the runtime reports, and releases them when they end. Errors are logged and counted; under
/// onError "admit" they do not affect the pod or container.
class Plugin : public Handler {
 public:
  /// All arguments outlive the plugin; the settings may change between two calls.
  /// @param metrics  counts requests and errors
  Plugin(Configuration& configuration, Metrics& metrics,
         const sys::Clock& clock = sys::kSteadyClock)
      : configuration_(configuration), metrics_(metrics), clock_(clock) {}

  /// Work between two requests, in bounded pieces: registers the runtime's state after Synchronize,
  /// retries deferred events, releases sandboxes whose end was not reported, since a restarted
  /// containerd sends no events of older pods (containerd#8426), and lowers memory limits that
  /// usage had kept above their rule.
  /// @return whether to be called again as soon as the runtime has been served
  [[nodiscard]] bool housekeep();

  Status configure(const ConfigureRequest& request) override;
  Status synchronize(NodeState state) override;
  Result<std::string> handle(Request request, const PodEvent& event, Budget budget) override;

 private:
  using TimePoint = sys::Clock::TimePoint;
  /// A container that podqos has placed and the runtime is creating.
  struct Creation {
    std::string sandbox;  ///< id of its pod's sandbox
    TimePoint since;
  };

  /// A container's init, with the start time that its pid has now. Its parent is the monitor: the
  /// containerd shim, or conmon.
  /// @param pid  0: none runs
  [[nodiscard]] static Result<core::Process> process_of(std::uint32_t pid);
  /// Timeouts for a request: a deadline that leaves time to answer.
  [[nodiscard]] app::Timeouts timeouts(Budget budget) const;
  /// Timeouts for work on all pods, in a round of housekeeping. Only the wait for the lock ends
  /// with the round: with the systemd driver each pod takes a call, so that a bound for all calls
  /// could never be met on a full node.
  [[nodiscard]] app::Timeouts whole_node(const app::Timeouts& round) const;
  [[nodiscard]] app::Log& log() { return configuration_.log(); }
  /// Logs "what: error", records it as an event about what the request is about, and counts it.
  void record_failure(Request request, const PodEvent& event, const Error& error);
  /// Logs "what: error then" and counts the error.
  void log_failure(std::string_view what, const Error& error, std::string_view then = "");

  /// Does what handle() promises.
  [[nodiscard]] Result<std::string> answer(Request request, const PodEvent& event,
                                           const app::Timeouts& timeouts);
  /// Places a container. @return CreateContainerResponse
  [[nodiscard]] Result<std::string> create(const PodEvent& event, const app::Timeouts& timeouts);
  /// Applies a start or change after older ones of the same pod or container. If the lock cannot be
  /// taken in time and the runtime continues nevertheless, the event is deferred.
  [[nodiscard]] Status apply_or_defer(DeferredEvent::Kind kind, Result<core::ContainerFacts> facts,
                                      std::uint32_t pid, const app::Timeouts& timeouts);
  /// Applies one event. @return false: what is to end has not ended
  [[nodiscard]] Result<bool> apply(const DeferredEvent& deferred, const app::Timeouts& timeouts);
  /// Logs and counts that a deferred event is dropped.
  void drop(const DeferredEvent& event, const Error& error);
  /// Releases a pod or container; defers that if it does not succeed.
  [[nodiscard]] Status release(const std::string& id, const app::Timeouts& timeouts);
  /// Releases a sandbox, and the containers that are being created in it, which will not start.
  [[nodiscard]] Status remove_sandbox(const std::string& id, const app::Timeouts& timeouts);

  // plugin_synchronization.cpp

  /// Takes in the state of the last Synchronize, once.
  /// @return whether a synchronization is in progress
  [[nodiscard]] bool read_state();
  /// Registers a pod with its containers before the others, because an event concerns it.
  void synchronize_pod(const Reported& pod, const app::Timeouts& timeouts);
  /// This process, with the ids of the containers that are being created.
  [[nodiscard]] app::EngineList listener() const;
  /// The pods and containers of a Synchronize as events.
  [[nodiscard]] std::vector<app::ContainerEvent> reported_in(NodeState state);
  /// Logs the end or the failure of a synchronization. @return whether more is left
  [[nodiscard]] bool note_synchronized(const Result<bool>& taken);
  /// Notes the process of a sandbox, whose end may not be reported.
  void register_sandbox(const Reported& pod);
  /// Releases sandboxes whose process has ended. @return as DeferredEvents::apply()
  [[nodiscard]] bool release_ended_sandboxes(const app::Timeouts& timeouts);
  /// Measures the tiers, once a second, and evicts a pod if one is due.
  void evict(const app::Timeouts& timeouts);
  /// Raises the memory.high of containers that are throttled there for too long, if that is due.
  void relieve_throttled(const app::Timeouts& timeouts);
  /// Reports OOM kills in containers that run, once the kernel has counted any on the node.
  void report_oom_kills(const app::Timeouts& timeouts);
  /// Begins to compare everything with the records if an event has called for it, or if it is due.
  void compare_when_due();
  /// Releases due pods.
  void reconcile(const app::Timeouts& timeouts);
  /// One round towards the rules' memory limits.
  void converge(const app::Timeouts& timeouts);

  Configuration& configuration_;
  Metrics& metrics_;
  const sys::Clock& clock_;
  /// The creator of pending containers: their requests count while this process can receive their
  /// events.
  core::Process own_process_{
      process_of(static_cast<std::uint32_t>(::getpid())).value_or(core::Process{})};
  std::map<std::string, core::Process, std::less<>> sandboxes_;  ///< running ones, by id
  std::map<std::string, Creation, std::less<>> created_;  ///< neither started nor ended, by id
  DeferredEvents deferred_{
      clock_,
      [this](const DeferredEvent& event, const app::Timeouts& timeouts) {
        return apply(event, timeouts);
      },
      [this](const DeferredEvent& event, const Error& error) { drop(event, error); }};
  std::optional<core::Engine> engine_;  ///< as Configure names it
  std::optional<NodeState> state_;      ///< of the last Synchronize, until it is taken in
  std::optional<app::Synchronization> synchronization_;  ///< in progress
  bool compares_soon_ = true;  ///< events may have been missed, at least before the start
  app::Evictor evictor_;
  std::optional<std::int64_t> oom_kills_;  ///< of the node, when they were reported
  TimePoint next_eviction_;
  TimePoint next_release_;
  TimePoint next_convergence_;
  TimePoint next_comparison_;
  TimePoint next_relief_;
};

}  // namespace podqos::nri
