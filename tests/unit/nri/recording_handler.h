#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "nri/handler.h"

namespace podqos::nri::test {

/// Writes down what it is called for, and answers what it was told to.
class RecordingHandler : public Handler {
 public:
  std::vector<std::string> heard;
  std::vector<Budget> budgets;
  std::vector<std::pair<Request, std::chrono::nanoseconds>> times;
  api::SynchronizeRequest state;
  Result<api::SynchronizeResponse> synchronize_answer;
  Result<api::CreateContainerResponse> create_answer;
  Result<api::UpdateContainerResponse> update_answer;
  Result<api::StopContainerResponse> stop_answer;
  Status answer;  ///< to all the rest

  void registered(Status status) override {
    heard.push_back("registered" + (status ? "" : ": " + status.error().message));
  }
  Status configure(const api::ConfigureRequest& request, Budget budget) override {
    return note("configure " + request.runtime_name() + " " + request.runtime_version(), budget);
  }
  Result<api::SynchronizeResponse> synchronize(NodeState node, Budget budget) override {
    auto request = std::move(node).read();
    if (!request) {
      static_cast<void>(note("synchronize: " + request.error().message, budget));
      return synchronize_answer;
    }
    state = std::move(*request);
    static_cast<void>(note("synchronize " + std::to_string(state.pods_size()) + " " +
                               std::to_string(state.containers_size()),
                           budget));
    return synchronize_answer;
  }
  Result<api::CreateContainerResponse> create_container(const api::CreateContainerRequest& request,
                                                        Budget budget) override {
    static_cast<void>(note("create " + names(request), budget));
    return create_answer;
  }
  Result<api::UpdateContainerResponse> update_container(const api::UpdateContainerRequest& request,
                                                        Budget budget) override {
    const std::string shares = std::to_string(request.linux_resources().cpu().shares().value());
    static_cast<void>(note("update " + names(request) + " shares " + shares, budget));
    return update_answer;
  }
  Result<api::StopContainerResponse> stop_container(const api::StopContainerRequest& request,
                                                    Budget budget) override {
    static_cast<void>(note("stop " + names(request), budget));
    return stop_answer;
  }
  Status update_pod_sandbox(const api::UpdatePodSandboxRequest& request, Budget budget) override {
    const std::string limit = std::to_string(request.linux_resources().memory().limit().value());
    return note("update-pod " + request.pod().name() + " limit " + limit, budget);
  }
  Status run_pod_sandbox(const api::EventRequest& event, Budget budget) override {
    return note("run-pod " + names(event), budget);
  }
  Status stop_pod_sandbox(const api::EventRequest& event, Budget budget) override {
    return note("stop-pod " + names(event), budget);
  }
  Status remove_pod_sandbox(const api::EventRequest& event, Budget budget) override {
    return note("remove-pod " + names(event), budget);
  }
  Status post_update_pod_sandbox(const api::EventRequest& event, Budget budget) override {
    return note("post-update-pod " + names(event), budget);
  }
  Status post_create_container(const api::EventRequest& event, Budget budget) override {
    return note("post-create " + names(event), budget);
  }
  Status start_container(const api::EventRequest& event, Budget budget) override {
    return note("start " + names(event), budget);
  }
  Status post_start_container(const api::EventRequest& event, Budget budget) override {
    return note("post-start " + names(event), budget);
  }
  Status post_update_container(const api::EventRequest& event, Budget budget) override {
    return note("post-update " + names(event), budget);
  }
  Status remove_container(const api::EventRequest& event, Budget budget) override {
    return note("remove " + names(event), budget);
  }
  void shutdown() override { heard.emplace_back("shutdown"); }
  void handled(Request request, std::chrono::nanoseconds time) override {
    times.emplace_back(request, time);
  }

 private:
  template <class Request>
  static std::string names(const Request& request) {
    return request.pod().name() + (request.has_container() ? "/" + request.container().name() : "");
  }
  Status note(std::string what, Budget budget) {
    heard.push_back(std::move(what));
    budgets.push_back(budget);
    return answer;
  }
};

}  // namespace podqos::nri::test
