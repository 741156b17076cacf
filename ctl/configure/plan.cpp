#include "ctl/configure/plan.h"

#include <utility>

#include "common/base/text.h"

namespace podqos::ctl {

Result<ConfigurePlan> plan_registration(const ConfigureRequest& request,
                                        const ConfigSource& source) {
  PODQOS_TRY(check_method(request.engine, request.method, request.version));
  switch (request.engine) {
    case Engine::kContainerd: return plan_containerd(request, source);
    case Engine::kCrio: return plan_crio(request, source);
    case Engine::kPodman: return plan_podman(request, source);
    case Engine::kDocker: return plan_docker(request, source);
  }
  return {};
}

Result<ConfigurePlan> plan_removal(Engine engine, const ConfigSource& source) {
  switch (engine) {
    case Engine::kContainerd: return plan_containerd_removal(source);
    case Engine::kCrio: return plan_crio_removal(source);
    case Engine::kPodman: return plan_podman_removal(source);
    case Engine::kDocker: return plan_docker_removal(source);
  }
  return {};
}

ConfigurePlan nothing_to_do(std::string note, std::string registered_in) {
  ConfigurePlan plan;
  plan.notes.push_back(std::move(note));
  if (!registered_in.empty()) plan.registered_in.push_back(std::move(registered_in));
  return plan;
}

std::string refused_link(const std::string& path, const FileState& link) {
  return cat(path, ":1: is a symlink to ", printable(link.text),
             ", and podqosctl changes no file through a symlink");
}

}  // namespace podqos::ctl
