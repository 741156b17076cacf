#include "ctl/inventory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/app/follow_memory_qos.h"
#include "common/app/oom_kills.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/cgroup/observe_root.h"
#include "common/codec/settings_table.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/events/choose_root.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/node_fit.h"
#include "common/core/pods/placement.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/sys/process.h"
#include "ctl/inventory_checks.h"
#include "ctl/runtime_state.h"
#include "ctl/usage.h"

namespace podqos::ctl {
namespace {

/// Compares the records with the kernel's values, describes both, and collects warnings.
class Inventory {
 public:
  /// @param before  pods of an earlier look
  Inventory(const core::Settings& settings, NodeRecords records, cgroup::Machine& cgroups,
            const Json& before)
      : settings_(settings),
        cgroups_(cgroups),
        records_(std::move(records)),
        node_{.formula = core::weight_formula(settings, records_.node.weight_formula),
              .capacity = {},
              .settings = settings} {
    for (const Json& pod : before)
      if (pod.at("warnings").empty()) well_.emplace(pod.at("uid").get<std::string>(), &pod);
  }

  /// @param json  what the inventory is added to
  Result<Json> read(Json json) {
    std::ranges::sort(records_.pods, {}, [](const core::PodRecord& record) {
      return std::tie(record.qos_class, record.pod.pod_namespace, record.pod.name, record.pod.uid);
    });
    std::ranges::sort(records_.node.trees, {}, &core::TreeRecord::kubepods);
    kinds_ = Json(records_.warnings.size(), "records");
    const core::TierSums& sums = records_.node.sums;
    json["kubelets"] = {{"pods", sums.kubelets.pods}, {"requests", json_of(sums.kubelets)}};
    json["weightFormula"] = node_.formula == core::WeightFormula::kLog ? "log" : "linear";
    PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings_));
    node_.capacity = cgroup::with_pids(capacity);
    json["node"] = node_json();
    Json& trees = json["trees"] = Json::array();
    Json pods = Json::array();
    for (const core::PodRecord& record : records_.pods) {
      const auto well = well_.find(record.pod.uid);
      pods.push_back(well == well_.end() ? pod_json(record) : *well->second);
      known_.insert(record.cgroup);
    }
    for (const core::TreeRecord& tree : records_.node.trees) {
      trees.push_back(tree_json(tree));
      add_all("controllers", lacking_controllers(tree, cgroups_));
    }
    add_all("roots", unusable_roots(settings_, records_, cgroups_));
    for (const auto& words : {core::describe_overcommitment(sums, settings_, node_.capacity),
                              core::describe_pids(sums, settings_, node_.capacity)})
      if (words) add("requests", *words);
    json["pods"] = std::move(pods);
    json["warnings"] = std::move(records_.warnings);
    json["warningKinds"] = std::move(kinds_);
    return json;
  }

 private:
  /// What the node has for pods, and what of it they request, by class.
  [[nodiscard]] Json node_json() const {
    const auto amounts = [](MilliCpu cpu, Bytes memory) {
      return Json{{"cpuMilli", cpu}, {"memoryBytes", memory}};
    };
    core::TierSums requested;
    for (const core::PodRecord& record : records_.pods)
      if (!record.kubelets_own && !record.released_at)
        requested.of(record.qos_class) += core::amounts_requested(record);
    Json classes = Json::array();
    for (const auto qos_class :
         {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort})
      classes.push_back({{"qosClass", core::format_qos_class(qos_class)},
                         {"pods", requested.of(qos_class).pods},
                         {"requests", json_of(requested.of(qos_class))},
                         {"counted", json_of(records_.node.sums.of(qos_class))}});
    const MilliCpu cpu = core::allocatable_cpu(settings_, node_.capacity);
    const Bytes memory = core::allocatable_memory(settings_, node_.capacity);
    const auto version = cgroups_.layout_without_hugepages().cpu;
    return {{"cgroupVersion",
             version ? Json(*version == core::CgroupVersion::kV2 ? 2 : 1) : Json(nullptr)},
            {"capacity", amounts(node_.capacity.cpu, node_.capacity.memory)},
            {"reserved",
             amounts(rest_of(node_.capacity.cpu, cpu), rest_of(node_.capacity.memory, memory))},
            {"allocatable", amounts(cpu, memory)},
            {"classes", std::move(classes)}};
  }

  /// @param kind  see inventory_json()
  void add(std::string_view kind, std::string warning) {
    kinds_.push_back(kind);
    records_.warnings.push_back(std::move(warning));
  }
  void add_all(std::string_view kind, std::vector<std::string> warnings) {
    for (std::string& warning : warnings)
      add(kind, std::move(warning));
  }
  void note(std::string_view kind, std::string_view of, std::string_view words) {
    add(kind, cat(of, ": ", words));
  }

