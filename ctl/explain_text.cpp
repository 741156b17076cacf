#include <algorithm>
#include <array>

#include "common/base/text.h"
#include "common/core/aggregation.h"
#include "common/core/oom.h"
#include "common/core/plan.h"
#include "common/core/pod_plan.h"
#include "ctl/explanation.h"

namespace podqos::ctl {
namespace {

/// Rows of four cells: name, value, rule, source.
using Rows = std::vector<std::vector<Cell>>;

/// Upstream files of the rules (Kubernetes v1.36).
constexpr std::string_view kResources = "component-helpers/resource/helpers.go";
constexpr std::string_view kPodConfig = "pkg/kubelet/cm/helpers_linux.go";

/// Appends one value with its rule and the upstream file of that rule.
void add(Rows& rows, std::string name, std::string value, std::string_view rule,
         std::string_view source) {
  rows.push_back({cell(std::move(name)), cell(std::move(value), Colour::kBold),
                  cell(cat("= ", rule)), cell(cat("[", source, "]"), Colour::kDim)});
}

/// A quantity in the unit of its resource: CPU in cores, bytes with binary units, others decimal.
std::string shown(std::string_view name, const core::Quantity& quantity) {
  if (name == core::kCpu) return format_cpu(MilliCpu{quantity.milli_value()});
  const bool bytes = name == core::kMemory || name.starts_with(core::kHugePagesPrefix);
  return bytes ? format_bytes(Bytes{quantity.value()}) : quantity.format_decimal();
}

/// "cpu 110m, memory 64Mi", or "none".
std::string shown_list(const core::ResourceList& list) {
  std::string out;
  for (const auto& [name, quantity] : list)
    out += cat(out.empty() ? "" : ", ", name, " ", shown(name, quantity));
  return out.empty() ? "none" : out;
}

/// The heading above the writes: driver, cgroup version and weight formula.
std::string title_for(const ExplainParams& params, const Target& target) {
  const std::string_view driver = core::format_driver(target.driver);
  if (target.is_v1()) return cat("Writes (", driver, " driver, cgroup v1)");
  const bool log = params.formula == core::WeightFormula::kLog;
  return cat("Writes (", driver, " driver, cgroup v2, ", log ? "log" : "linear", " weights)");
}

/// How PodRequests and PodLimits sum up, reduced to what applies to this pod.
/// @param what  "requests" or "limits"
std::string sum_rule(const core::Pod& pod, std::string_view what) {
  std::string rule = cat("sum of the containers' ", what);
  if (!pod.init_containers.empty()) rule += ", or the init phase if that is larger";
  if (pod.resources) rule += ", overridden by spec.resources";
  if (!pod.overhead.empty()) rule += ", plus overhead";
  return rule;
}

/// The CPU of a list in millicores; 0 without.
std::int64_t milli_of(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  return cpu ? cpu->milli_value() : 0;
}

/// cpu.shares, cpu.weight and quota of the pod.
void add_cpu(Rows& rows, const Explanation& e, const ExplainParams& params) {
  const auto& values = e.values;
  if (values.cpu_shares) {
    const bool best_effort = e.qos_class == core::QosClass::kBestEffort;
    const std::string floor =
        cat("floor(", milli_of(e.requests), "m * 1024 / 1000) within [2, 262144], cpu request");
    add(rows, "cpu.shares", cat(values.cpu_shares->value()),
        best_effort ? "always the minimum for BestEffort" : floor,
        cat(kPodConfig, " MilliCPUToShares"));
    const auto linear = core::cpu_weight_for(*values.cpu_shares, core::WeightFormula::kLinear);
    const auto log = core::cpu_weight_for(*values.cpu_shares, core::WeightFormula::kLog);
    add(rows, "cpu.weight", cat(linear.value(), " linear, ", log.value(), " log"),
        cat("1 + (", values.cpu_shares->value(), " - 2) * 9999 / 262142; log as runc >= 1.3.2"),
        "cgroup_manager_linux.go getCPUWeight; opencontainers/cgroups utils.go");
  }
  if (!values.cpu_quota) {
    add(rows, "cpu quota", "none",
        core::limit_declared(e.pod, core::kCpu) ? "BestEffort has none"
                                                : "not every container has a cpu limit",
        cat(kPodConfig, " ResourceConfigForPod"));
    return;
  }
  const std::int64_t period = params.config.cpu_period.value();
  const std::int64_t quota = values.cpu_quota->value();
  add(rows, "cpu quota", quota < 0 ? "unlimited" : cat(quota, "us per ", period, "us"),
      params.config.enforce_cpu_limits
          ? cat("floor(", milli_of(e.limits), "m * ", period, " / 1000), at least 1000; cpu limit")
          : "cpuCFSQuota is off",
      cat(kPodConfig, " MilliCPUToQuota"));
}

/// Memory limit, huge pages, MemoryQoS files, pids limit and I/O weight of the pod.
void add_memory(Rows& rows, const Explanation& e) {
  if (e.values.memory_limit) {
    add(rows, "memory limit",
        cat(e.values.memory_limit->value(), " (", format_bytes(*e.values.memory_limit), ")"),
        sum_rule(e.pod, "limits"), cat(kPodConfig, " ResourceConfigForPod"));
  } else {
    add(rows, "memory limit", "none",
        core::limit_declared(e.pod, core::kMemory) ? "BestEffort has none"
                                                   : "not every container has a memory limit",
        cat(kPodConfig, " ResourceConfigForPod"));
  }
  for (const auto& [label, limit] : e.values.hugepages)
    add(rows, cat("hugetlb ", label), format_bytes(limit), "sum of the containers' requests",
        cat(kPodConfig, " HugePageLimits"));
  for (const auto& [file, value] : e.values.unified)
    add(rows, file, value, "memory request, MemoryQoS", cat(kPodConfig, " ResourceConfigForPod"));
  if (e.values.pids_limit)
    add(rows, "pids.max", cat(*e.values.pids_limit), "podPidsLimit of the configuration",
        "pkg/kubelet/cm/pod_container_manager_linux.go");
  if (e.values.io_weight)
    add(rows, "io.weight", cat(*e.values.io_weight), "ioWeight.guaranteed of the configuration",
        "podqos.json(5)");
}

/// The numbers behind a Burstable container's score, for display; core::oom_score_adj() decides.
struct OomClaim {
  std::int64_t request = 0;
  std::int64_t share = 0;  ///< of the pod-level request that exceeds the containers' requests
  bool of_least = false;   ///< a sidecar counts with the smallest request of the app containers
};

/// Follows pkg/kubelet/qos/policy.go, GetContainerOOMScoreAdjust: request, sidecars, pod-level
/// request.
OomClaim oom_claim(const core::Pod& pod, const core::Container& container) {
  OomClaim claim{.request = memory_of(container.resources.requests).value()};
  const auto containers =
      static_cast<std::int64_t>(pod.containers.size() + pod.init_containers.size());
  const std::int64_t whole = pod.resources ? memory_of(pod.resources->requests).value() : 0;
  if (whole != 0 && containers != 0)
    claim.share =
        saturating_sub(
            whole, memory_of(core::pod_requests(pod, core::PodLevel::kSkip, core::Overhead::kSkip))
                       .value()) /
        containers;
  if (container.kind != core::ContainerKind::kSidecar || pod.containers.empty()) return claim;
  std::int64_t least = kInt64Max;
  for (const core::Container& app : pod.containers)
    least = std::min(least, memory_of(app.resources.requests).value());
  claim.of_least = least > claim.request;
  claim.request = std::max(least, claim.request);
  return claim;
}

/// The rule behind a container's OOM score adjustment, with its numbers.
std::string oom_rule(const Explanation& e, const core::Container& container,
                     const ExplainParams& params) {
  const int score = e.oom_score_adj.at(container.name);
  if (e.qos_class == core::QosClass::kBestEffort) return "BestEffort is killed first";
  if (score == core::kGuaranteedOomScoreAdj)
    return e.qos_class == core::QosClass::kGuaranteed ? "Guaranteed" : "node-critical pod";
  const OomClaim claim = oom_claim(e.pod, container);
  return cat("1000 - 1000 * ",
             claim.share == 0 ? cat(claim.request)
                              : cat("(", claim.request, claim.share < 0 ? " - " : " + ",
                                    claim.share < 0 ? -claim.share : claim.share, ")"),
             " / ", params.node_memory ? params.node_memory->value() : 0, ", within [3, 999]; ",
             claim.of_least ? "the containers' smallest memory request" : "memory request",
             claim.share == 0 ? "" : " plus its share of the pod's", " of the node's memory");
}

/// The OOM score adjustment of each container.
void add_oom(Rows& rows, const Explanation& e, const ExplainParams& params) {
  for (const auto* list : {&e.pod.containers, &e.pod.init_containers}) {
    for (const core::Container& container : *list)
      add(rows, cat("oom_score_adj ", container.name), cat(e.oom_score_adj.at(container.name)),
          oom_rule(e, container, params), "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust");
  }
}

constexpr std::string_view kContainerConfig = "kuberuntime_container_linux.go";

/// The rule for a limit: the container's own, else that of spec.resources.
std::string limit_rule(const core::Container& container, std::string_view name,
                       std::string_view limit) {
  const auto own = core::find(container.resources.limits, name);
  if (own && !own->is_zero()) return std::string{limit};
  return cat(limit, " of spec.resources: the container has none");
}

/// The container's own cpu.shares and quota.
void add_container_cpu(Rows& rows, const Explanation& e, const core::Container& container,
                       const ExplainParams& params) {
  const core::CgroupValues& values = e.containers.at(container.name);
  const std::string& name = container.name;
  const auto request = core::find(container.resources.requests, core::kCpu);
  add(rows, cat("cpu.shares ", name), cat(values.cpu_shares.value_or(core::kMinShares).value()),
      request ? cat("floor(", request->milli_value(),
                    "m * 1024 / 1000) within [2, 262144], cpu request")
              : "from its cpu limit, as it has no request; the minimum without both",
      kContainerConfig);
  const std::int64_t quota = values.cpu_quota.value_or(Micros{0}).value();
  const std::int64_t period = params.config.cpu_period.value();
  std::string rule =
      params.config.enforce_cpu_limits ? "it has no cpu limit" : "cpuCFSQuota is off";
  if (quota > 0) {
    rule = limit_rule(container, core::kCpu,
                      cat("floor(limit * ", period, " / 1000), at least 1000; cpu limit"));
  }
  add(rows, cat("cpu quota ", name), quota > 0 ? cat(quota, "us per ", period, "us") : "none", rule,
      kContainerConfig);
}

/// The values that podqos sets if the engine has left them unset; "none" leaves the kernel's
/// default.
void add_container(Rows& rows, const Explanation& e, const core::Container& container,
                   const ExplainParams& params) {
  add_container_cpu(rows, e, container, params);
  const core::CgroupValues& values = e.containers.at(container.name);
  const Bytes memory = values.memory_limit.value_or(Bytes{0});
  const std::string limit = cat(memory.value(), " (", format_bytes(memory), ")");
  add(rows, cat("memory limit ", container.name), memory.value() > 0 ? limit : "none",
      memory.value() > 0 ? limit_rule(container, core::kMemory, "its memory limit")
                         : "it has no memory limit",
      kContainerConfig);
  for (const auto& [label, pages] : values.hugepages) {
    add(rows, cat("hugetlb ", label, " ", container.name), format_bytes(pages),
        "its limit, else that of spec.resources", kContainerConfig);
  }
  if (values.pids_limit) {
    add(rows, cat("pids.max ", container.name), cat(*values.pids_limit),
        "podPidsLimit of the configuration", "pkg/kubelet/cm/pod_container_manager_linux.go");
  }
}

/// The values of each app and init container.
void add_containers(Rows& rows, const Explanation& e, const ExplainParams& params) {
  for (const auto* list : {&e.pod.containers, &e.pod.init_containers}) {
    for (const core::Container& container : *list)
      add_container(rows, e, container, params);
  }
}

/// The rule behind a cgroup v2 file that podqos sets for a container.
std::string unified_rule(std::string_view file, const ExplainParams& params) {
  if (file == "memory.oom.group")
    return "the OOM killer takes all its processes; singleProcessOOMKill is off";
  if (!params.container.limited_swap) return "NoSwap";
  return cat("LimitedSwap: memory request / ", params.container.node_memory.value(), " of ",
             params.container.swap_capacity.value(),
             ", if Burstable with a request other than the limit");
}

/// The cgroup v2 files that podqos sets if the engine has left them unset.
void add_unified(Rows& rows, const Explanation& e, const core::Container& container,
                 const ExplainParams& params) {
  for (const auto& [file, value] :
       core::container_unified_values(e.pod, e.qos_class, container, params.container)) {
    add(rows, cat(file, " ", container.name), value, unified_rule(file, params), kContainerConfig);
  }
}

void add_unified(Rows& rows, const Explanation& e, const ExplainParams& params) {
  for (const auto* list : {&e.pod.containers, &e.pod.init_containers}) {
    for (const core::Container& container : *list)
      add_unified(rows, e, container, params);
  }
}

/// The writes alone, one a line: for the cgroupfs driver the rendered plan, for the systemd driver
/// unit properties followed by files.
std::string explain_writes(const Explanation& explanation, const ExplainParams& params,
                           const Target& target) {
  if (target.driver == core::Driver::kCgroupfs) {
    const std::string path = explanation.cgroupfs.value_or("pod<UID>");
    core::Plan plan =
        core::plan_pod(path, explanation.values, target.layout, params.formula, core::Make::kYes);
    for (core::Step& step : plan)
      if (auto* write = std::get_if<core::WriteFile>(&step))
        write->reason = write->on_refusal == core::OnRefusal::kIgnore ? "optional" : "";
    return core::render(plan);
  }
  std::string out;
  for (const auto& [property, value] : explanation.systemd_writes.properties)
    out += cat("property  ", property, " = ", value, "\n");
  for (const auto& [file, value] : explanation.systemd_writes.files)
    out += cat("write  ", explanation.systemd.value_or("pod<UID>.slice"), "/", file, " = ", value,
               "\n");
  return out;
}

}  // namespace

core::CgroupLayout layout_of(core::CgroupVersion version,
                             const std::vector<std::string>& hugepage_labels) {
  return {.cpu = version,
          .memory = version,
          .hugetlb = version,
          .pids = version,
          .cpuset = version,
          .io = version,
          .hugepage_labels = hugepage_labels};
}

std::map<std::string, std::string, std::less<>> files_on(const Explanation& explanation,
                                                         const core::CgroupLayout& layout,
                                                         core::WeightFormula formula) {
  std::map<std::string, std::string, std::less<>> files;
  for (const core::Step& step : core::lower_values("/", explanation.values, layout, formula, ""))
    if (const auto* write = std::get_if<core::WriteFile>(&step)) files[write->file] = write->value;
  return files;
}

std::string explain_text(const Explanation& e, const ExplainParams& params, const Target& target,
                         ColourMode mode) {
  Rows rows;
  add(rows, "class", std::string{core::format_qos_class(e.qos_class)}, e.reason,
      "pkg/apis/core/v1/helper/qos/qos.go GetPodQOS");
  add(rows, "requests", shown_list(e.requests), sum_rule(e.pod, "requests"),
      cat(kResources, " PodRequests"));
  add(rows, "limits", shown_list(e.limits), sum_rule(e.pod, "limits"),
      cat(kResources, " PodLimits"));
  add_cpu(rows, e, params);
  add_memory(rows, e);
  add_containers(rows, e, params);
  add_oom(rows, e, params);
  if (!target.is_v1()) add_unified(rows, e, params);
  // Not part of the table: long names would widen its columns.
  const std::string_view unknown = "unknown: the manifest has no metadata.uid";
  return cat(format_table(rows, mode), "\ncgroup  ", e.cgroupfs.value_or(std::string{unknown}),
             "\nslice   ", e.systemd.value_or(std::string{unknown}), "\n\n",
             paint(cell(title_for(params, target), Colour::kBold), mode), "\n",
             explain_writes(e, params, target));
}

}  // namespace podqos::ctl
