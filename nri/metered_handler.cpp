#include "nri/metered_handler.h"

#include <chrono>
#include <utility>

namespace podqos::nri {

template <class Call>
auto MeteredHandler::timed(Request request, const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  auto done = call();
  measures_.handled(request, std::chrono::steady_clock::now() - start);
  return done;
}

void MeteredHandler::registered(Status status) {
  inner_.registered(std::move(status));
}

Status MeteredHandler::configure(const api::ConfigureRequest& request, Budget budget) {
  auto done = timed(Request::kConfigure, [&] { return inner_.configure(request, budget); });
  // What goes wrong with pods and containers is counted where it is settled.
  if (!done) measures_.failed(done.error().code);
  return done;
}

Result<api::SynchronizeResponse> MeteredHandler::synchronize(NodeState state, Budget budget) {
  return timed(Request::kSynchronize, [&] { return inner_.synchronize(std::move(state), budget); });
}

Result<api::CreateContainerResponse> MeteredHandler::create_container(
    const api::CreateContainerRequest& request, Budget budget) {
  return timed(Request::kCreateContainer, [&] { return inner_.create_container(request, budget); });
}

Result<api::UpdateContainerResponse> MeteredHandler::update_container(
    const api::UpdateContainerRequest& request, Budget budget) {
  return timed(Request::kUpdateContainer, [&] { return inner_.update_container(request, budget); });
}

Result<api::StopContainerResponse> MeteredHandler::stop_container(
    const api::StopContainerRequest& request, Budget budget) {
  return timed(Request::kStopContainer, [&] { return inner_.stop_container(request, budget); });
}

Status MeteredHandler::update_pod_sandbox(const api::UpdatePodSandboxRequest& request,
                                          Budget budget) {
  return timed(Request::kUpdatePodSandbox,
               [&] { return inner_.update_pod_sandbox(request, budget); });
}

Status MeteredHandler::run_pod_sandbox(const api::EventRequest& event, Budget budget) {
  return timed(Request::kRunPodSandbox, [&] { return inner_.run_pod_sandbox(event, budget); });
}

Status MeteredHandler::stop_pod_sandbox(const api::EventRequest& event, Budget budget) {
  return timed(Request::kStopPodSandbox, [&] { return inner_.stop_pod_sandbox(event, budget); });
}

Status MeteredHandler::remove_pod_sandbox(const api::EventRequest& event, Budget budget) {
  return timed(Request::kRemovePodSandbox,
               [&] { return inner_.remove_pod_sandbox(event, budget); });
}

Status MeteredHandler::post_update_pod_sandbox(const api::EventRequest& event, Budget budget) {
  return timed(Request::kPostUpdatePodSandbox,
               [&] { return inner_.post_update_pod_sandbox(event, budget); });
}

Status MeteredHandler::post_create_container(const api::EventRequest& event, Budget budget) {
  return timed(Request::kPostCreateContainer,
               [&] { return inner_.post_create_container(event, budget); });
}

Status MeteredHandler::start_container(const api::EventRequest& event, Budget budget) {
  return timed(Request::kStartContainer, [&] { return inner_.start_container(event, budget); });
}

Status MeteredHandler::post_start_container(const api::EventRequest& event, Budget budget) {
  return timed(Request::kPostStartContainer,
               [&] { return inner_.post_start_container(event, budget); });
}

Status MeteredHandler::post_update_container(const api::EventRequest& event, Budget budget) {
  return timed(Request::kPostUpdateContainer,
               [&] { return inner_.post_update_container(event, budget); });
}

Status MeteredHandler::remove_container(const api::EventRequest& event, Budget budget) {
  return timed(Request::kRemoveContainer, [&] { return inner_.remove_container(event, budget); });
}

void MeteredHandler::shutdown() {
  inner_.shutdown();
}

}  // namespace podqos::nri
