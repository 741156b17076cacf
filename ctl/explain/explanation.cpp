#include "ctl/explain/explanation.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/validation.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/merge.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {
core::CgroupLayout layout_of(core::CgroupVersion version,
                             std::vector<std::string> hugepage_labels) {
  return {.cpu = version,
          .memory = version,
          .hugetlb = version,
          .pids = version,
          .cpuset = version,
          .io = version,
          .hugepage_labels = std::move(hugepage_labels)};
}

namespace {

/// linux.resources as an engine makes them of a container's spec.
core::EngineResources engine_resources(const core::Resources& spec) {
  core::EngineResources made;
  const auto cpu = [](const core::ResourceList& list) {
    return core::find(list, core::kCpu).transform([](const core::Quantity& amount) {
      return MilliCpu{amount.milli_value()};
    });
  };
  if (const auto request = cpu(spec.requests))
    made.cpu_shares = core::cpu_shares_for(*request).value();
  if (const auto limit = cpu(spec.limits))
    made.cpu_quota = core::cpu_quota_for(*limit, core::kDefaultPeriod).value();
  made.memory_reservation =
      core::find(spec.requests, core::kMemory).transform(&core::Quantity::value);
  made.memory_limit = core::find(spec.limits, core::kMemory).transform(&core::Quantity::value);
  return made;
}

/// The pod's record once all containers of the spec run, with annotations that describe them.
/// @param warnings  gets what is refused of the annotations
Result<core::PodRecord> record_of(const core::Pod& pod, const core::PodqosAnnotations& annotations,
                                  const ExplainParams& params, std::vector<std::string>& warnings) {
  core::AdmissionRequest request;
  request.podqos = annotations;
  auto& own = request.podqos;
  // As `podqosctl annotate` would describe it.
  if (!own.pod && !own.pod_level && own.containers.empty())
    own.pod = std::make_shared<const core::Pod>(pod);
  if (annotations.pod && (annotations.pod->containers != pod.containers ||
                          annotations.pod->resources != pod.resources))
    warnings.emplace_back(
        "annotation podqos.io/pod has other containers or resources than the spec, and counts: run "
        "podqosctl annotate on the manifest again");
  std::optional<core::PodRecord> record;
  const auto add = [&](std::string name) {
    record->containers.emplace_back().name = std::move(name);
  };
  for (const core::Container& container : pod.containers) {
    core::Identity identity;
    identity.uid = pod.uid;
    identity.source = core::IdentitySource::kAnnotation;
    identity.pod_name = pod.name;
    identity.pod_namespace = pod.pod_namespace;
    identity.container_name = container.name;
    request.facts.resources = engine_resources(container.resources);
    core::PodClaim claim = core::claim_for(identity, request, params.settings, params.node_memory);
    PODQOS_ASSIGN(auto merged, core::merge_claim(record, identity, claim, params.settings));
    for (const auto* list : {&claim.warnings, &merged.warnings})
      for (const std::string& warning : *list)
        warnings.push_back(cat("container \"", container.name, "\": ", warning));
    const bool fresh = !record;
    record = std::move(merged.record);
    add(std::move(merged.container));
    if (fresh) core::decide_cpu_class(*record, {}, params.settings);
    core::apply_cpu_annotations(*record, annotations, params.settings);
  }
  for (const core::Container& container : record->pod.init_containers)
    add(container.name);
  // Of a node that has room for it.
  core::count_requests(*record, {}, {.memory = Bytes{kInt64Max}, .cpu = MilliCpu{kInt64Max}});
  return *std::move(record);
}

constexpr std::string_view kPodLevel = "spec.resources";

/// Both names that the pod's cgroup may have; none without a uid.
Status name_cgroups(Explanation& result, const ExplainParams& params) {
  if (result.pod.uid.empty()) return {};
  const auto path = [&](core::Driver driver) {
    return core::pod_path(core::root_path(params.cgroup_root, driver), result.verdict.qos_class,
                          result.pod.uid);
  };
  result.cgroupfs = path(core::Driver::kCgroupfs);
  // The root's name may not be that of a slice.
  PODQOS_TRY(core::format_systemd(parts_of(*result.cgroupfs, '/')));
  result.systemd = path(core::Driver::kSystemd);
  return {};
}

}  // namespace

