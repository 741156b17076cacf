#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "nri/messages.h"
#include "tests/unit/nri/oracle.h"

namespace podqos::nri::test {

/// Writes down what it is called for, and answers what it was told to.
class RecordingHandler : public Handler {
 public:
  std::vector<std::string> heard;
  std::vector<Budget> budgets;
  NodeState state;
  Status synchronize_answer;
  Result<api::CreateContainerResponse> create_answer;
  Status answer;  ///< to all the rest

  Status configure(const ConfigureRequest& request) override {
    heard.push_back("configure " + request.runtime_name + " " + request.runtime_version);
    return answer;
  }
  Status synchronize(NodeState node) override {
    state = std::move(node);
    heard.push_back("synchronize " + std::to_string(state.pods.size()) + " " +
                    std::to_string(state.containers.size()));
    return synchronize_answer;
  }
  Result<std::string> handle(Request request, const PodEvent& event, Budget budget) override {
    const auto& [pod, container, number] = event;
    std::string what = std::string{kVerbs.at(static_cast<std::size_t>(request))} + " " +
                       pod.facts.engine->pod_name.value_or("");
    if (const auto& name = container.facts.engine->container_name) what += "/" + *name;
    if (request == Request::kUpdateContainer)
      what += " shares " + std::to_string(container.facts.resources.cpu_shares.value_or(0));
    if (request == Request::kUpdatePodSandbox)
      what +=
          " limit " + std::to_string(pod.facts.engine->pod_sums.value_or(core::EngineResources{})
                                         .memory_limit.value_or(0));
    heard.push_back(std::move(what));
    budgets.push_back(budget);
    if (request == Request::kCreateContainer) {
      if (!create_answer) return fail(create_answer.error());
      return create_answer->SerializeAsString();
    }
    if (!answer) return fail(answer.error());
    return std::string{};
  }

 private:
  static constexpr std::array kVerbs = {"",         "",           "run-pod", "update-pod",
                                        "stop-pod", "remove-pod", "create",  "start",
                                        "update",   "stop",       "remove"};
};

}  // namespace podqos::nri::test
