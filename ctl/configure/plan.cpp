#include "ctl/configure/plan.h"

#include <array>
#include <cstddef>

namespace podqos::ctl {
namespace {

struct Planner {
  Result<ConfigurePlan> (*registration)(const ConfigureRequest&, const ConfigSource&);
  Result<ConfigurePlan> (*removal)(const ConfigSource&);
};
constexpr std::array kPlanners = {
    Planner{plan_containerd, plan_containerd_removal}, Planner{plan_crio, plan_crio_removal},
    Planner{plan_podman, plan_podman_removal}, Planner{plan_docker, plan_docker_removal}};
static_assert(kPlanners.size() == static_cast<std::size_t>(Engine::kDocker) + 1);

}  // namespace

Result<ConfigurePlan> plan_registration(const ConfigureRequest& request,
                                        const ConfigSource& source) {
  PODQOS_TRY(check_method(request.engine, request.method, request.version));
  return kPlanners.at(static_cast<std::size_t>(request.engine)).registration(request, source);
}

Result<ConfigurePlan> plan_removal(Engine engine, const ConfigSource& source) {
  return kPlanners.at(static_cast<std::size_t>(engine)).removal(source);
}

}  // namespace podqos::ctl
