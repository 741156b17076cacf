#include "nri/metrics.h"

namespace podqos::nri {

void Metrics::handled(Request request, std::chrono::steady_clock::duration time) {
  requests_.at(static_cast<std::size_t>(request)).observe(time);
  const Operation operation = kind_of(request).operation;
  if (operation != Operation::kNone)
    operations_.at(static_cast<std::size_t>(operation)).observe(time);
}

void Metrics::failed(ErrorCode code) {
  ++errors_.at(static_cast<std::size_t>(code));
}

void Metrics::reconciled() {
  last_reconcile_ = std::chrono::system_clock::now();
}

void Metrics::write(Exposition& out) const {
  out.metric("histogram", "podqos_nri_request_duration_seconds",
             "Time in seconds that a request of the runtime took podqos, by NRI request: from the "
             "whole message to the answer.");
  for (std::size_t i = 0; i < requests_.size(); ++i)
    requests_.at(i).write(out, {"request", kRequests.at(i).name});
  out.metric("histogram", "podqos_cgroup_manager_duration_seconds",
             "Duration in seconds for cgroup operations of podqos-nri, broken down by method: "
             "create (a pod or container joins), update (it started, or its resources changed), "
             "destroy (it has ended).");
  for (std::size_t i = 0; i < operations_.size(); ++i)
    operations_.at(i).write(out, {"operation_type", kOperationNames.at(i)});
  out.metric("counter", "podqos_errors_total",
             "Requests of the runtime, and clean-ups of podqos-nri, that failed, by kind of error; "
             "under onError \"admit\" the runtime was not told.");
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    out.sample({{"code", format_error_code(static_cast<ErrorCode>(i))}},
               static_cast<double>(errors_.at(i)));
  }
  out.single("counter", "podqos_nri_dropped_events_total",
             "Events of pods and containers that podqos-nri could not handle in time and, after "
             "further attempts, has given up.",
             static_cast<double>(dropped_));
  if (!last_reconcile_) return;
  const std::chrono::duration<double> time = last_reconcile_->time_since_epoch();
  out.single("gauge", "podqos_last_reconcile_timestamp_seconds",
             "Unix time at which podqos-nri last made state and cgroups agree with all that the "
             "runtime has (Synchronize); absent before.",
             time.count());
}

}  // namespace podqos::nri
