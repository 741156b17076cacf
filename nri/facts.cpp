// The facts of what a runtime reports.

#include <optional>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/core/cgroups/naming.h"
#include "nri/messages.h"

namespace podqos::nri {

namespace {

/// Checks what authors of pods write, and what becomes part of a cgroup name.
Status check(const core::ContainerFacts& facts) {
  for (const auto& [key, value] : facts.annotations) {
    if (value.size() > codec::kMaxAnnotationSize) {
      return fail(ErrorCode::kTooLarge, cat("annotation ", printable(key), " has ", value.size(),
                                            " bytes, more than ", codec::kMaxAnnotationSize));
    }
  }
  if (facts.annotations.size() > codec::kMaxKnownAnnotations) {
    return fail(ErrorCode::kTooLarge, cat("more than ", codec::kMaxKnownAnnotations,
                                          " annotations with the prefix podqos.io/"));
  }
  const core::EngineAnnotations& engine = *facts.engine;
  for (const auto& [what, text] : {std::pair{"pod uid", &engine.pod_uid},
                                   {"sandbox id", &engine.sandbox_id},
                                   {"pod name", &engine.pod_name},
                                   {"pod namespace", &engine.pod_namespace},
                                   {"container name", &engine.container_name}}) {
    if (!*text) continue;
    auto checked = text == &engine.pod_uid ? core::check_pod_uid(**text)
                                           : core::check_cgroup_component(**text);
    if (!checked) return fail(std::move(checked).error().with_context(cat("the runtime's ", what)));
  }
  return {};
}

}  // namespace

Result<core::ContainerFacts> container_facts(const Reported& pod, const Reported& container,
                                             const std::optional<core::Engine>& by) {
  core::ContainerFacts facts = container.facts;
  core::EngineAnnotations engine = *pod.facts.engine;
  engine.engine = by;
  engine.container_name = std::move(facts.engine->container_name);
  if (pod.pid != 0) {
    // The sandbox is registered, and its facts had these values.
    engine.pod_sums.reset();
    engine.pod_overhead.reset();
  }
  facts.engine = std::move(engine);
  // The container's own have precedence.
  facts.annotations.insert(pod.facts.annotations.begin(), pod.facts.annotations.end());
  if (auto checked = check(facts); !checked)
    return fail(std::move(checked).error().with_context(cat("container ", printable(facts.id))));
  return facts;
}

Result<core::ContainerFacts> sandbox_facts(const Reported& pod,
                                           const std::optional<core::Engine>& by) {
  core::ContainerFacts facts = pod.facts;
  facts.engine->engine = by;
  facts.engine->is_sandbox = true;
  // The score that engines give to sandboxes: podqos leaves that of a sandbox unchanged.
  facts.oom_score_adj = -998;
  if (auto checked = check(facts); !checked) {
    const std::string uid = facts.engine->pod_uid.value_or("");
    return fail(std::move(checked).error().with_context(cat("pod ", printable(uid))));
  }
  return facts;
}

}  // namespace podqos::nri
