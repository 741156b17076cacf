#include "nri/measures.h"

#include <string>

namespace podqos::nri {

namespace {

/// From 5 ms on the bounds are the kubelet's, which are Prometheus' default, up to what is beyond
/// every deadline of a runtime; a plugin needs less than the least of them.
prometheus::Histogram::BucketBoundaries bounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
}

double seconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>{time}.count();
}

}  // namespace

Measures::Measures() {
  auto& requests = prometheus::BuildHistogram()
                       .Name("podqos_nri_request_duration_seconds")
                       .Help(
                           "Time in seconds that a request of the runtime took podqos, by NRI "
                           "request: from the whole message to the answer.")
                       .Register(registry_);
  for (std::size_t i = 0; i < requests_.size(); ++i)
    requests_.at(i) = &requests.Add({{"request", std::string{kRequestNames.at(i)}}}, bounds());
  auto& operations = prometheus::BuildHistogram()
                         .Name("podqos_cgroup_manager_duration_seconds")
                         .Help(
                             "Duration in seconds for cgroup operations of podqos-nri, broken "
                             "down by method: create (a pod or container joins), update (it "
                             "started, or its resources changed), destroy (it has ended).")
                         .Register(registry_);
  for (std::size_t i = 0; i < operations_.size(); ++i)
    operations_.at(i) =
        &operations.Add({{"operation_type", std::string{kOperationNames.at(i)}}}, bounds());
  auto& errors = prometheus::BuildCounter()
                     .Name("podqos_errors_total")
                     .Help(
                         "Requests of the runtime, and clean-ups of podqos-nri, that failed, by "
                         "kind of error; under onError \"admit\" the runtime was not told.")
                     .Register(registry_);
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    errors_.at(i) = &errors.Add({{"code", std::string{format_error_code(code)}}});
  }
  last_reconcile_ = &prometheus::BuildGauge()
                         .Name("podqos_last_reconcile_timestamp_seconds")
                         .Help(
                             "Unix time at which podqos-nri last made state and cgroups agree "
                             "with all that the runtime has (Synchronize); absent before.")
                         .Register(registry_);
}

prometheus::Histogram* Measures::histogram_of(Request request) {
  const auto histogram = [this](Operation operation) {
    return operations_.at(static_cast<std::size_t>(operation));
  };
  switch (request) {
    case Request::kRunPodSandbox:
    case Request::kCreateContainer: return histogram(Operation::kCreate);
    case Request::kStartContainer:
    case Request::kUpdateContainer:
    case Request::kUpdatePodSandbox: return histogram(Operation::kUpdate);
    case Request::kStopContainer:
    case Request::kRemoveContainer:
    case Request::kStopPodSandbox:
    case Request::kRemovePodSandbox: return histogram(Operation::kDestroy);
    case Request::kConfigure:
    case Request::kSynchronize:
    case Request::kPostUpdatePodSandbox:
    case Request::kPostCreateContainer:
    case Request::kPostStartContainer:
    case Request::kPostUpdateContainer: return nullptr;
  }
  return nullptr;
}

void Measures::handled(Request request, std::chrono::steady_clock::duration time) {
  requests_.at(static_cast<std::size_t>(request))->Observe(seconds_of(time));
  if (auto* operation = histogram_of(request)) operation->Observe(seconds_of(time));
}

void Measures::failed(ErrorCode code) {
  ++failures_;
  errors_.at(static_cast<std::size_t>(code))->Increment();
}

void Measures::reconciled() {
  last_reconcile_->Add({}).Set(seconds_of(std::chrono::system_clock::now().time_since_epoch()));
}

}  // namespace podqos::nri