core::QosVerdict verdict_of(const core::PodRecord& record, core::Pod whole) {
  core::QosVerdict verdict = core::classify(whole);
  if (whole.resources && record.sums) {
    // The reason names the request that counts, which Podman states for containers alone.
    whole.resources->requests = core::pod_requests(whole);
    if (auto named = core::classify(whole); named.qos_class == verdict.qos_class)
      verdict.reason = std::move(named.reason);
  }
  const core::QosClass computed = std::exchange(verdict.qos_class, record.qos_class);
  if (record.class_source == core::ClassSource::kEngine) {
    verdict.reason = "the tier of the pod cgroup that its engine has chosen";
  } else if (record.class_source == core::ClassSource::kQosAnnotation) {
    verdict.reason = "an annotation sets it";
  } else if (computed == core::QosClass::kGuaranteed && !record.complete) {
    verdict.reason =
        "more containers may come: Guaranteed needs podqos.io/pod, podqos.io/limits of the pod or "
        "podqos.io/qos-class";
  } else if (computed != record.qos_class) {
    verdict.reason = "that of its first container";
  } else if (record.class_source != core::ClassSource::kPodAnnotation) {
    // In the words of the rule, which knows neither annotations nor engines.
    const std::size_t at = verdict.reason.find(kPodLevel);
    if (at != std::string::npos) verdict.reason.replace(at, kPodLevel.size(), "the pod");
  }
  return verdict;
}

Result<Explanation> explain(const core::PodRecord& record, const ExplainParams& params) {
  Explanation result;
  result.source = record.class_source;
  result.pod = core::whole_pod(record.pod, record.sums);
  result.verdict = verdict_of(record, result.pod);
  PODQOS_ASSIGN(result.values, core::pod_values(record, params.settings));
  result.burst_percent = core::burst_percent(record, params.settings);
  if (!record.cgroup.empty()) result.cgroup = record.cgroup;
  result.warnings = core::low_memory_limits(record.pod);
  for (const core::ContainerRecord& each : record.containers) {
    const bool again = std::ranges::any_of(
        result.containers, [&](const auto& other) { return other.container.name == each.name; });
    if (each.sandbox || again) continue;
    const core::Container* const known = core::find_container(record.pod, each.name);
    core::Container container = known != nullptr ? *known : core::Container{};
    container.name = each.name;
    PODQOS_ASSIGN(auto values, core::container_values(record, each.name, params.settings));
    const bool described = values.cpu_shares.has_value();
    if (described && result.burst_percent)
      values.cpu_burst = core::cpu_burst_for(core::limiting_quota(values), *result.burst_percent);
    result.containers.push_back(
        {.container = std::move(container),
         .values = std::move(values),
         .oom_score_adj = core::container_oom_score_adj(record, each, params.node_memory),
         .described = described});
  }
  return result;
}

Result<Explanation> explain(core::Pod pod, const core::PodqosAnnotations& annotations,
                            const ExplainParams& params) {
  Explanation result;
  if (annotations.pod || annotations.pod_level || annotations.qos_class ||
      !annotations.containers.empty()) {
    std::vector<std::string> warnings;
    PODQOS_ASSIGN(const auto record, record_of(pod, annotations, params, warnings));
    PODQOS_ASSIGN(result, explain(record, params));
    std::ranges::move(warnings, std::back_inserter(result.warnings));
    PODQOS_TRY(name_cgroups(result, params));
    return result;
  }
  result.pod = std::move(pod);
  result.verdict = core::classify(result.pod);
  const core::QosClass qos_class = result.verdict.qos_class;
  PODQOS_ASSIGN(result.values, core::pod_cgroup_values(result.pod, qos_class, params.config));
  core::PodRecord record;
  record.qos_class = qos_class;
  core::decide_cpu_class(record, {}, params.settings);
  core::apply_cpu_annotations(record, annotations, params.settings);
  core::set_cpu_class(result.values, record, params.settings);
  result.burst_percent = record.cpu_burst;
  PODQOS_TRY(name_cgroups(result, params));
  for (const auto* list : {&result.pod.containers, &result.pod.init_containers}) {
    for (const core::Container& each : *list) {
      PODQOS_ASSIGN(auto values, core::container_cgroup_values(result.pod, each, params.config));
      values.pids_limit = params.config.pod_pids_limit;
      if (const auto percent = result.burst_percent)
        values.cpu_burst = core::cpu_burst_for(core::limiting_quota(values), *percent);
      const int score = core::oom_score_adj(result.pod, qos_class, each, params.node_memory);
      result.containers.push_back(
          {.container = each, .values = std::move(values), .oom_score_adj = score});
    }
  }
  return result;
}

