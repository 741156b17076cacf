#include "nri/facts.h"

#include <optional>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/core/cgroups/naming.h"

namespace podqos::nri {

namespace {

/// Adds annotations to `out`; later ones replace earlier ones.
/// @return kTooLarge beyond the bounds of number and size.
Status add_annotations(const core::Annotations& annotations, core::Annotations& out) {
  for (const auto& [key, value] : annotations) {
    if (value.size() > codec::kMaxAnnotationSize) {
      return fail(ErrorCode::kTooLarge, cat("annotation ", printable(key), " has ", value.size(),
                                            " bytes, more than ", codec::kMaxAnnotationSize));
    }
    out.insert_or_assign(key, value);
    if (out.size() > codec::kMaxKnownAnnotations) {
      return fail(ErrorCode::kTooLarge, cat("more than ", codec::kMaxKnownAnnotations,
                                            " annotations with the prefix podqos.io/"));
    }
  }
  return {};
}

/// Sets a value that becomes part of a cgroup name, after `check`. "" leaves it unset.
Status set(std::optional<std::string>& out, std::string_view what, const std::string& value,
           Status (*check)(std::string_view)) {
  if (value.empty()) return {};
  if (auto checked = check(value); !checked)
    return fail(std::move(checked).error().with_context(cat("the runtime's ", what)));
  out = value;
  return {};
}

/// Sets the identity of a pod as the CRI has it.
Status set_identity(core::EngineAnnotations& engine, const Pod& pod) {
  engine.cri = true;
  PODQOS_TRY(set(engine.pod_uid, "pod uid", pod.uid, core::check_pod_uid));
  PODQOS_TRY(set(engine.sandbox_id, "sandbox id", pod.id, core::check_cgroup_component));
  PODQOS_TRY(set(engine.pod_name, "pod name", pod.name, core::check_cgroup_component));
  return set(engine.pod_namespace, "pod namespace", pod.name_space, core::check_cgroup_component);
}

/// CPU and memory of the whole pod; nullopt if none is set.
std::optional<core::EngineResources> sums_of(const core::EngineResources& all) {
  core::EngineResources sums;
  sums.cpu_shares = all.cpu_shares;
  sums.cpu_quota = all.cpu_quota;
  sums.cpu_period = all.cpu_period;
  sums.memory_limit = all.memory_limit;
  if (sums == core::EngineResources{}) return std::nullopt;
  return sums;
}

/// Adds the pod's resources and overhead, which the kubelet passes with the sandbox.
void add_whole_pod(core::EngineAnnotations& engine, const Pod& pod) {
  engine.pod_sums = sums_of(pod.resources);
  engine.pod_overhead = sums_of(pod.overhead);
}

}  // namespace

Result<core::ContainerFacts> container_facts(const Pod& pod, const Container& container) {
  core::ContainerFacts facts;
  facts.id = container.id;
  core::EngineAnnotations& engine = facts.engine.emplace();
  const auto read = [&]() -> Status {
    PODQOS_TRY(add_annotations(pod.annotations, facts.annotations));
    PODQOS_TRY(add_annotations(container.annotations, facts.annotations));
    PODQOS_TRY(set_identity(engine, pod));
    return set(engine.container_name, "container name", container.name,
               core::check_cgroup_component);
  };
  if (auto done = read(); !done)
    return fail(std::move(done).error().with_context(cat("container ", printable(facts.id))));
  // With a pid the sandbox is registered, and its facts had these values.
  if (pod.pid == 0) add_whole_pod(engine, pod);
  if (!container.cgroups_path.empty()) facts.cgroups_path = container.cgroups_path;
  facts.oom_score_adj = container.oom_score_adj;
  facts.resources = container.resources;
  return facts;
}

Result<core::ContainerFacts> sandbox_facts(const Pod& pod) {
  core::ContainerFacts facts;
  facts.id = pod.id;
  core::EngineAnnotations& engine = facts.engine.emplace();
  auto done = add_annotations(pod.annotations, facts.annotations);
  if (done) done = set_identity(engine, pod);
  if (!done) return fail(std::move(done).error().with_context(cat("pod ", printable(pod.uid))));
  engine.is_sandbox = true;
  add_whole_pod(engine, pod);
  if (!pod.cgroups_path.empty()) facts.cgroups_path = pod.cgroups_path;
  // The score that engines give to sandboxes: podqos leaves that of a sandbox unchanged.
  facts.oom_score_adj = -998;
  return facts;
}

}  // namespace podqos::nri
