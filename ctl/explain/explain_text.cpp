#include <utility>

#include "common/base/text.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/validation.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "ctl/explain/explanation.h"

namespace podqos::ctl {
namespace {

/// Upstream files of the rules (Kubernetes v1.36).
constexpr std::string_view kResources = "component-helpers/resource/helpers.go";
constexpr std::string_view kPodConfig = "pkg/kubelet/cm/helpers_linux.go";
constexpr std::string_view kContainerConfig = "kuberuntime_container_linux.go";

/// "cpu 110m, memory 64Mi", or "none": CPU in cores, bytes with binary units, others decimal.
std::string shown_list(const core::ResourceList& list) {
  std::string out;
  for (const auto& [name, quantity] : list)
    out += cat(out.empty() ? "" : ", ", name, " ",
               name == core::kCpu        ? format_amount(MilliCpu{quantity.milli_value()})
               : core::is_in_bytes(name) ? rounded_amount(Bytes{quantity.value()})
                                         : quantity.format_decimal());
  return out.empty() ? "none" : out;
}

/// A value with its rule and the upstream file of that rule.
struct ExplainedValue {
  std::string name;
  std::string value;
  std::string rule;
  std::string source;
};

/// Makes the table of an explanation.
class ExplanationTable {
 public:
  ExplanationTable(const Explanation& explanation, const ExplainParams& params)
      : e_(explanation), params_(params), class_(explanation.verdict.qos_class) {}

  std::vector<ExplainedValue> make() && {
    add("class", std::string{core::format_qos_class(class_)}, e_.verdict.reason,
        "pkg/apis/core/v1/helper/qos/qos.go GetPodQOS");
    if (e_.source)
      add("source", std::string{core::format_source(*e_.source)},
          "strongest first: podqos.io/pod; podqos.io/requests, limits; the engine's values",
          "podqos-hook(8)");
    add("requests", shown_list(core::pod_requests(e_.pod)), sum_rule("requests"),
        cat(kResources, " PodRequests"));
    add("limits", shown_list(core::pod_limits(e_.pod)), sum_rule("limits"),
        cat(kResources, " PodLimits"));
    add_values(nullptr, e_.values);
    if (e_.values.cpu_idle && !params_.is_v1())
      add("cpu.idle", "1", "podqos.io/cpu-idle", "podqos.json(5)");
    if (params_.settings.cpu_idle_besteffort && class_ == core::QosClass::kBestEffort &&
        !params_.is_v1())
      add("cpu.idle", "1 for the tier", "cpuIdle.bestEffort of the configuration",
          "podqos.json(5)");
    // podqos sets what the engine has left unset; "none" leaves the kernel's default.
    for (const ContainerExplanation& each : e_.containers)
      each.described
          ? add_values(&each.container, each.values)
          : add(cat("values ", each.container.name), "the engine's",
                "linux.resources of its config.json: podqos adds none", "podqos-hook(8)");
    // That of a kubelet's pod is the kubelet's, like its values.
    for (const auto& [container, values, score, described] : e_.containers)
      if (described || e_.source != core::ClassSource::kEngine)
        add(cat("oom_score_adj ", container.name), cat(score), oom_rule(container, score),
            "pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust");
    for (const ContainerExplanation& each : e_.containers)
      if (!params_.is_v1() && each.described) add_unified(each.container);
    return std::move(rows_);
  }

 private:
  void add(std::string name, std::string value, std::string_view rule, std::string_view source) {
    rows_.push_back({std::move(name), std::move(value), std::string{rule}, std::string{source}});
  }

  /// @param container  nullptr: the pod's own cgroup
  void add_values(const core::Container* container, const core::CgroupValues& values) {
    const std::string of = container == nullptr ? "" : cat(" ", container->name);
    const auto add_row = [&](std::string_view what, std::string value, std::string_view rule,
                             std::string_view function) {
      add(cat(what, of), std::move(value), rule,
          container == nullptr ? cat(kPodConfig, " ", function) : std::string{kContainerConfig});
    };
    const CpuShares shares = values.cpu_shares.value_or(core::kMinShares);
    add_row("cpu.shares", cat(shares.value()), shares_rule(container), "MilliCPUToShares");
    if (container == nullptr) add_weight(shares);
    const std::int64_t quota = values.cpu_quota.value_or(Micros{0}).value();
    const std::int64_t period = params_.config.cpu_period.value();
    const std::string amount = quota < 0 ? "unlimited" : cat(quota, "us per ", period, "us");
    add_row("cpu quota", quota == 0 ? "none" : amount,
            params_.config.enforce_cpu_limits ? limit_rule(container, core::kCpu, quota > 0)
                                              : "cpuCFSQuota is off",
            "MilliCPUToQuota");
    if (values.cpu_burst)
      add(cat("cpu burst", of), cat(values.cpu_burst->value(), "us"), burst_rule(),
          "podqos.json(5)");
    const std::int64_t memory = values.memory_limit.value_or(Bytes{0}).value();
    add_row("memory limit", memory > 0 ? format_amount(Bytes{memory}) : "none",
            limit_rule(container, core::kMemory, memory > 0), "ResourceConfigForPod");
    for (const auto& [label, pages] : values.hugepages)
      add_row(cat("hugetlb ", label), rounded_amount(pages),
              container == nullptr ? "sum of the containers' requests"
                                   : "its limit, else that of spec.resources",
              "HugePageLimits");
    for (const auto& [file, value] : values.unified)
      add_row(file, value, "memory request, MemoryQoS", "ResourceConfigForPod");
    if (values.pids_limit)
      add(cat("pids.max", of), cat(*values.pids_limit), "podPidsLimit of the configuration",
          "pkg/kubelet/cm/pod_container_manager_linux.go");
    if (values.oomd_avoid)
      add("ManagedOOMPreference", "avoid", "critical: evicted last, or never (eviction)",
          "pkg/kubelet/types/pod_update.go IsCriticalPod");
    if (values.io_weight)
      add("io.weight", cat(*values.io_weight), "ioWeight.guaranteed of the configuration",
          "podqos.json(5)");
  }