Contents files_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                  core::WeightFormula formula) {
  Contents files;
  // A later write of the same file wins, as on the machine.
  for (const core::Step& step : core::lower_values("/", values, layout, formula, ""))
    if (const auto* write = std::get_if<core::WriteFile>(&step)) files[write->file] = write->value;
  return files;
}

Contents properties_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                       core::WeightFormula formula) {
  Contents properties;
  for (const core::UnitProperty& property : core::unit_properties(values, layout, formula))
    if (const auto* number = std::get_if<std::uint64_t>(&property.value))
      properties[property.name] = cat(*number);
  return properties;
}

Json json_of(const core::ResourceList& list) {
  return json_of(amounts_of(list));
}

Json json_of(const core::TierSum& sum) {
  return {{"cpuMilli", sum.cpu}, {"memoryBytes", sum.memory}};
}

Json json_of(const core::MemoryQos& qos) {
  const auto bytes = [](const std::optional<Bytes>& amount) {
    return amount == core::kUnlimitedMemory ? Json(nullptr) : json_of(amount);
  };
  return {{"memoryMinBytes", bytes(qos.min)},
          {"memoryLowBytes", bytes(qos.low)},
          {"memoryHighBytes", bytes(qos.high)}};
}

Json limits_json(const core::CgroupValues& values) {
  const auto limit = [](const auto& value) {
    return value && value->value() > 0 ? json_of(value) : Json(nullptr);
  };
  const Json quota = limit(values.cpu_quota);
  return {{"cpuShares", json_of(values.cpu_shares)},
          {"cpuQuotaUs", quota},
          {"cpuPeriodUs", quota.is_null() ? quota : json_of(values.cpu_period)},
          {"cpuBurstUs", json_of(values.cpu_burst)},
          {"memoryLimitBytes", limit(values.memory_limit)},
          {"pidsLimit", json_of(values.pids_limit)}};
}

Json explanation_json(const Explanation& e, const ExplainParams& params) {
  Json scores = Json::object();
  Json containers = Json::object();
  for (const ContainerExplanation& each : e.containers) {
    scores[each.container.name] = each.oom_score_adj;
    (containers[each.container.name] = limits_json(each.values))["hugetlb"] = each.values.hugepages;
  }
  const CpuShares shares = e.values.cpu_shares.value_or(core::kMinShares);
  const auto v2 = layout_of(core::CgroupVersion::kV2, params.layout.hugepage_labels);
  Json json = {
      {"qosClass", core::format_qos_class(e.verdict.qos_class)},
      {"cpuShares", shares},
      {"cpuWeight",
       {{"linear", core::cpu_weight_for(shares, core::WeightFormula::kLinear)},
        {"log", core::cpu_weight_for(shares, core::WeightFormula::kLog)}}},
      {"cpuQuotaUs", json_of(e.values.cpu_quota)},
      {"cpuPeriodUs", json_of(e.values.cpu_period)},
      {"memoryLimitBytes", json_of(e.values.memory_limit)},
      {"pidsLimit", json_of(e.values.pids_limit)},
      {"hugetlb", e.values.hugepages},
      {"unified", e.values.unified.empty() ? Json(nullptr) : Json(e.values.unified)},
      {"podRequests", json_of(core::pod_requests(e.pod))},
      {"podLimits", json_of(core::pod_limits(e.pod))},
      {"oomScoreAdj", std::move(scores)},
      {"containers", std::move(containers)},
      {"cgroupfs", json_of(e.cgroupfs)},
      {"systemd", json_of(e.systemd)},
      {"writes",
       {{"cgroupfs", files_on(e.values, params.is_v1() ? params.layout : v2, params.formula)},
        {"systemd", properties_on(e.values, v2, params.formula)}}}};
  if (e.source) json["source"] = core::format_source(*e.source);
  return json;
}

}  // namespace podqos::ctl
