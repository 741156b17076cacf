#include "ctl/configure/registration.h"

#include <array>
#include <utility>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

/// NRI by containerd's release notes of 1.7 and CRI-O's of 1.26. All check without the path of the
/// file: one that does not exist is an error where it is named.
constexpr std::array kEngines = {
    Engine{.id = EngineId::kContainerd,
           .name = "containerd",
           .title = "containerd",
           .program = "containerd",
           .service = "containerd.service",
           .check = "config dump",
           .nri = Version{.major = 1, .minor = 7},
           .plan = plan_containerd,
           .plan_removal = plan_containerd_removal},
    Engine{.id = EngineId::kCrio,
           .name = "crio",
           .title = "CRI-O",
           .program = "crio",
           .service = "crio.service",
           .check = "config",
           .nri = Version{.major = 1, .minor = 26},
           .plan = plan_crio,
           .plan_removal = plan_crio_removal},
    Engine{.id = EngineId::kPodman,
           .name = "podman",
           .title = "Podman",
           .program = "podman",
           .service = "",
           .check = "info",
           .plan = plan_podman,
           .plan_removal = plan_podman_removal},
    Engine{.id = EngineId::kDocker,
           .name = "docker",
           .title = "Docker",
           .program = "dockerd",
           .service = "docker.service",
           .check = "--validate",
           .plan = plan_docker,
           .plan_removal = plan_docker_removal},
};

}  // namespace

std::span<const Engine> engines() {
  return kEngines;
}

std::optional<Version> parse_version(std::string_view text) {
  for (std::string_view word : parts_of(text, ' ')) {
    if (word.starts_with('v')) word.remove_prefix(1);
    if (word.empty() || !is_digit(word.front())) continue;
    const auto major = parse_int(read_until(word, '.'));
    const auto minor = parse_int(word.substr(0, word.find_first_not_of("0123456789")));
    if (major && minor) return Version{.major = *major, .minor = *minor};
  }
  return std::nullopt;
}

std::string format_version(const Version& version) {
  return cat(version.major, ".", version.minor);
}

Method best_method(const Registration& registration) {
  const auto& [nri, version] = std::pair{registration.engine->nri, registration.version};
  if (nri && version && *version >= *nri && registration.plugin_installed) return Method::kNri;
  return registration.engine->id == EngineId::kPodman ? Method::kHooks : Method::kWrapper;
}

Status plan(Registration& registration) {
  const Engine& engine = *registration.engine;
  if (registration.undo) return engine.plan_removal(registration);
  const bool has_hooks = engine.id == EngineId::kCrio || engine.id == EngineId::kPodman;
  std::string why;
  if (registration.method == Method::kNri && !engine.nri)
    why = " has no NRI";
  else if (registration.method == Method::kNri && registration.version &&
           *registration.version < *engine.nri)
    why = cat(" ", format_version(*registration.version), " has no NRI, which came with ",
              format_version(*engine.nri));
  else if (registration.method == Method::kHooks && !has_hooks)
    why = " reads no directory of hooks, and hooks alone cannot place containers";
  if (why.empty()) return engine.plan(registration);
  return fail(ErrorCode::kUnsupported,
              cat(engine.title, why, "; use --method ",
                  engine.id == EngineId::kPodman ? "hooks or wrapper" : "wrapper"));
}

}  // namespace podqos::ctl