  /// A manifest may be for any node, what runs is on this one.
  void add_weight(CpuShares shares) {
    if (e_.cgroup && params_.is_v1()) return;
    const auto linear = core::cpu_weight_for(shares, core::WeightFormula::kLinear);
    const auto log = core::cpu_weight_for(shares, core::WeightFormula::kLog);
    const bool is_log = params_.formula == core::WeightFormula::kLog;
    std::string rule = cat("1 + (", shares.value(), " - 2) * 9999 / 262142");
    if (e_.cgroup) {
      add("cpu.weight", cat((is_log ? log : linear).value()),
          is_log ? "from cpu.shares as runc >= 1.3.2, this node's runtime" : rule,
          "opencontainers/cgroups utils.go");
    } else {
      add("cpu.weight", cat(linear.value(), " linear, ", log.value(), " log"),
          cat(rule, "; log as runc >= 1.3.2"),
          "cgroup_manager_linux.go getCPUWeight; opencontainers/cgroups utils.go");
    }
  }

  /// How PodRequests and PodLimits sum up, reduced to what applies to this pod.
  [[nodiscard]] std::string sum_rule(std::string_view what) const {
    return cat("sum of the containers' ", what,
               e_.pod.init_containers.empty() ? "" : ", or the init phase if that is larger",
               e_.pod.resources ? cat(", overridden by ", pod_level()) : "",
               e_.pod.overhead.empty() ? "" : ", plus overhead");
  }

  /// Where the resources of the whole pod stand.
  [[nodiscard]] std::string_view pod_level() const {
    return e_.source == core::ClassSource::kShortForms ? "podqos.io/requests, limits"
                                                       : "spec.resources";
  }

  /// "floor(quota * 20%), by podqos.io/cpu-burst".
  [[nodiscard]] std::string burst_rule() const {
    const bool lowered = e_.burst_percent != params_.settings.cpu_burst.of(class_);
    return cat("floor(quota * ", e_.burst_percent.value_or(0), "%), by ",
               lowered ? "podqos.io/cpu-burst" : "cpuBurst of the configuration");
  }

  [[nodiscard]] std::string shares_rule(const core::Container* container) const {
    if (container == nullptr && e_.values.cpu_idle) return "the minimum, by podqos.io/cpu-idle";
    if (container == nullptr && class_ == core::QosClass::kBestEffort)
      return "always the minimum for BestEffort";
    const auto request = core::find(
        container == nullptr ? core::pod_requests(e_.pod) : container->resources.requests,
        core::kCpu);
    if (container != nullptr && !request)
      return "from its cpu limit, as it has no request; the minimum without both";
    return cat("floor(", request.value_or(core::Quantity{}).milli_value(),
               "m * 1024 / 1000) within [2, 262144], cpu request");
  }

  /// The rule for a limit, or why there is none. A container has its own, else that of
  /// spec.resources.
  [[nodiscard]] std::string limit_rule(const core::Container* container, std::string_view name,
                                       bool limited) const {
    const bool cpu = name == core::kCpu;
    const std::string quota =
        cat(" * ", params_.config.cpu_period.value(), " / 1000), at least 1000; cpu limit");
    if (container == nullptr) {
      if (!limited && core::limit_declared(e_.pod, name)) return "BestEffort has none";
      if (!limited) return cat("not every container has a ", name, " limit");
      const auto limit = core::find(core::pod_limits(e_.pod), name).value_or(core::Quantity{});
      return cpu ? cat("floor(", limit.milli_value(), "m", quota) : sum_rule("limits");
    }
    if (!limited) return cat("it has no ", name, " limit");
    const auto own = core::find(container->resources.limits, name).value_or(core::Quantity{});
    return cat(cpu ? cat("floor(limit", quota) : "its memory limit",
               own.is_zero() ? cat(" of ", pod_level(), ": the container has none") : "");
  }

