#include "common/core/pod_plan.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/lowering.h"

namespace podqos::core {

namespace {

constexpr std::string_view kRootName = "/kubepods";
constexpr std::string_view kFallbackParent = "/podqos";

std::string_view without_slash(std::string_view cgroup_root) {
  while (cgroup_root.ends_with('/'))
    cgroup_root.remove_suffix(1);
  return cgroup_root;
}

void append(Plan& plan, Plan more) {
  for (Step& step : more)
    plan.push_back(std::move(step));
}

}  // namespace

std::string root_path(std::string_view cgroup_root) {
  return cat(without_slash(cgroup_root), kRootName);
}

std::string fallback_root_path(std::string_view cgroup_root) {
  return cat(without_slash(cgroup_root), kFallbackParent, kRootName);
}

std::string tier_path(std::string_view kubepods, QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: break;
    case QosClass::kBurstable: return cat(kubepods, "/burstable");
    case QosClass::kBestEffort: return cat(kubepods, "/besteffort");
  }
  return std::string{kubepods};
}

std::string pod_path(std::string_view kubepods, QosClass qos_class, std::string_view uid) {
  return cat(tier_path(kubepods, qos_class), "/pod", uid);
}

Plan plan_tree(std::string_view kubepods) {
  return {EnsureCgroup{tier_path(kubepods, QosClass::kBurstable)},
          EnsureCgroup{tier_path(kubepods, QosClass::kBestEffort)}};
}

Plan plan_tiers(std::string_view kubepods, const TierValues& values, const CgroupLayout& layout,
                WeightFormula formula) {
  // Huge pages are bounded per pod only; a tier that limits none must not be lowered to zero pages.
  CgroupLayout without_hugetlb = layout;
  without_hugetlb.hugetlb.reset();
  Plan plan;
  for (const auto qos_class : {QosClass::kBurstable, QosClass::kBestEffort}) {
    const bool burstable = qos_class == QosClass::kBurstable;
    append(plan, lower_values(tier_path(kubepods, qos_class),
                              burstable ? values.burstable : values.besteffort, without_hugetlb,
                              formula, burstable ? "burstable tier" : "besteffort tier"));
  }
  return plan;
}

Plan plan_pod(const std::string& cgroup, const CgroupValues& values, const CgroupLayout& layout,
              WeightFormula formula, Make make) {
  Plan plan;
  if (make == Make::kYes) plan.emplace_back(EnsureCgroup{cgroup});
  append(plan, lower_values(cgroup, values, layout, formula, "pod"));
  return plan;
}

Plan plan_teardown(std::string_view kubepods) {
  return {RemoveCgroup{tier_path(kubepods, QosClass::kBurstable)},
          RemoveCgroup{tier_path(kubepods, QosClass::kBestEffort)},
          RemoveCgroup{std::string{kubepods}}};
}

}  // namespace podqos::core
