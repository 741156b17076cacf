#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/departure.h"
#include "common/app/log.h"
#include "common/app/reconciler.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/pods/request.h"
#include "common/core/settings.h"

namespace podqos::app {

/// What an engine reports about a container: the content of its config.json, without the bundle.
struct ContainerEvent {
  core::ContainerFacts facts;
  core::Process init;        ///< pid 0 if none runs
  std::string sandbox = {};  ///< sandbox id of its pod (its own for a sandbox); for Synchronization
  /// Annotations of its pod, which those in `facts` override; held once for all of its containers,
  /// because authors of pods decide how long they are. nullptr: all are in `facts`.
  std::shared_ptr<const core::Annotations> of_pod = {};
  /// It is counted where it runs, whatever placement.onMisplaced says.
  bool stays = false;
  bool undone_if_refused = false;  ///< see core::AdmissionRequest
};

/// Handles the start of a container like the hook stage createRuntime: confirms a placed container,
/// or registers one that was not placed, before its process runs.
/// @return kRefused if placement.onMisplaced is "fail" and the container runs outside its pod, and,
///         for one that is undone then, if its pod does not fit the node, regardless of onError;
///         kNotFound if its init has ended.
[[nodiscard]] Status container_started(const core::Settings& settings, Log& log,
                                       const ContainerEvent& event, const Timeouts& timeouts = {});

/// Whether pod and tiers have followed a resize.
enum class Followed : std::uint8_t {
  kNow,
  kLater,      ///< containers still hold the old value; reconcile once they have changed
  kByKubelet,  ///< a kubelet may still have to resize its pod's cgroup; reconcile once it has
};

/// The engine has changed the resources of a container, or those of a pod, which it reports for the
/// sandbox: updates pod and tiers (core/pods/resize.h). An unknown container is first counted where
/// it runs.
/// @note KEP-1287; NRI UpdateContainer and UpdatePodSandbox.
[[nodiscard]] Result<Followed> resources_changed(const core::Settings& settings, Log& log,
                                                 const ContainerEvent& event,
                                                 const Timeouts& timeouts = {});

/// Makes everything as the records say (Reconciler), and synchronizes the records with an engine's
/// complete list of containers: releases what has ended, confirms what was placed and has started,
/// and counts unknown containers without moving them. Errors are reported per container. It goes in
/// small steps, so that neither the engine nor other users of the lock wait for all of a full node.
/// @note NRI Synchronize, nri pkg/api.
class Synchronization {
 public:
  using Failed = std::function<void(const Error&)>;
  /// @param all  each pod's sandbox before its containers, because it holds the resources of the
  ///         whole pod; nullopt if the engine has not listed them, so that records are compared
  ///         only
  /// @param failed  called with the error of each container that could not be processed
  Synchronization(std::optional<std::vector<ContainerEvent>> all, Failed failed);

  /// Whether the engine has listed its containers.
  [[nodiscard]] bool is_listed() const { return is_listed_; }
  /// Number of containers and sandboxes, processed ones included.
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// Removes a container that the engine has reported as removed in the meantime.
  void forget(std::string_view id);
  /// True if containers of this sandbox's pod are still unprocessed.
  [[nodiscard]] bool awaits(std::string_view sandbox);
  /// The part that one call processes.
  struct Piece {
    /// Time limit, the wait for the lock included; one step is made in any case.
    std::optional<std::chrono::milliseconds> at_most = std::nullopt;
    /// Only the pod of this sandbox, before later events of that pod are handled, and before pods
    /// that have ended are known to have; "": all.
    std::string_view sandbox = {};
    Timeouts timeouts = {};
  };
  /// Processes one piece. After an error the next call continues with the rest.
  /// @param list  the listener, with the ids of containers that the engine is creating in addition
  /// @return true if all have been processed.
  [[nodiscard]] Result<bool> resume(const core::Settings& settings, Log& log,
                                    const EngineList& list, const Piece& piece);

 private:
  using TimePoint = sys::Clock::TimePoint;
  /// What a call of resume() works with.
  struct Context {
    const core::Settings& settings;
    Log& log;
    const EngineList& list;  ///< with the engine's containers
    const Timeouts& timeouts;
    TimePoint end;  ///< no step begins then
  };
  /// A step of the comparison.
  [[nodiscard]] Status compare(const Context& context);
  /// Steps of it, one at least, until it is done or the end has come.
  [[nodiscard]] Status compare_until_end(const Context& context);
  /// Takes in the next of the first `count` containers, one at least, until the end has come.
  [[nodiscard]] Status take_in(const Context& context, std::size_t count);
  [[nodiscard]] std::vector<ContainerEvent>::iterator unprocessed() {
    return all_.begin() + static_cast<std::ptrdiff_t>(next_);
  }

  bool is_listed_;
  std::vector<ContainerEvent> all_;
  Failed failed_;
  std::size_t next_ = 0;
  std::optional<Reconciler> comparison_ = Reconciler{Warnings::kLogged};  ///< nullopt once done
};

/// Periodic work: withdraws containers that never started and handles pods that are due.
/// @param list  the listener, with the ids of containers that the engine is creating: all other
///              pending containers placed by the listener are withdrawn
[[nodiscard]] Status reconcile_due(const core::Settings& settings, Log& log, const EngineList& list,
                                   const Timeouts& timeouts = {});

}  // namespace podqos::app
