#include "nri/facts.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/annotations.h"

namespace podqos::nri {

namespace {

constexpr std::string_view kOurs = "podqos.io/";

// Under these names parse_engine_annotations() reads what an engine says.
constexpr const char* kType = "io.kubernetes.cri.container-type";
constexpr const char* kSandboxId = "io.kubernetes.cri.sandbox-id";
constexpr const char* kUid = "io.kubernetes.cri.sandbox-uid";
constexpr const char* kPodName = "io.kubernetes.cri.sandbox-name";
constexpr const char* kNamespace = "io.kubernetes.cri.sandbox-namespace";
constexpr const char* kContainerName = "io.kubernetes.cri.container-name";
constexpr const char* kShares = "io.kubernetes.cri.sandbox-cpu-shares";
constexpr const char* kQuota = "io.kubernetes.cri.sandbox-cpu-quota";
constexpr const char* kPeriod = "io.kubernetes.cri.sandbox-cpu-period";
constexpr const char* kMemory = "io.kubernetes.cri.sandbox-memory";

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
      return fail(ErrorCode::kTooLarge,
                  cat("more than ", codec::kMaxKnownAnnotations, " annotations of podqos.io/"));
    }
  }
  return {};
}

void set(core::Annotations& out, const char* key, const std::string& value) {
  if (!value.empty()) out.insert_or_assign(key, value);
}

void add_pod(const api::PodSandbox& pod, core::Annotations& out) {
  set(out, kSandboxId, pod.id());
  set(out, kUid, pod.uid());
  set(out, kPodName, pod.name());
  set(out, kNamespace, pod.namespace_());
}

/// Unset where the wrapper is absent or holds 0.
template <class Wrapper>
std::optional<std::int64_t> value_of(bool present, const Wrapper& wrapper) {
  if (!present || wrapper.value() == 0) return std::nullopt;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (wrapper.value() > 0 && static_cast<std::uint64_t>(wrapper.value()) > std::uint64_t{kMost})
    return kMost;
  return static_cast<std::int64_t>(wrapper.value());
}

void add_sums(const core::EngineResources& sums, core::Annotations& out) {
  const auto add = [&](const char* key, const std::optional<std::int64_t>& value) {
    if (value) out.insert_or_assign(key, std::to_string(*value));
  };
  add(kShares, sums.cpu_shares);
  add(kQuota, sums.cpu_quota);
  add(kPeriod, sums.cpu_period);
  add(kMemory, sums.memory_limit);
}

}  // namespace

core::EngineResources engine_resources(const api::LinuxResources& resources) {
  core::EngineResources found;
  const api::LinuxCPU& cpu = resources.cpu();
  found.cpu_shares = value_of(cpu.has_shares(), cpu.shares());
  found.cpu_quota = value_of(cpu.has_quota(), cpu.quota());
  found.cpu_period = value_of(cpu.has_period(), cpu.period());
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
  for (const auto* annotations : {&pod.annotations(), &container.annotations()}) {
    if (auto added = add_ours(*annotations, facts.annotations); !added)
      return fail(std::move(added).error().with_context(cat("container ", printable(facts.id))));
  }
  add_pod(pod, facts.annotations);
  // Otherwise the sandbox, which is known, has brought them.
  if (pod.pid() == 0) add_sums(engine_resources(pod.linux().pod_resources()), facts.annotations);
  set(facts.annotations, kType, "container");
  set(facts.annotations, kContainerName, container.name());
  const api::LinuxContainer& on_linux = container.linux();
  if (!on_linux.cgroups_path().empty()) facts.cgroups_path = on_linux.cgroups_path();
  if (on_linux.has_oom_score_adj()) facts.oom_score_adj = on_linux.oom_score_adj().value();
  facts.resources = engine_resources(on_linux.resources());
  return facts;
}

Result<core::ContainerFacts> sandbox_facts(const api::PodSandbox& pod) {
  core::ContainerFacts facts;
  facts.id = pod.id();
  if (auto added = add_ours(pod.annotations(), facts.annotations); !added)
    return fail(std::move(added).error().with_context(cat("pod ", printable(pod.uid()))));
  add_pod(pod, facts.annotations);
  set(facts.annotations, kType, "sandbox");
  add_sums(engine_resources(pod.linux().pod_resources()), facts.annotations);
  if (!pod.linux().cgroups_path().empty()) facts.cgroups_path = pod.linux().cgroups_path();
  // The engine's own, whatever it is: the sandbox's process keeps its score.
  facts.oom_score_adj = -998;
  return facts;
}

}  // namespace podqos::nri