  /// Warns if a cgroup is missing or differs from the rule.
  void check_values(std::string_view name, const cgroup::CgroupView& cgroup,
                    const std::optional<core::CgroupValues>& rule) {
    if (!cgroup.exists())
      note("values", name,
           cat("its cgroup ", cgroup.path(), " does not exist: run podqosctl reconcile"));
    else if (rule)
      for (const std::string& words :
           differences(cgroup, *rule, node_.formula, node_.capacity.page_size))
        note("values", name, words);
  }

  /// Adds what the kernel shows of a cgroup.
  void add_values(Json& json, const cgroup::CgroupView& cgroup,
                  const std::optional<CpuShares>& rule) const {
    json["exists"] = cgroup.exists();
    json["cpuShares"] = json_of(cgroup.shares(rule, node_.formula));
    json["cpuWeight"] = json_of(cgroup.cpu_weight());
    json["cpuQuotaUs"] = json_of(cgroup.cpu_quota());
    json["cpuPeriodUs"] = json_of(cgroup.cpu_period());
    const bool limited = cgroup.cpu_quota().has_value();
    json["cpuBurstUs"] = json_of(limited ? cgroup.cpu_burst() : std::nullopt);
    json["cpuIdle"] = json_of(cgroup.cpu_idle());
    json["memoryLimitBytes"] = json_of(cgroup.memory_limit());
    json["memoryUsageBytes"] = json_of(cgroup.memory_usage());
    json.update(json_of(cgroup.memory_qos()));
    json["pidsLimit"] = json_of(cgroup.pids_limit());
    json["pids"] = json_of(cgroup.pids());
  }

  Json pod_json(const core::PodRecord& record) {
    const std::string name = cat("pod ", core::display_name(record));
    const std::ptrdiff_t others = std::ssize(records_.warnings);
    const cgroup::CgroupView cgroup{cgroups_, record.cgroup};
    const core::CgroupValues rule = check_pod(name, record, cgroup);
    if (const auto words = core::describe_uncounted(record, settings_))
      note("requests", name, *words);
    if (const auto words = core::describe_late_requests(record)) note("requests", name, *words);
    Json json = {{"uid", record.pod.uid},
                 {"engine", core::format_engine(record.engine)},
                 {"id", core::engine_id(record)},
                 {"name", record.pod.name},
                 {"namespace", record.pod.pod_namespace},
                 {"qosClass", core::format_qos_class(record.qos_class)},
                 {"source", core::format_source(record.class_source)},
                 {"complete", record.complete},
                 {"kubeletsOwn", record.kubelets_own},
                 {"released", record.released_at.has_value()},
                 {"cgroup", record.cgroup},
                 {"requests", json_of(requests_of(record))},
                 {"limits", json_of(limits_in(cgroup))},
                 {"rule", rule_json(rule)}};
    add_values(json, cgroup, rule.cpu_shares);
    json["oomKills"] = app::count_oom_kills(cgroups_, record);
    json["containers"] = containers_json(name, record);
    if (record.containers.empty() && !record.released_at)
      note("containers", name,
           "its containers have ended and it counts on, as something runs in its cgroup or could "
           "not be looked at: run podqosctl reconcile, which says what");
    for (const std::string& words : app::describe_memory_qos(
             cgroups_, record, core::memory_qos_params(settings_, node_.capacity)))
      note("values", name, words);
    json["warnings"] = std::vector(records_.warnings.begin() + others, records_.warnings.end());
    return json;
  }

  /// Warns if the pod's cgroup differs from the rules.
  /// @return the values that they require; none for a kubelet's pod, whose values the
  ///         kubelet writes, and for one whose values break a rule
  core::CgroupValues check_pod(std::string_view name, const core::PodRecord& record,
                               const cgroup::CgroupView& cgroup) {
    std::optional<core::CgroupValues> rule;
    if (!record.kubelets_own) {
      auto wanted = core::pod_values(record, settings_);
      if (!wanted)
        note("values", name, wanted.error().message);
      else if (core::driver_of(record.cgroup) == core::Driver::kSystemd)
        rule = core::rounded_by_systemd(*std::move(wanted));
      else
        rule = *std::move(wanted);
    }
    check_values(name, cgroup, rule);
    return std::move(rule).value_or(core::CgroupValues{});
  }

