#include "common/app/inventory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <tuple>
#include <utility>

#include "common/app/transaction.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/cgroup/root.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/events/root.h"
#include "common/core/events/tier_plan.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/grants.h"
#include "common/core/pods/node_fit.h"
#include "common/core/pods/placement.h"
#include "common/core/pods/pod_values.h"
#include "common/core/pods/resize.h"
#include "common/core/pods/root_values.h"
#include "common/store/memory_store.h"
#include "common/store/state_copy.h"
#include "common/sys/process.h"

namespace podqos::app {
namespace {

constexpr const char* kInterrupted =
    "the last transaction was interrupted and the sums may be wrong: run podqosctl reconcile";

/// The records, parsed.
struct NodeRecords {
  core::TiersRecord tiers;
  std::vector<core::PodRecord> pods;
  std::vector<std::string> warnings;
};

/// Reads the records under the lock; empty if the state directory is missing.
Result<NodeRecords> read_records(const core::Settings& settings) {
  PODQOS_ASSIGN(
      auto copy,
      store::copy_state({.path = settings.state_dir,
                         .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}}));
  NodeRecords records;
  if (!copy) return records;
  store::MemoryStore store{copy->records, [](const auto&) -> Status { return {}; }};
  copy->lock.reset();
  PODQOS_ASSIGN(auto uids, store.pod_uids());
  for (const std::string& uid : uids) {
    auto pod = store.pod(uid);
    if (!pod) {
      records.warnings.push_back(pod.error().message);
    } else if (*pod) {
      records.pods.push_back(std::move(**pod));
    }
  }
  records.tiers = store.tiers();
  if (store.dirty()) records.warnings.emplace_back(kInterrupted);
  for (const std::string& incident : store.incidents())
    records.warnings.push_back(incident);
  return records;
}

/// Reads a container's process and cgroup.
ContainerEntry container_entry(cgroup::Machine& cgroups, const core::ContainerRecord& record) {
  ContainerEntry entry{.record = record,
                       .alive = sys::is_alive(record.pid, record.start_time),
                       .oom_score_adj = {},
                       .cgroup = {cgroups, record.cgroup}};
  if (!entry.alive || record.state != core::ContainerState::kLive) return entry;
  if (const auto score = sys::oom_score_adj_of(record.pid)) entry.oom_score_adj = *score;
  return entry;
}

/// A pod's name in warnings: "pod web/front (42)".
std::string pod_label(const core::Pod& pod) {
  return pod.name.empty() ? cat("pod ", pod.uid)
                          : cat("pod ", pod.pod_namespace, pod.pod_namespace.empty() ? "" : "/",
                                pod.name, " (", pod.uid, ")");
}

/// Compares the records with the kernel's values and collects warnings.
class InventoryBuilder {
 public:
  InventoryBuilder(const core::Settings& settings, std::unique_ptr<cgroup::Machine> machine,
                   NodeRecords records)
      : settings_(settings), cgroups_(*machine), records_(std::move(records)) {
    inventory_.machine = std::move(machine);
    inventory_.adopted = records_.tiers.sums.adopted;
    inventory_.warnings = std::move(records_.warnings);
    inventory_.layout = cgroups_.layout();
    inventory_.formula = core::weight_formula(settings_, records_.tiers.weight_formula);
  }

  Status build() {
    for (const core::PodRecord& record : records_.pods)
      add_pod(record);
    std::ranges::sort(inventory_.pods, {}, [](const PodEntry& entry) {
      return std::tuple{entry.record.qos_class, entry.record.pod.pod_namespace,
                        entry.record.pod.name, entry.record.pod.uid};
    });
    for (const core::TreeRecord& tree : records_.tiers.trees) {
      PODQOS_TRY(add_tree(tree));
      check_controllers(tree);
    }
    std::ranges::sort(inventory_.trees, {}, &TreeEntry::kubepods);
    check_roots();
    check_pids();
    return {};
  }
  Inventory release() { return std::move(inventory_); }

