#include <utility>

#include "common/base/text.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/kubernetes/oom.h"
#include "common/core/kubernetes/pod_resources.h"
#include "ctl/explanation.h"

namespace podqos::ctl {
namespace {

/// Upstream files of the rules (Kubernetes v1.36).
constexpr std::string_view kResources = "component-helpers/resource/helpers.go";
constexpr std::string_view kPodConfig = "pkg/kubelet/cm/helpers_linux.go";
constexpr std::string_view kPodManager = "pkg/kubelet/cm/pod_container_manager_linux.go";
constexpr std::string_view kContainerConfig = "kuberuntime_container_linux.go";

/// A quantity in the unit of its resource: CPU in cores, bytes with binary units, others decimal.
std::string shown(std::string_view name, const core::Quantity& quantity) {
  if (name == core::kCpu) return format_amount(MilliCpu{quantity.milli_value()});
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

/// "1073741824 (1Gi)", or "none".
std::string shown_limit(const std::optional<Bytes>& limit) {
  return limit ? cat(limit->value(), " (", format_bytes(*limit), ")") : "none";
}

/// Bytes in a formula: in binary units if no digit is lost.
std::string shown_exactly(std::int64_t bytes) {
  const std::string text = format_bytes(Bytes{bytes});
  return text.starts_with('~') ? cat(bytes) : text;
}

std::string shares_rule(const core::Quantity& request) {
  return cat("floor(", request.milli_value(), "m * 1024 / 1000) within [2, 262144], cpu request");
}

/// The rule for a container's limit: its own, else that of spec.resources.
std::string limit_rule(const core::Container& container, std::string_view name,
                       std::string_view limit) {
  const auto own = core::find(container.resources.limits, name);
  if (own && !own->is_zero()) return std::string{limit};
  return cat(limit, " of spec.resources: the container has none");
}

/// Makes the table of an explanation.
class ExplanationTable {
 public:
  ExplanationTable(const Explanation& explanation, const ExplainParams& params)
      : e_(explanation), params_(params), class_(explanation.verdict.qos_class) {}

  /// Rows of four cells: name, value, rule, and the upstream file of that rule.
  std::vector<Row> make() && {
    add("class", std::string{core::format_qos_class(class_)}, e_.verdict.reason,
        "pkg/apis/core/v1/helper/qos/qos.go GetPodQOS");
    add("requests", shown_list(core::pod_requests(e_.pod)), sum_rule("requests"),
        cat(kResources, " PodRequests"));
    add("limits", shown_list(core::pod_limits(e_.pod)), sum_rule("limits"),
        cat(kResources, " PodLimits"));
    add_pod_cpu();
    add_pod_memory();
    const std::vector<const core::Container*> containers = containers_of(e_.pod);
    for (const core::Container* container : containers)
      add_container(*container, e_.containers.at(container->name).values);
    for (const core::Container* container : containers)
      add(cat("oom_score_adj ", container->name),
          cat(e_.containers.at(container->name).oom_score_adj), oom_rule(*container),
          "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust");
    for (const core::Container* container : containers)
      if (!params_.is_v1()) add_unified(*container);
    return std::move(rows_);
  }

 private:
  void add(std::string name, std::string value, std::string_view rule, std::string_view source) {
    rows_.push_back({cell(std::move(name)), cell(std::move(value), Colour::kBold),
                     cell(cat("= ", rule)), cell(cat("[", source, "]"), Colour::kDim)});
  }

  /// How PodRequests and PodLimits sum up, reduced to what applies to this pod.
  [[nodiscard]] std::string sum_rule(std::string_view what) const {
    std::string rule = cat("sum of the containers' ", what);
    if (!e_.pod.init_containers.empty()) rule += ", or the init phase if that is larger";
    if (e_.pod.resources) rule += ", overridden by spec.resources";
    if (!e_.pod.overhead.empty()) rule += ", plus overhead";
    return rule;
  }

  /// Why the pod has no limit of this resource.
  [[nodiscard]] std::string no_limit_rule(std::string_view name) const {
    if (core::limit_declared(e_.pod, name)) return "BestEffort has none";
    return cat("not every container has a ", name, " limit");
  }

  [[nodiscard]] std::string shown_quota(Micros quota) const {
    return cat(quota.value(), "us per ", params_.config.cpu_period.value(), "us");
  }

  /// @param limit  "110m" or "limit"
  [[nodiscard]] std::string quota_rule(std::string_view limit) const {
    return cat("floor(", limit, " * ", params_.config.cpu_period.value(),
               " / 1000), at least 1000; cpu limit");
  }

  void add_pod_cpu() {
    const auto& values = e_.values;
    if (values.cpu_shares) {
      const bool best_effort = class_ == core::QosClass::kBestEffort;
      add("cpu.shares", cat(values.cpu_shares->value()),
          best_effort
              ? "always the minimum for BestEffort"
              : shares_rule(
                    core::find(core::pod_requests(e_.pod), core::kCpu).value_or(core::Quantity{})),
          cat(kPodConfig, " MilliCPUToShares"));
      const auto linear = core::cpu_weight_for(*values.cpu_shares, core::WeightFormula::kLinear);
      const auto log = core::cpu_weight_for(*values.cpu_shares, core::WeightFormula::kLog);
      add("cpu.weight", cat(linear.value(), " linear, ", log.value(), " log"),
          cat("1 + (", values.cpu_shares->value(), " - 2) * 9999 / 262142; log as runc >= 1.3.2"),
          "cgroup_manager_linux.go getCPUWeight; opencontainers/cgroups utils.go");
    }
    if (!values.cpu_quota) {
      add("cpu quota", "none", no_limit_rule(core::kCpu), cat(kPodConfig, " ResourceConfigForPod"));
      return;
    }
    const auto limit = core::find(core::pod_limits(e_.pod), core::kCpu).value_or(core::Quantity{});
    add("cpu quota", values.cpu_quota->value() < 0 ? "unlimited" : shown_quota(*values.cpu_quota),
        params_.config.enforce_cpu_limits ? quota_rule(cat(limit.milli_value(), "m"))
                                          : "cpuCFSQuota is off",
        cat(kPodConfig, " MilliCPUToQuota"));
  }

  /// Memory limit, huge pages, MemoryQoS files, pids limit and I/O weight of the pod.
  void add_pod_memory() {
    const core::CgroupValues& values = e_.values;
    const std::string source = cat(kPodConfig, " ResourceConfigForPod");
    add("memory limit", shown_limit(values.memory_limit),
        values.memory_limit ? sum_rule("limits") : no_limit_rule(core::kMemory), source);
    for (const auto& [label, limit] : values.hugepages)
      add(cat("hugetlb ", label), format_bytes(limit), "sum of the containers' requests",
          cat(kPodConfig, " HugePageLimits"));
    for (const auto& [file, value] : values.unified)
      add(file, value, "memory request, MemoryQoS", source);
    if (values.pids_limit)
      add("pids.max", cat(*values.pids_limit), "podPidsLimit of the configuration", kPodManager);
    if (values.io_weight)
      add("io.weight", cat(*values.io_weight), "ioWeight.guaranteed of the configuration",
          "podqos.json(5)");
  }

  // A container's own values: podqos sets what the engine has left unset; "none" leaves the
  // kernel's default.

  void add_container(const core::Container& container, const core::CgroupValues& values) {
    const auto add_row = [&](std::string_view what, std::string value, std::string_view rule,
                             std::string_view source = kContainerConfig) {
      add(cat(what, " ", container.name), std::move(value), rule, source);
    };
    const auto request = core::find(container.resources.requests, core::kCpu);
    add_row("cpu.shares", cat(values.cpu_shares.value_or(core::kMinShares).value()),
            request ? shares_rule(*request)
                    : "from its cpu limit, as it has no request; the minimum without both");
    if (const Micros quota = values.cpu_quota.value_or(Micros{0}); quota.value() > 0)
      add_row("cpu quota", shown_quota(quota),
              limit_rule(container, core::kCpu, quota_rule("limit")));
    else
      add_row("cpu quota", "none",
              params_.config.enforce_cpu_limits ? "it has no cpu limit" : "cpuCFSQuota is off");
    if (values.memory_limit && values.memory_limit->value() > 0)
      add_row("memory limit", shown_limit(values.memory_limit),
              limit_rule(container, core::kMemory, "its memory limit"));
    else
      add_row("memory limit", "none", "it has no memory limit");
    for (const auto& [label, pages] : values.hugepages)
      add_row(cat("hugetlb ", label), format_bytes(pages),
              "its limit, else that of spec.resources");
    if (values.pids_limit)
      add_row("pids.max", cat(*values.pids_limit), "podPidsLimit of the configuration",
              kPodManager);
  }

  /// The rule behind a container's OOM score adjustment, with its numbers.
  [[nodiscard]] std::string oom_rule(const core::Container& container) const {
    if (class_ == core::QosClass::kBestEffort) return "BestEffort is killed first";
    if (e_.containers.at(container.name).oom_score_adj == core::kGuaranteedOomScoreAdj)
      return class_ == core::QosClass::kGuaranteed ? "Guaranteed" : "node-critical pod";
    const Bytes node = params_.node_memory.value_or(Bytes{1});
    const core::OomClaim claim = core::oom_claim(e_.pod, container, node);
    std::string bytes = shown_exactly(claim.request);
    if (claim.share > 0) bytes = cat("(", bytes, " + ", shown_exactly(claim.share), ")");
    if (claim.share < 0) bytes = cat("(", bytes, " - ", shown_exactly(-claim.share), ")");
    const std::string_view request =
        claim.of_least ? "the containers' smallest memory request" : "memory request";
    return cat(
        "1000 - 1000 * ", bytes, " / ", shown_exactly(node.value()), ", clamped to [3, 999]; ",
        claim.share == 0 ? std::string{request} : cat("(", request, " + its share of the pod's)"),
        " / node memory");
  }

  /// The cgroup v2 files that podqos sets for a container.
  void add_unified(const core::Container& container) {
    const core::ContainerMemoryParams& memory = params_.container;
    const std::string swap = memory.limited_swap
                                 ? cat("LimitedSwap: memory request / ", memory.node_memory.value(),
                                       " of ", memory.swap_capacity.value(),
                                       ", if Burstable with a request other than the limit")
                                 : "NoSwap";
    for (const auto& [file, value] :
         core::container_unified_values(e_.pod, class_, container, memory))
      add(cat(file, " ", container.name), value,
          file == "memory.oom.group"
              ? "the OOM killer takes all its processes; singleProcessOOMKill is off"
              : swap,
          kContainerConfig);
  }

  const Explanation& e_;
  const ExplainParams& params_;
  core::QosClass class_;
  std::vector<Row> rows_;
};

/// The heading above the writes: driver, cgroup version and weight formula.
std::string title_for(const ExplainParams& params) {
  const std::string_view driver = core::format_driver(params.driver);
  if (params.is_v1()) return cat("Writes (", driver, " driver, cgroup v1)");
  const bool log = params.formula == core::WeightFormula::kLog;
  return cat("Writes (", driver, " driver, cgroup v2, ", log ? "log" : "linear", " weights)");
}

/// The writes alone, one a line: for the cgroupfs driver the rendered plan, for the systemd driver
/// unit properties followed by the files as systemd's rounding leaves them.
std::string explain_writes(const Explanation& e, const ExplainParams& params) {
  if (params.driver == core::Driver::kCgroupfs) {
    core::Plan plan = core::plan_pod(e.cgroupfs.value_or("pod<UID>"), e.values, params.layout,
                                     params.formula, core::Cgroup::kCreate);
    for (core::Step& step : plan)
      if (auto* write = std::get_if<core::WriteFile>(&step))
        write->reason = write->on_refusal == core::OnRefusal::kIgnore ? "optional" : "";
    return core::render(plan);
  }
  const auto layout = layout_of(core::CgroupVersion::kV2, params.layout.hugepage_labels);
  std::string out;
  for (const auto& [property, value] : properties_on(e.values, layout, params.formula))
    out += cat("property  ", property, " = ", value, "\n");
  for (const auto& [file, value] :
       files_on(core::rounded_by_systemd(e.values), layout, params.formula))
    out += cat("write  ", e.systemd.value_or("pod<UID>.slice"), "/", file, " = ", value, "\n");
  return out;
}

}  // namespace

std::string explain_text(const Explanation& e, const ExplainParams& params, ColourMode mode) {
  const auto rows = ExplanationTable{e, params}.make();
  // Not part of the table: long names would widen its columns.
  const std::string_view unknown = "unknown: the manifest has no metadata.uid";
  return cat(format_table(rows, mode), "\ncgroup  ", e.cgroupfs.value_or(std::string{unknown}),
             "\nslice   ", e.systemd.value_or(std::string{unknown}), "\n\n",
             paint(cell(title_for(params), Colour::kBold), mode), "\n", explain_writes(e, params));
}

}  // namespace podqos::ctl