  void check_container(std::string_view pod, const core::PodRecord& record,
                       const core::ContainerRecord& container, bool alive) {
    if (alive) {
      if (const auto misplaced = cgroup::describe_misplaced(cgroups_, record, container))
        note("places", pod, *misplaced);
    } else if (!is_noted(container.id, runtime_roots())) {  // else it is yet to be deleted
      note("containers", pod,
           cat("container ", printable(container.id),
               " is recorded but not running: run podqosctl reconcile"));
    }
  }

  /// The pod's containers. Warns of those that are not what or where the record says, or are not
  /// bound by the pod.
  Json containers_json(std::string_view pod, const core::PodRecord& record) {
    Json list = Json::array();
    bool any_outside = false;
    // Limits that a runtime has given a container and that its pod does not follow.
    std::vector<core::HeldResources> held;
    for (const core::ContainerRecord& container : record.containers) {
      // While it is pending, the process that creates it.
      const bool alive = sys::is_alive(container.pid, container.start_time);
      const bool live = alive && container.state == core::ContainerState::kLive;
      const cgroup::CgroupView cgroup{cgroups_, container.cgroup};
      const auto score = sys::oom_score_adj_of(container.pid);
      Json& json =
          list.emplace_back(Json{{"id", container.id},
                                 {"name", container.name},
                                 {"state", live    ? "live"
                                           : alive ? "pending"
                                                   : "dead"},
                                 {"sandbox", container.sandbox},
                                 {"pid", container.pid.value()},
                                 {"cgroup", container.cgroup},
                                 {"oomScoreAdj", live && score ? Json(*score) : Json(nullptr)}});
      json["throttled"] = container.throttling && container.throttling->since;
      const auto kills = cgroup.oom_kills_of_container();
      json["oomKills"] = kills ? Json(*kills) : Json(nullptr);
      json["rule"] = rule_of(record, container, cgroup);
      add_values(json, cgroup, {});
      held.push_back(alive && core::tells_of_updates(record, container)
                         ? cgroup::held_by(cgroups_, container, cgroup)
                         : core::HeldResources{});
      if (const auto words = any_outside ? std::nullopt : describe_outside(record, container)) {
        any_outside = true;
        note("places", pod, *words);
      }
      check_container(pod, record, container, alive);
    }
    for (const std::string& words : core::describe_unfollowed(record, held, node_))
      note("limits", pod, words);
    return list;
  }

  /// What podqos gives the container beside the limits that its runtime has set; not what its
  /// author has set.
  [[nodiscard]] Json rule_of(const core::PodRecord& record, const core::ContainerRecord& container,
                             const cgroup::CgroupView& cgroup) const {
    const auto percent = core::burst_percent(record, settings_);
    const bool bursts = percent && cgroup.cpu_quota() && !container.sandbox;
    Json rule = {{"cpuBurstUs", bursts ? Json(core::cpu_burst_for(cgroup.cpu_quota(), *percent))
                                       : Json(nullptr)}};
    core::MemoryQos wanted = core::container_memory_qos(
        record, container.name, core::memory_qos_params(settings_, node_.capacity));
    for (const auto value : {&core::MemoryQos::min, &core::MemoryQos::low, &core::MemoryQos::high})
      if (!(container.memory_qos.*value)) (wanted.*value).reset();
    rule.update(json_of(wanted));
    return rule;
  }

  /// Why a container is outside the pod's cgroup: podqos left it there, or it was started there
  /// before podqos could place it. nullopt if it is not.
  [[nodiscard]] std::optional<std::string> describe_outside(
      const core::PodRecord& record, const core::ContainerRecord& container) const {
    if (record.kubelets_own || container.sandbox ||
        container.state != core::ContainerState::kLive || is_below(container.cgroup, record.cgroup))
      return std::nullopt;
    const auto& [id, cgroup] = std::tie(container.id, container.cgroup);
    if (core::is_left_without_parent(cgroup, id, settings_))
      return core::describe_missing_parent(id, cgroup, record.cgroup);
    return cat("container ", printable(id), " runs in cgroup ", printable(cgroup),
               ", outside the pod's limits, because it was started before podqos could place it: "
               "recreate the pod once podqos-nri is connected, or podqos-runtime or Podman's "
               "precreate hook is registered");
  }