 private:
  void add_pod(const core::PodRecord& record) {
    PodEntry entry{
        .record = record, .rule = {}, .cgroup = {cgroups_, record.cgroup}, .containers = {}};
    bool has_rule = false;
    if (!record.adopted) {
      auto rule = rule_for(record);
      has_rule = rule.has_value();
      if (rule) {
        entry.rule = std::move(*rule);
      } else {
        inventory_.warnings.push_back(cat(pod_label(record.pod), ": ", rule.error().message));
      }
    }
    for (const core::ContainerRecord& container : record.containers)
      entry.containers.push_back(container_entry(cgroups_, container));
    check_pod(entry, has_rule);
    inventory_.pods.push_back(std::move(entry));
  }

  Result<core::CgroupValues> rule_for(const core::PodRecord& record) {
    auto rule = core::pod_values(record, settings_);
    const bool unit = core::driver_of(record.cgroup) == core::Driver::kSystemd;
    return rule && unit ? core::rounded_by_systemd(std::move(*rule)) : std::move(rule);
  }

  /// Warns if the pod's cgroup or its containers differ from the record.
  /// @param has_rule  false for an adopted pod, and for one whose values break a rule
  void check_pod(const PodEntry& entry, bool has_rule) {
    const core::PodRecord& record = entry.record;
    const std::string name = pod_label(record.pod);
    if (!entry.cgroup.exists()) {
      inventory_.warnings.push_back(
          cat(name, ": its cgroup ", record.cgroup, " does not exist: run podqosctl reconcile"));
    } else if (has_rule) {
      for (const std::string& difference :
           differences(entry.cgroup, entry.rule, inventory_.formula, page_size_))
        inventory_.warnings.push_back(cat(name, ": ", difference));
      check_io_weight(name, record.cgroup, entry.rule);
    }
    check_place(entry);
    if (const auto words = core::describe_uncounted(record, settings_))
      inventory_.warnings.push_back(cat(name, ": ", *words));
    check_updates(entry);
    for (const ContainerEntry& container : entry.containers) {
      if (!container.alive) {
        inventory_.warnings.push_back(cat(name, ": container ", printable(container.record.id),
                                          " is recorded but not running: run podqosctl reconcile"));
      } else if (const auto stray = cgroup::describe_stray(cgroups_, record, container.record)) {
        inventory_.warnings.push_back(cat(name, ": ", *stray));
      }
    }
  }

  /// Warns of limits that a runtime has given a container and that its pod does not follow.
  void check_updates(const PodEntry& entry) {
    std::vector<core::HeldResources> held;
    for (const ContainerEntry& container : entry.containers) {
      const bool own = container.alive && core::tells_of_updates(entry.record, container.record);
      held.push_back(own ? cgroup::held_by(cgroups_, container.record, container.cgroup)
                         : core::HeldResources{});
    }
    const core::NodeRules node{
        .formula = inventory_.formula, .page_size = page_size_, .settings = settings_};
    for (const std::string& words : core::describe_unfollowed(entry.record, held, node))
      inventory_.warnings.push_back(cat(pod_label(entry.record.pod), ": ", words));
  }

  /// Warns if a cgroup's weight differs.
  void check_io_weight(std::string_view name, const std::string& cgroup,
                       const core::CgroupValues& rule) {
    for (const std::string& difference : cgroup::io_weight_differences(cgroups_, cgroup, rule))
      inventory_.warnings.push_back(cat(name, ": ", difference));
  }

  /// Warns of a container outside the pod's cgroup, once per pod: podqos left it there, or it was
  /// started there before podqos could place it.
  void check_place(const PodEntry& entry) {
    const auto outside = [&](const ContainerEntry& container) {
      return !entry.record.adopted && !container.record.sandbox &&
             container.record.state == core::ContainerState::kLive &&
             !is_below(container.record.cgroup, entry.record.cgroup);
    };
    const auto found = std::ranges::find_if(entry.containers, outside);
    if (found == entry.containers.end()) return;
    const core::ContainerRecord& container = found->record;
    const std::string words =
        core::is_left_without_parent(container.cgroup, container.id, settings_)
            ? core::describe_missing_parent(container.id, container.cgroup, entry.record.cgroup)
            : cat("container ", printable(container.id), " runs in cgroup ",
                  printable(container.cgroup),
                  ", outside the pod's limits, because it was started before podqos could place "
                  "it: recreate the pod once podqos-nri is connected, or podqos-runtime or "
                  "Podman's precreate hook is registered");
    inventory_.warnings.push_back(cat(pod_label(entry.record.pod), ": ", words));
  }

