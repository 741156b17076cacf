#include <algorithm>
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
#include "common/cgroup/value.h"
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
#include "common/sys/directory.h"
#include "common/sys/process.h"
#include "ctl/node/node_checks.h"
#include "ctl/node/node_model.h"
#include "ctl/node/runtime_state.h"

namespace podqos::ctl {
namespace {

/// Whether the processes of a running container are frozen, as by docker pause.
/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup.events; cgroup-v1/freezer-subsystem.rst
bool is_paused(cgroup::Machine& cgroups, const core::ContainerRecord& container) {
  if (cgroups.layout_without_hugepages().cpu == core::CgroupVersion::kV2) {
    const auto events = cgroups.read(container.cgroup, core::Controller::kCpu, "cgroup.events");
    return events && cgroup::find_key(*events, "frozen") == 1;
  }
  const auto places = cgroups.cgroups_of(container.pid);
  for (const sys::ProcCgroup& place : places ? *places : std::vector<sys::ProcCgroup>{}) {
    if (std::ranges::find(place.controllers, "freezer") == place.controllers.end()) continue;
    // The machine reads the controllers that podqos writes, of which this is none.
    const auto directory = sys::Directory::open(cat("/sys/fs/cgroup/freezer", place.path));
    const auto state =
        directory ? directory->read_file("freezer.state", 16) : fail(directory.error());
    return state && trimmed(*state) != "THAWED";
  }
  return false;
}

/// Compares the records with the kernel's values, and collects what is wrong.
class Reader {
 public:
  /// @param before  see read_node()
  Reader(const app::ConfigurationReport& configuration, NodeRecords records,
         cgroup::Machine& cgroups, const Node& before)
      : settings_(configuration.settings),
        cgroups_(cgroups),
        records_(std::move(records)),
        rules_{.formula = core::weight_formula(settings_, records_.node.weight_formula),
               .capacity = {},
               .settings = settings_},
        node_{.configuration = configuration, .formula = rules_.formula} {
    for (const PodEntry& pod : before.pods)
      if (std::ranges::find(before.findings, pod.record.pod.uid, &Finding::subject) ==
          before.findings.end())
        well_.emplace(pod.record.pod.uid, &pod);
  }

  Result<Node> read() {
    std::ranges::sort(records_.pods, {}, [](const core::PodRecord& record) {
      return std::tie(record.qos_class, record.pod.pod_namespace, record.pod.name, record.pod.uid);
    });
    std::ranges::sort(records_.node.trees, {}, &core::TreeRecord::kubepods);
    add_all("records", records_.warnings);
    PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings_));
    rules_.capacity = cgroup::with_pids(capacity);
    add_amounts();
    for (const core::PodRecord& record : records_.pods) {
      const auto well = well_.find(record.pod.uid);
      node_.pods.push_back(well == well_.end() ? pod_of(record) : *well->second);
      known_.insert(record.cgroup);
    }
    for (const core::TreeRecord& tree : records_.node.trees) {
      node_.trees.push_back(tree_of(tree));
      add_all("controllers", lacking_controllers(tree, cgroups_));
    }
    add_all("roots", unusable_roots(settings_, records_, cgroups_));
    const core::TierSums& sums = records_.node.sums;
    for (const auto& words : {core::describe_overcommitment(sums, settings_, rules_.capacity),
                              core::describe_pids(sums, settings_, rules_.capacity)})
      if (words) add("requests", *words);
    return std::move(node_);
  }

 private:
  /// What the node has for pods, and what of it they request, by class.
  void add_amounts() {
    node_.version = cgroups_.layout_without_hugepages().cpu;
    node_.capacity = {.cpu = rules_.capacity.cpu, .memory = rules_.capacity.memory};
    node_.allocatable = {.cpu = core::allocatable_cpu(settings_, rules_.capacity),
                         .memory = core::allocatable_memory(settings_, rules_.capacity)};
    node_.kubelets = records_.node.sums.kubelets;
    node_.counted = records_.node.sums;
    for (const core::PodRecord& record : records_.pods)
      if (!record.kubelets_own && !record.released_at)
        node_.requested.of(record.qos_class) += core::amounts_requested(record);
  }