  Json tree_json(const core::TreeRecord& record) {
    core::TierValues rule =
        core::wanted_tiers(record.sums, records_.node.sums, settings_, node_.capacity);
    rule.burstable.io_weight = settings_.io_weight.burstable;
    rule.besteffort.io_weight = settings_.io_weight.besteffort;
    if (cgroups_.layout_without_hugepages().cpu == core::CgroupVersion::kV2)
      rule.besteffort.cpu_idle = settings_.cpu_idle_besteffort;
    core::CgroupValues root = core::root_limits(records_.node, record, settings_, node_.capacity);
    const auto shares = shares_of(record);
    if (record.top.empty()) root.cpu_shares = shares;
    const auto tier = [&](core::QosClass qos_class, const core::CgroupValues& wanted) {
      const std::string path = core::tier_path(record.kubepods, qos_class);
      Json json = {{"qosClass", core::format_qos_class(qos_class)}};
      json.update(group_json("tier", path, record.sums.of(qos_class), wanted));
      json["eviction"] = eviction_json(record, qos_class);
      add_all("unmanaged", unmanaged_pods(path, known_, cgroups_));
      return json;
    };
    // Of the cgroup above the root that podqos created only CPU shares and reservation have a rule.
    return Json{
        {"kubepods", record.kubepods},
        {"top", record.top.empty() ? Json(nullptr)
                                   : group_json("cgroup", record.top, core::sum_of_own(record.sums),
                                                {.cpu_shares = shares, .unified = root.unified})},
        {"tiers",
         {tier(core::QosClass::kGuaranteed, root), tier(core::QosClass::kBurstable, rule.burstable),
          tier(core::QosClass::kBestEffort, rule.besteffort)}}};
  }

  /// At which memory pressure a tier loses a pod, and by whom; null: at none.
  [[nodiscard]] Json eviction_json(const core::TreeRecord& tree, core::QosClass qos_class) const {
    const auto& threshold = settings_.eviction.of(qos_class);
    if (!threshold) return nullptr;
    const bool oomd = core::is_watched_by_oomd(tree.kubepods, cgroups_.layout_without_hugepages());
    return {{"memoryPressure", codec::format_pressure(*threshold)},
            {"by", oomd ? "systemd-oomd" : "podqos-nri"}};
  }

  /// The shares of all of the tree's pods, if a cgroup has them.
  std::optional<CpuShares> shares_of(const core::TreeRecord& tree) {
    const auto version = cgroups_.layout().cpu;
    if (!version || core::cgroups_with_share(tree).empty()) return std::nullopt;
    const core::NodeCpu node =
        cgroup::observe_node_cpu(cgroups_, records_.node, settings_, node_.capacity);
    return core::tree_shares(node, records_.node, tree, *version, node_.formula);
  }

  /// A cgroup above pods with what they request. Warns if it differs from the rule.
  Json group_json(std::string_view kind, const std::string& path, const core::TierSum& sum,
                  const core::CgroupValues& rule) {
    const cgroup::CgroupView cgroup{cgroups_, path};
    check_values(cat(kind, " ", path), cgroup, bounded(rule, cgroup));
    Json json = {{"cgroup", path},
                 {"pods", sum.pods},
                 {"requests", json_of(sum)},
                 {"rule", rule_json(rule)}};
    add_values(json, cgroup, rule.cpu_shares);
    const auto limit = rule.memory_limit ? cgroup.memory_limit() : std::nullopt;
    json["converging"] =
        limit && *limit > std::max(*rule.memory_limit, settings_.tier_memory_floor);
    return json;
  }

  /// A limit is never written below usage or the floor. A higher one for that reason is correct,
  /// and is lowered as usage falls.
  [[nodiscard]] core::CgroupValues bounded(core::CgroupValues rule,
                                           const cgroup::CgroupView& tier) const {
    const auto limit = tier.memory_limit();
    if (!rule.memory_limit || !limit || *limit <= *rule.memory_limit) return rule;
    const Bytes least = core::bounded_tier_limit(*rule.memory_limit, tier.memory_usage(),
                                                 settings_.tier_memory_floor);
    if (least > *rule.memory_limit) rule.memory_limit = limit;
    return rule;
  }

  const core::Settings& settings_;
  cgroup::Machine& cgroups_;
  NodeRecords records_;
  core::NodeRules node_;
  Json kinds_ = Json::array();                ///< of the warnings
  std::set<std::string, std::less<>> known_;  ///< cgroups of the records
  std::map<std::string, const Json*> well_;   ///< pods of which an earlier look warned of nothing
};

}  // namespace

Result<Json> inventory_json(const app::ConfigurationReport& configuration, NodeRecords records,
                            cgroup::Machine& cgroups, const Json& before) {
  return Inventory{configuration.settings, std::move(records), cgroups, before}.read(
      {{"enabled", configuration.settings.enabled},
       {"files", configuration.files},
       {"ignored", configuration.ignored},
       {"errors", configuration.errors}});
}

}  // namespace podqos::ctl