  Status add_tree(const core::TreeRecord& record) {
    PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings_));
    core::TierValues rule =
        core::wanted_tiers(record.sums, records_.tiers.sums, settings_, capacity);
    rule.burstable.io_weight = settings_.io_weight.burstable;
    rule.besteffort.io_weight = settings_.io_weight.besteffort;
    TreeEntry tree{.kubepods = record.kubepods, .tiers = {}, .top = top_of(record, capacity)};
    core::CgroupValues root =
        core::root_limits(records_.tiers, record, settings_, cgroup::with_pids(capacity));
    if (!tree.top) root.cpu_shares = shares_of(record, capacity);
    tree.tiers.push_back(tier_of(record, core::QosClass::kGuaranteed, std::move(root)));
    tree.tiers.push_back(tier_of(record, core::QosClass::kBurstable, rule.burstable));
    tree.tiers.push_back(tier_of(record, core::QosClass::kBestEffort, rule.besteffort));
    find_unmanaged(tree);
    inventory_.trees.push_back(std::move(tree));
    return {};
  }

  /// The shares of all of the tree's pods, if a cgroup has them.
  std::optional<CpuShares> shares_of(const core::TreeRecord& tree,
                                     const core::NodeCapacity& capacity) {
    if (!inventory_.layout.cpu || core::cgroups_with_share(tree).empty()) return std::nullopt;
    const core::NodeCpu node =
        cgroup::observe_node_cpu(cgroups_, records_.tiers, settings_, capacity);
    return core::tree_shares(node, records_.tiers, tree, *inventory_.layout.cpu,
                             inventory_.formula);
  }

  /// The directory above the root, which has the share of all of the tree's pods.
  std::optional<TierEntry> top_of(const core::TreeRecord& tree,
                                  const core::NodeCapacity& capacity) {
    if (tree.top.empty()) return std::nullopt;
    TierEntry top{.qos_class = core::QosClass::kGuaranteed,
                  .sum = core::sum_of_own(tree.sums),
                  .rule = {},
                  .cgroup = {cgroups_, tree.top}};
    top.rule.cpu_shares = shares_of(tree, capacity);
    for (const std::string& difference :
         differences(top.cgroup, top.rule, inventory_.formula, page_size_))
      inventory_.warnings.push_back(cat("cgroup ", tree.top, ": ", difference));
    return top;
  }

  TierEntry tier_of(const core::TreeRecord& tree, core::QosClass qos_class,
                    core::CgroupValues rule) {
    const std::string path = core::tier_path(tree.kubepods, qos_class);
    TierEntry tier{.qos_class = qos_class,
                   .sum = tree.sums.of(qos_class),
                   .rule = std::move(rule),
                   .cgroup = {cgroups_, path}};
    if (!tier.cgroup.exists()) {
      inventory_.warnings.push_back(cat("tier ", path, " does not exist: run podqosctl reconcile"));
    } else {
      check_tier(tier);
    }
    return tier;
  }

  void check_tier(const TierEntry& tier) {
    core::CgroupValues expected = tier.rule;
    // A limit is never written below usage or the floor. A higher one for that reason is correct,
    // and reconcile lowers it later.
    const auto limit = tier.cgroup.memory_limit();
    const bool held = expected.memory_limit && limit && *limit > *expected.memory_limit;
    if (held) {
      const Bytes least = core::bounded_tier_limit(
          *expected.memory_limit, tier.cgroup.memory_usage(), settings_.tier_memory_floor);
      if (least > *expected.memory_limit) expected.memory_limit = limit;
    }
    for (const std::string& difference :
         differences(tier.cgroup, expected, inventory_.formula, page_size_))
      inventory_.warnings.push_back(cat("tier ", tier.cgroup.path(), ": ", difference));
    check_io_weight(cat("tier ", tier.cgroup.path()), tier.cgroup.path(), tier.rule);
  }

  /// Warns of pod cgroups of a tree that have no record.
  void find_unmanaged(const TreeEntry& tree) {
    std::set<std::string, std::less<>> known;
    for (const PodEntry& entry : inventory_.pods)
      known.insert(entry.record.cgroup);
    for (const TierEntry& tier : tree.tiers) {
      const auto children = cgroups_.children(tier.cgroup.path());
      if (!children) continue;
      for (const std::string& child : *children) {
        const std::string path = cat(tier.cgroup.path(), "/", child);
        const auto pod = core::find_pod_cgroup(path);
        if (pod && pod->below.empty() && !known.contains(path))
          inventory_.warnings.push_back(cat("pod cgroup ", path, " is not managed by podqos"));
      }
    }
  }

  /// Warns if the pods may have more processes than the node.
  void check_pids() {
    const core::NodeCapacity node = cgroup::with_pids({.memory = {}, .cpu = {}});
    if (auto words = core::describe_pids(records_.tiers.sums, settings_, node))
      inventory_.warnings.push_back(std::move(*words));
  }

  /// True if adopted pods are below `root`: it belongs to their kubelet.
  [[nodiscard]] bool holds_adopted(const std::string& root) const {
    return std::ranges::any_of(inventory_.pods, [&](const PodEntry& entry) {
      return entry.record.adopted && is_below(entry.record.cgroup, root);
    });
  }

  /// Warns of controllers that the kernel has and the tree's children lack.
  void check_controllers(const core::TreeRecord& tree) {
    std::string lacking;
    // systemd disables others where no unit needs them.
    for (const auto controller :
         {core::Controller::kCpu, core::Controller::kMemory, core::Controller::kPids}) {
      const core::ControllerRow& row = core::row_of(controller);
      if (inventory_.layout.*row.version != core::CgroupVersion::kV2) continue;
      const auto enabled = cgroups_.read(tree.kubepods, row.controller, "cgroup.subtree_control");
      if (!enabled || cat(" ", *enabled, " ").contains(cat(" ", row.v2_name, " "))) continue;
      lacking += cat(lacking.empty() ? "" : ", ", row.v2_name);
    }
    if (lacking.empty()) return;
    inventory_.warnings.push_back(
        cat("the pods below ", tree.kubepods, " have no values of ", lacking,
            ": not enabled in cgroup.subtree_control; run podqosctl reconcile, which tries again "
            "and says why"));
  }

  /// Warns of a root that podqos cannot use, or has no records of.
  void check_roots() {
    for (const auto driver : {core::Driver::kCgroupfs, core::Driver::kSystemd}) {
      const std::string root = core::root_path(settings_.cgroup_root, driver);
      if (core::tree_at(records_.tiers, root) != nullptr || !cgroups_.exists(root) ||
          holds_adopted(root))
        continue;
      const auto mark = cgroups_.attribute(root, core::kMadeAttribute);
      if (!mark) continue;
      if (*mark != core::kMade) {
        inventory_.warnings.push_back(
            cat("cgroup ", root,
                " exists but was not created by podqos, so no pods are placed in it: "
                "set cgroupRoot to a cgroup reserved for podqos"));
      } else {
        inventory_.warnings.push_back(cat("cgroup ", root, " was created by podqos, but ",
                                          settings_.state_dir,
                                          " has lost the records of its pods: run podqosctl "
                                          "reconcile, which restores them"));
      }
    }
  }

  const core::Settings& settings_;
  cgroup::Machine& cgroups_;
  NodeRecords records_;
  Inventory inventory_;
  Bytes page_size_{::sysconf(_SC_PAGESIZE)};
};

}  // namespace

Result<Inventory> read_inventory(const core::Settings& settings) {
  PODQOS_ASSIGN(auto records, read_records(settings));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  InventoryBuilder builder{settings, std::make_unique<cgroup::Cgroupfs>(std::move(cgroups)),
                           std::move(records)};
  PODQOS_TRY(builder.build());
  return builder.release();
}

}  // namespace podqos::app
