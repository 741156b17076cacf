#include "nri/facts.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/core/naming.h"

namespace podqos::nri {

namespace {

/// Prefix of the annotations that podqos reads.
constexpr std::string_view kOurs = "podqos.io/";

/// Adds podqos's annotations to `out`; later ones replace earlier ones.
/// @return kTooLarge beyond the bounds of number and size.
template <class Map>
Status add_ours(const Map& annotations, core::Annotations& out) {
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kOurs)) continue;
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
Status set_identity(core::EngineAnnotations& engine, const api::PodSandbox& pod) {
  engine.cri = true;
  auto done = set(engine.pod_uid, "pod uid", pod.uid(), core::check_pod_uid);
  if (done) done = set(engine.sandbox_id, "sandbox id", pod.id(), core::check_cgroup_component);
  if (done) done = set(engine.pod_name, "pod name", pod.name(), core::check_cgroup_component);
  if (done) {
    done =
        set(engine.pod_namespace, "pod namespace", pod.namespace_(), core::check_cgroup_component);
  }
  return done;
}

/// The value of a protobuf wrapper; nullopt if it is absent or 0, clamped to int64.
template <class Wrapper>
std::optional<std::int64_t> value_of(bool present, const Wrapper& wrapper) {
  if (!present || wrapper.value() == 0) return std::nullopt;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (wrapper.value() > 0 && static_cast<std::uint64_t>(wrapper.value()) > std::uint64_t{kMost})
    return kMost;
  return static_cast<std::int64_t>(wrapper.value());
}

/// CPU and memory of the whole pod; nullopt if none is set.
std::optional<core::EngineResources> sums_of(const api::LinuxResources& resources) {
  const core::EngineResources all = engine_resources(resources);
  core::EngineResources sums;
  sums.cpu_shares = all.cpu_shares;
  sums.cpu_quota = all.cpu_quota;
  sums.cpu_period = all.cpu_period;
  sums.memory_limit = all.memory_limit;
  if (sums == core::EngineResources{}) return std::nullopt;
  return sums;
}

/// Adds the pod's resources and overhead, which the kubelet passes with the sandbox.
void add_whole_pod(core::EngineAnnotations& engine, const api::PodSandbox& pod) {
  engine.pod_sums = sums_of(pod.linux().pod_resources());
  engine.pod_overhead = sums_of(pod.linux().pod_overhead());
}

}  // namespace

core::EngineResources engine_resources(const api::LinuxResources& resources) {
  core::EngineResources found;
  const api::LinuxCPU& cpu = resources.cpu();
  found.cpu_shares = value_of(cpu.has_shares(), cpu.shares());
  found.cpu_quota = value_of(cpu.has_quota(), cpu.quota());
  found.cpu_period = value_of(cpu.has_period(), cpu.period());
  found.cpu_realtime_runtime = value_of(cpu.has_realtime_runtime(), cpu.realtime_runtime());
  const api::LinuxMemory& memory = resources.memory();
  found.memory_limit = value_of(memory.has_limit(), memory.limit());
  found.memory_reservation = value_of(memory.has_reservation(), memory.reservation());
  found.memory_swap = value_of(memory.has_swap(), memory.swap());
  if (resources.has_pids() && resources.pids().limit() != 0)
    found.pids_limit = resources.pids().limit();
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const api::HugepageLimit& limit : resources.hugepage_limits()) {
    const auto bytes = static_cast<std::int64_t>(std::min(limit.limit(), kMost));
    found.hugepages.insert_or_assign(limit.page_size(), Bytes{bytes});
  }
  for (const auto& [file, value] : resources.unified())
    found.unified.insert_or_assign(file, value);
  return found;
}

Result<core::ContainerFacts> container_facts(const api::PodSandbox& pod,
                                             const api::Container& container) {
  core::ContainerFacts facts;
  facts.id = container.id();
  const auto context = [&] { return cat("container ", printable(facts.id)); };
  for (const auto* annotations : {&pod.annotations(), &container.annotations()}) {
    if (auto added = add_ours(*annotations, facts.annotations); !added)
      return fail(std::move(added).error().with_context(context()));
  }
  core::EngineAnnotations& engine = facts.engine.emplace();
  auto done = set_identity(engine, pod);
  if (done) {
    done = set(engine.container_name, "container name", container.name(),
               core::check_cgroup_component);
  }
  if (!done) return fail(std::move(done).error().with_context(context()));
  // With a pid the sandbox is registered, and its facts had these values.
  if (pod.pid() == 0) add_whole_pod(engine, pod);
  const api::LinuxContainer& on_linux = container.linux();
  if (!on_linux.cgroups_path().empty()) facts.cgroups_path = on_linux.cgroups_path();
  if (on_linux.has_oom_score_adj()) facts.oom_score_adj = on_linux.oom_score_adj().value();
  facts.resources = engine_resources(on_linux.resources());
  return facts;
}

Result<core::ContainerFacts> sandbox_facts(const api::PodSandbox& pod) {
  core::ContainerFacts facts;
  facts.id = pod.id();
  const auto context = [&] { return cat("pod ", printable(pod.uid())); };
  if (auto added = add_ours(pod.annotations(), facts.annotations); !added)
    return fail(std::move(added).error().with_context(context()));
  core::EngineAnnotations& engine = facts.engine.emplace();
  if (auto done = set_identity(engine, pod); !done)
    return fail(std::move(done).error().with_context(context()));
  engine.is_sandbox = true;
  add_whole_pod(engine, pod);
  if (!pod.linux().cgroups_path().empty()) facts.cgroups_path = pod.linux().cgroups_path();
  // The score that engines give to sandboxes: podqos leaves that of a sandbox unchanged.
  facts.oom_score_adj = -998;
  return facts;
}

}  // namespace podqos::nri
