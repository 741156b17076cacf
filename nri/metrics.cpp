#include "nri/metrics.h"

#include <string>
#include <utility>

namespace podqos::nri {

std::optional<Metrics::Operation> Metrics::operation_of(Request request) {
  switch (request) {
    case Request::kRunPodSandbox:
    case Request::kCreateContainer: return Operation::kCreate;
    case Request::kStartContainer:
    case Request::kUpdateContainer:
    case Request::kUpdatePodSandbox: return Operation::kUpdate;
    case Request::kStopContainer:
    case Request::kRemoveContainer:
    case Request::kStopPodSandbox:
    case Request::kRemovePodSandbox: return Operation::kDestroy;
    case Request::kConfigure:
    case Request::kSynchronize:
    case Request::kPostUpdatePodSandbox:
    case Request::kPostCreateContainer:
    case Request::kPostStartContainer:
    case Request::kPostUpdateContainer: return std::nullopt;
  }
  return std::nullopt;
}

void Metrics::handled(Request request, std::chrono::steady_clock::duration time) {
  requests_.at(static_cast<std::size_t>(request)).observe(time);
  if (const auto operation = operation_of(request))
    operations_.at(static_cast<std::size_t>(*operation)).observe(time);
}

void Metrics::failed(ErrorCode code) {
  ++errors_.at(static_cast<std::size_t>(code));
}

void Metrics::reconciled() {
  last_reconcile_ = std::chrono::system_clock::now();
}

std::vector<MetricFamily> Metrics::collect() const {
  MetricFamily requests{
      .type = MetricType::kHistogram,
      .name = "podqos_nri_request_duration_seconds",
      .help =
          "Time in seconds that a request of the runtime took podqos, by NRI request: from the "
          "whole message to the answer.",
      .samples = {}};
  for (std::size_t i = 0; i < requests_.size(); ++i)
    requests_.at(i).add_to(requests,
                           {.name = "request", .value = std::string{kRequestNames.at(i)}});
  MetricFamily operations{
      .type = MetricType::kHistogram,
      .name = "podqos_cgroup_manager_duration_seconds",
      .help =
          "Duration in seconds for cgroup operations of podqos-nri, broken down by method: "
          "create (a pod or container joins), update (it started, or its resources changed), "
          "destroy (it has ended).",
      .samples = {}};
  for (std::size_t i = 0; i < operations_.size(); ++i)
    operations_.at(i).add_to(
        operations, {.name = "operation_type", .value = std::string{kOperationNames.at(i)}});
  MetricFamily errors{
      .type = MetricType::kCounter,
      .name = "podqos_errors_total",
      .help =
          "Requests of the runtime, and clean-ups of podqos-nri, that failed, by kind of error; "
          "under onError \"admit\" the runtime was not told.",
      .samples = {}};
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    errors.samples.push_back(
        {.suffix = "",
         .labels = {{.name = "code", .value = std::string{format_error_code(code)}}},
         .value = static_cast<double>(errors_.at(i))});
  }
  MetricFamily reconcile{
      .type = MetricType::kGauge,
      .name = "podqos_last_reconcile_timestamp_seconds",
      .help =
          "Unix time at which podqos-nri last made state and cgroups agree with all that the "
          "runtime has (Synchronize); absent before.",
      .samples = {}};
  if (last_reconcile_) {
    const std::chrono::duration<double> time = last_reconcile_->time_since_epoch();
    reconcile.samples.push_back({.suffix = "", .labels = {}, .value = time.count()});
  }
  return {std::move(requests), std::move(operations), std::move(errors), std::move(reconcile)};
}

}  // namespace podqos::nri
