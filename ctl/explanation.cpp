#include "ctl/explanation.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/aggregation.h"
#include "common/core/container_config.h"
#include "common/core/naming.h"
#include "common/core/oom.h"
#include "common/core/qos.h"

namespace podqos::ctl {
namespace {

/// Sets the cgroup names, if the pod has a uid.
Status add_names(Explanation& explanation, const ExplainParams& params) {
  if (explanation.pod.uid.empty()) return {};
  const core::CgroupName name = core::pod_name(core::kubepods_name(params.cgroup_root),
                                               explanation.qos_class, explanation.pod.uid);
  PODQOS_ASSIGN(auto cgroupfs, core::format_cgroupfs(name));
  PODQOS_ASSIGN(auto systemd, core::format_systemd(name));
  explanation.cgroupfs = std::move(cgroupfs);
  explanation.systemd = std::move(systemd);
  return {};
}

/// Adds OOM score adjustment and cgroup values of one container.
Status add_container(Explanation& explanation, const core::Container& container,
                     const ExplainParams& params) {
  explanation.oom_score_adj[container.name] =
      core::oom_score_adj(explanation.pod, explanation.qos_class, container, *params.node_memory);
  PODQOS_ASSIGN(auto values, core::container_cgroup_values(
                                 explanation.pod, container,
                                 {.enforce_cpu_limits = params.config.enforce_cpu_limits,
                                  .cpu_period = params.config.cpu_period}));
  values.pids_limit = params.config.pod_pids_limit;
  explanation.containers[container.name] = std::move(values);
  return {};
}

}  // namespace

Result<Explanation> explain(core::Pod pod, const ExplainParams& params) {
  if (!params.node_memory || params.node_memory->value() <= 0)
    return fail(ErrorCode::kInvalidArgument,
                "nodeMemoryBytes is missing: the OOM scores depend on the node's memory");
  Explanation result;
  result.pod = std::move(pod);
  core::QosVerdict verdict = core::classify(result.pod);
  result.qos_class = verdict.qos_class;
  result.reason = std::move(verdict.reason);
  result.requests = core::pod_requests(result.pod);
  result.limits = core::pod_limits(result.pod);
  PODQOS_ASSIGN(auto values, core::pod_cgroup_values(result.pod, result.qos_class, params.config));
  result.values = std::move(values);
  PODQOS_TRY(add_names(result, params));
  for (const auto* list : {&result.pod.containers, &result.pod.init_containers}) {
    for (const core::Container& container : *list) {
      PODQOS_TRY(add_container(result, container, params));
    }
  }
  result.files = core::v2_files(result.values, params.hugepage_labels, params.formula);
  result.systemd_writes =
      core::systemd_writes(result.values, params.hugepage_labels, params.formula);
  return result;
}

TierExplanation explain_tiers(const std::vector<core::Pod>& pods, const core::TierParams& params) {
  TierExplanation result;
  for (const core::Pod& pod : pods) {
    core::TierSum& sum = result.sums.of(core::classify(pod).qos_class);
    const core::ResourceList requests = core::pod_requests(pod);
    const auto cpu = core::find(requests, core::kCpu);
    const auto memory = core::find(requests, core::kMemory);
    ++sum.pods;
    sum.cpu = MilliCpu{saturating_add(sum.cpu.value(), cpu ? cpu->milli_value() : 0)};
    sum.memory = Bytes{saturating_add(sum.memory.value(), memory ? memory->value() : 0)};
  }
  result.values = core::tier_values(result.sums, params);
  return result;
}

}  // namespace podqos::ctl