  /// The rule behind a container's OOM score adjustment, with its numbers.
  [[nodiscard]] std::string oom_rule(const core::Container& container, int score) const {
    if (class_ == core::QosClass::kBestEffort) return "BestEffort is killed first";
    if (score == core::kGuaranteedOomScoreAdj)
      return class_ == core::QosClass::kGuaranteed ? "Guaranteed" : "node-critical pod";
    const Bytes node = params_.node_memory;
    const core::OomClaim claim = core::oom_claim(e_.pod, container, node);
    std::string bytes = exact_amount(Bytes{claim.request});
    if (claim.share > 0) bytes = cat("(", bytes, " + ", exact_amount(Bytes{claim.share}), ")");
    if (claim.share < 0) bytes = cat("(", bytes, " - ", exact_amount(Bytes{-claim.share}), ")");
    const std::string_view request =
        claim.of_least ? "the containers' smallest memory request" : "memory request";
    return cat(
        "1000 - 1000 * ", bytes, " / ", exact_amount(node), ", clamped to [3, 999]; ",
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
    for (const auto& [file, value] :
         core::unified_values(core::container_memory_qos(class_, container, params_.memory_qos)))
      add(cat(file, " ", container.name), value,
          file == "memory.high" ? memory_high_rule(container)
          : value == "0" ? "neither protects: no memory request, or memoryReservationPolicy None"
                         : "memory request, memoryReservationPolicy TieredReservation",
          kContainerConfig);
  }

  [[nodiscard]] std::string memory_high_rule(const core::Container& container) const {
    const core::MemoryQosParams& params = params_.memory_qos;
    const core::Quantity limit = core::memory_of(container.resources.limits);
    const std::string factor =
        core::Quantity::from_milli(params.throttling_thousandths.value_or(0)).format_decimal();
    return cat("request + (", limit.is_zero() ? "allocatable memory" : "limit", " - request) * ",
               factor, ", memoryThrottlingFactor, in whole pages");
  }

  const Explanation& e_;
  const ExplainParams& params_;
  core::QosClass class_;
  std::vector<ExplainedValue> rows_;
};

/// The lines without this beginning of what stands behind their first word.
std::string without_prefix(std::string_view lines, std::string_view prefix) {
  std::string out;
  while (!lines.empty()) {
    std::string line{read_until(lines, '\n')};
    const std::size_t at = line.find(prefix);
    if (at != std::string::npos) line.erase(at, prefix.size());
    out += line + "\n";
  }
  return out;
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

std::string shown_path(std::string_view name, std::string_view path, const Screen& screen) {
  constexpr std::size_t kLongest = 4096;
  return cat(shorten(fitted(cat(name, printable(path, kLongest)), screen), screen.width), "\n");
}

std::string values_text(const Explanation& e, const ExplainParams& params, const Screen& screen) {
  std::vector<Row> rows;
  for (const auto& [name, value, rule, source] : ExplanationTable{e, params}.make()) {
    rows.push_back({cell(name), cell(value, Colour::kBold), cell(cat("= ", rule))});
    // Sources are for those who check the rules.
    if (screen.is_wide()) rows.back().push_back(cell(cat("[", source, "]"), Colour::kDim));
  }
  // Not part of the table: long names would widen its columns.
  const std::string unknown = "unknown: the manifest has no metadata.uid";
  const auto line = [&](std::string_view name, const std::optional<std::string>& path) {
    return cat(shorten(cat(name, path.value_or(unknown)), screen.width), "\n");
  };
  return cat(format_table(rows, screen), "\n",
             e.cgroup ? shown_path("cgroup  ", *e.cgroup, screen)
                      : line("cgroup  ", e.cgroupfs) + line("slice   ", e.systemd));
}

std::string explain_text(const Explanation& e, const ExplainParams& params, const Screen& screen) {
  const bool log = params.formula == core::WeightFormula::kLog;
  const std::string title = cat("Writes (", core::format_driver(params.driver), " driver, cgroup ",
                                params.is_v1() ? "v1)"
                                : log          ? "v2, log weights)"
                                               : "v2, linear weights)");
  const auto& own = params.driver == core::Driver::kSystemd ? e.systemd : e.cgroupfs;
  std::string writes = explain_writes(e, params);
  // The path stands above.
  if (!screen.is_wide() && own) writes = without_prefix(writes, cat(*own, "/"));
  return cat(values_text(e, params, screen), "\n", paint(cell(title, Colour::kBold), screen.colour),
             "\n", writes);
}

Json rules_json(const Explanation& explanation, const ExplainParams& params) {
  Json rules = Json::array();
  for (const auto& [name, value, rule, source] : ExplanationTable{explanation, params}.make())
    rules.push_back({{"name", name}, {"value", value}, {"rule", rule}, {"source", source}});
  return rules;
}

}  // namespace podqos::ctl