  /// @param kind  of kNodeChecks
  void add(std::string_view kind, std::string text) {
    node_.findings.push_back(finding_of(kind, std::move(text), subject_));
  }
  void add_all(std::string_view kind, const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      add(kind, text);
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
           differences(cgroup, *rule, rules_.formula, rules_.capacity.page_size))
        note("values", name, words);
  }

  [[nodiscard]] Entry entry_of(const std::string& path) const {
    return {.held = {cgroups_, path}, .formula = rules_.formula};
  }
  static void set_rule(Entry& entry, core::CgroupValues rule) {
    entry.rule = std::move(rule);
    const auto amount = [&](std::string_view file) -> std::optional<Bytes> {
      const auto found = entry.rule.unified.find(file);
      if (found == entry.rule.unified.end()) return std::nullopt;
      return parse_int(found->second).transform([](std::int64_t bytes) { return Bytes{bytes}; });
    };
    entry.protection = {.min = amount("memory.min"), .low = amount("memory.low")};
  }

  PodEntry pod_of(const core::PodRecord& record) {
    const std::string name = cat("pod ", core::display_name(record));
    subject_ = record.pod.uid;
    PodEntry pod{.record = record, .cgroup = entry_of(record.cgroup)};
    set_rule(pod.cgroup, check_pod(name, record, pod.cgroup.held));
    if (const auto words = core::describe_uncounted(record, settings_))
      note("requests", name, *words);
    if (const auto words = core::describe_late_requests(record)) note("requests", name, *words);
    pod.oom_kills = app::count_oom_kills(cgroups_, record);
    pod.containers = containers_of(name, record);
    if (record.containers.empty() && !record.released_at)
      note("containers", name,
           "its containers have ended and it counts on, as something runs in its cgroup or could "
           "not be looked at: run podqosctl reconcile, which says what");
    for (const std::string& words : app::describe_memory_qos(
             cgroups_, record, core::memory_qos_params(settings_, rules_.capacity)))
      note("values", name, words);
    subject_.clear();
    return pod;
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
  std::vector<ContainerEntry> containers_of(std::string_view pod, const core::PodRecord& record) {
    std::vector<ContainerEntry> list;
    bool any_outside = false;
    // Limits that a runtime has given a container and that its pod does not follow.
    std::vector<core::HeldResources> held;
    for (const core::ContainerRecord& container : record.containers) {
      const bool alive = sys::is_alive(container.pid, container.start_time);
      ContainerEntry& entry = list.emplace_back(
          ContainerEntry{.record = container, .cgroup = ruled(record, container), .alive = alive});
      entry.paused = entry.is_live() && is_paused(cgroups_, container);
      const auto score = sys::oom_score_adj_of(container.pid);
      if (entry.is_live() && score) entry.oom_score_adj = *score;
      held.push_back(alive && core::tells_of_updates(record, container)
                         ? cgroup::held_by(cgroups_, container, entry.cgroup.held)
                         : core::HeldResources{});
      if (const auto words = any_outside ? std::nullopt : describe_outside(record, container)) {
        any_outside = true;
        note("places", pod, *words);
      }
      check_container(pod, record, container, alive);
    }
    for (const std::string& words : core::describe_unfollowed(record, held, rules_))
      note("limits", pod, words);
    return list;
  }

  /// See ContainerEntry.
  [[nodiscard]] Entry ruled(const core::PodRecord& record,
                            const core::ContainerRecord& container) const {
    Entry entry = entry_of(container.cgroup);
    const auto percent = core::burst_percent(record, settings_);
    if (percent && entry.held.cpu_quota() && !container.sandbox)
      entry.rule.cpu_burst = core::cpu_burst_for(entry.held.cpu_quota(), *percent);
    entry.protection = core::container_memory_qos(
        record, container.name, core::memory_qos_params(settings_, rules_.capacity));
    for (const auto value : {&core::MemoryQos::min, &core::MemoryQos::low, &core::MemoryQos::high})
      if (!(container.memory_qos.*value)) (entry.protection.*value).reset();
    return entry;
  }

  /// Why a container is outside the pod's cgroup: podqos left it there, its runtime put it there,
  /// or it was started there before podqos could place it. nullopt if it is not.
  [[nodiscard]] std::optional<std::string> describe_outside(
      const core::PodRecord& record, const core::ContainerRecord& container) const {
    if (record.kubelets_own || container.sandbox ||
        container.state != core::ContainerState::kLive || is_below(container.cgroup, record.cgroup))
      return std::nullopt;
    const auto& [id, cgroup] = std::tie(container.id, container.cgroup);
    if (core::is_left_without_parent(cgroup, id, settings_))
      return core::describe_missing_parent(id, cgroup, record.cgroup);
    return cat(
        "container ", printable(id), " runs in cgroup ", printable(cgroup),
        ", outside the pod's limits: its runtime put it there (podqosctl events says so), or "
        "it was started before podqos could place it: then recreate the pod once podqos-nri "
        "is connected, or podqos-runtime or Podman's precreate hook is registered");
  }

  TreeEntry tree_of(const core::TreeRecord& record) {
    core::TierValues rule =
        core::wanted_tiers(record.sums, records_.node.sums, settings_, rules_.capacity);
    rule.burstable.io_weight = settings_.io_weight.burstable;
    rule.besteffort.io_weight = settings_.io_weight.besteffort;
    if (node_.version == core::CgroupVersion::kV2)
      rule.besteffort.cpu_idle = settings_.cpu_idle_besteffort;
    core::CgroupValues root = core::root_limits(records_.node, record, settings_, rules_.capacity);
    const auto shares = shares_of(record);
    if (record.top.empty()) root.cpu_shares = shares;
    TreeEntry tree{.kubepods = record.kubepods};
    // Of the cgroup above the root that podqos created only CPU shares and reservation have a rule.
    if (!record.top.empty())
      tree.top = group_of("cgroup", record.top, core::sum_of_own(record.sums),
                          {.cpu_shares = shares, .unified = root.unified});
    for (const core::QosClass qos_class : kClasses) {
      const std::string path = core::tier_path(record.kubepods, qos_class);
      TierEntry& tier = tree.tiers.emplace_back(
          group_of("tier", path, record.sums.of(qos_class),
                   qos_class == core::QosClass::kGuaranteed  ? root
                   : qos_class == core::QosClass::kBurstable ? rule.burstable
                                                             : rule.besteffort));
      tier.qos_class = qos_class;
      if (const auto& threshold = settings_.eviction.of(qos_class)) {
        tier.evicts_at = codec::format_pressure(*threshold);
        const bool oomd =
            core::is_watched_by_oomd(record.kubepods, cgroups_.layout_without_hugepages());
        tier.evicted_by = oomd ? kOomdProgram : kPluginProgram;
        // The unit's cgroup is there while it runs: systemd.special(7).
        tier.evictor_runs =
            oomd && cgroups_.exists(cat("/system.slice/", kOomdProgram, ".service"));
      }
      add_all("unmanaged", unmanaged_pods(path, known_, cgroups_));
    }
    return tree;
  }

  /// The shares of all of the tree's pods, if a cgroup has them.
  std::optional<CpuShares> shares_of(const core::TreeRecord& tree) {
    const auto version = cgroups_.layout().cpu;
    if (!version || core::cgroups_with_share(tree).empty()) return std::nullopt;
    const core::NodeCpu node =
        cgroup::observe_node_cpu(cgroups_, records_.node, settings_, rules_.capacity);
    return core::tree_shares(node, records_.node, tree, *version, rules_.formula);
  }

  /// A cgroup above pods with what they request. Warns if it differs from the rule.
  TierEntry group_of(std::string_view kind, const std::string& path, const core::TierSum& sum,
                     core::CgroupValues rule) {
    TierEntry group{.qos_class = {}, .sum = sum, .cgroup = entry_of(path)};
    set_rule(group.cgroup, std::move(rule));
    const auto& [held, wanted, protection, formula] = group.cgroup;
    check_values(cat(kind, " ", path), held, bounded(wanted, held));
    const auto limit = wanted.memory_limit ? held.memory_limit() : std::nullopt;
    group.converging =
        limit && *limit > std::max(*wanted.memory_limit, settings_.tier_memory_floor);
    return group;
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
  core::NodeRules rules_;
  Node node_;
  std::string subject_;                          ///< uid of the pod that is looked at
  std::set<std::string, std::less<>> known_;     ///< cgroups of the records
  std::map<std::string, const PodEntry*> well_;  ///< pods that an earlier look found nothing of
};

}  // namespace

Result<Node> read_node(const app::ConfigurationReport& configuration, NodeRecords records,
                       cgroup::Machine& cgroups, const Node& before) {
  return Reader{configuration, std::move(records), cgroups, before}.read();
}

}  // namespace podqos::ctl
