#include "nri/plugin_metrics.h"

#include <algorithm>
#include <iterator>

#include "common/app/node_metrics.h"

namespace podqos::nri {

void Histogram::observe(std::chrono::steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>{time}.count();
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts_.at(static_cast<std::size_t>(std::distance(kBounds.begin(), bound)));
  sum_ += seconds;
}

void Histogram::write(codec::Exposition& out, const codec::Label& label) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_.at(i);
    const std::string bound =
        i < kBounds.size() ? codec::format_metric_value(kBounds.at(i)) : "+Inf";
    out.sample({label, {"le", bound}}, static_cast<double>(count), "_bucket");
  }
  out.sample({label}, sum_, "_sum");
  out.sample({label}, static_cast<double>(count), "_count");
}

void Metrics::handled(Request request, std::chrono::steady_clock::duration time) {
  requests_.at(static_cast<std::size_t>(request)).observe(time);
  const std::string_view operation = kind_of(request).operation;
  if (!operation.empty()) operations_.at(operation).observe(time);
}

void Metrics::failed(ErrorCode code) {
  ++errors_.at(static_cast<std::size_t>(code));
}

void Metrics::converged(const app::ConvergenceRound& round) {
  limit_steps_["reclaim"] += round.reclaimed;
  limit_steps_["lower"] += round.lowered;
  limit_steps_["pause"] += round.pauses;
}

void Metrics::evicted(core::QosClass qos_class) {
  ++evictions_[qos_class];
}

void Metrics::reconciled() {
  last_reconcile_ = std::chrono::system_clock::now();
}

void Metrics::write(codec::Exposition& out) const {
  out.metric("histogram", "podqos_nri_request_duration_seconds",
             "Time in seconds that a request of the runtime took podqos, by NRI request: from the "
             "whole message to the answer.");
  for (std::size_t i = 0; i < requests_.size(); ++i)
    requests_.at(i).write(out, {"request", kRequests.at(i).name});
  out.metric("histogram", "podqos_cgroup_manager_duration_seconds",
             "Duration in seconds for cgroup operations of podqos-nri, broken down by method: "
             "create (a pod or container joins), update (it started, or its resources changed), "
             "destroy (it has ended).");
  for (const auto& [operation, times] : operations_)
    times.write(out, {"operation_type", operation});
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
  out.metric(
      "counter", "podqos_memory_limit_steps_total",
      "Steps of podqos-nri towards the memory limits that the rules ask for, where usage had "
      "kept them higher: reclaim (the kernel was asked to reclaim memory), lower (a limit "
      "was lowered), pause (under pressure, or as nothing could be reclaimed).");
  for (const auto& [step, count] : limit_steps_)
    out.sample({{"step", step}}, static_cast<double>(count));
  out.metric("counter", "podqos_evictions_total",
             "Pods that podqos-nri has evicted, by the tier that was under memory pressure; those "
             "of systemd-oomd are not counted.");
  for (const auto& [qos_class, count] : evictions_)
    out.sample({{"tier", app::tier_label(qos_class)}}, static_cast<double>(count));
  if (!last_reconcile_) return;
  const std::chrono::duration<double> time = last_reconcile_->time_since_epoch();
  out.single("gauge", "podqos_last_reconcile_timestamp_seconds",
             "Unix time at which podqos-nri last made state and cgroups agree with all that the "
             "runtime has (Synchronize); absent before.",
             time.count());
}

}  // namespace podqos::nri
