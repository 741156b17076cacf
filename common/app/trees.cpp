// What a transaction does with a tree of pods: its root, its tiers, and what podqos has made above.
#include <algorithm>
#include <utility>
#include <variant>

#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/node.h"
#include "common/cgroup/observe_root.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/choose_root.h"
#include "common/core/pods/counting.h"

namespace podqos::app {

/// Whether root and tiers exist, and that part of the root which has the mark of podqos.
bool Transaction::is_whole(const std::string& kubepods) {
  const auto mark = machine_->attribute(kubepods, core::kMadeAttribute);
  const bool gone = !mark && mark.error().code == ErrorCode::kNotFound;
  return !gone && std::ranges::all_of(core::tiers_and_root(kubepods),
                                      [&](const auto& path) { return machine_->exists(path); });
}

Status Transaction::make_tree(const std::string& kubepods) {
  // Without pods its tiers may be missing, even if another program's cgroup keeps it.
  const core::TreeRecord* tree = core::tree_at(node(), kubepods);
  const bool used = tree != nullptr && core::has_pods(node(), *tree);
  if (used && (trees_ != core::TreeState::kMissing || is_whole(kubepods))) return {};
  // A cgroup of another name may be the node operator's.
  const bool own_name = settings_->cgroup_root == core::kDefaultCgroupRoot;
  std::vector<std::string> missing = core::with_parents(kubepods);
  std::erase_if(missing, [&](const std::string& path) {
    return machine_->exists(path) &&
           !(own_name && cgroup::is_made_above(*machine_, path, kubepods));
  });
  core::Plan plan = core::plan_root(node(), kubepods, missing);
  if (used) {
    std::erase_if(plan, [&](const core::Step& step) {
      const auto* mark = std::get_if<core::SetAttribute>(&step);
      return mark != nullptr && cgroup::is_marked(*machine_, mark->path).value_or(false);
    });
  }
  PODQOS_TRY(store_->write_node());
  PODQOS_TRY(execute(plan));
  if (!used) made_.push_back(kubepods);
  return {};
}

Status Transaction::remove_tree(const std::string& kubepods) {
  const core::TreeRecord* tree = core::tree_at(node(), kubepods);
  if (tree == nullptr) return {};
  PODQOS_ASSIGN(auto removal, cgroup::remove_tree(*machine_, kubepods, tree->top));
  note(std::move(removal.report));
  if (removal.removed == cgroup::Removed::kHeldBySystemd) leave_held("", kubepods);
  if (removal.removed == cgroup::Removed::kGone) core::forget_root(node(), kubepods);
  return {};
}

void Transaction::take_back_tree(const std::string& kubepods) {
  const core::TreeRecord* tree = core::tree_at(node(), kubepods);
  if (tree == nullptr || core::has_pods(node(), *tree)) return;
  const std::string top = tree->top;
  if (auto done = remove_tree(kubepods); !done) log_->error(done.error().message);
  core::Plan left;  // by a systemd that has answered the first calls only
  for (std::string& path : core::tiers_and_root(kubepods))
    left.emplace_back(core::RemoveCgroup{.path = std::move(path)});
  const std::vector<std::string> directories = core::directories_above(kubepods, top);
  for (auto path = directories.rbegin(); path != directories.rend(); ++path)
    left.emplace_back(core::RemoveCgroup{.path = *path});
  if (auto done = execute(left); !done) log_->error(done.error().message);
  if (!machine_->exists(top.empty() ? kubepods : top)) core::forget_root(node(), kubepods);
}

/// The CPU shares of core::cgroups_with_share(), see core::tree_shares(); nullopt if there are
/// none.
std::optional<CpuShares> Transaction::observe_share(const core::TreeRecord& tree) {
  const auto& cpu = machine_->layout_without_hugepages().cpu;
  if (!cpu || core::cgroups_with_share(tree).empty()) return std::nullopt;
  const core::NodeCpu cpu_of_node =
      cgroup::observe_node_cpu(*machine_, node(), *settings_, capacity_);
  return core::tree_shares(cpu_of_node, node(), tree, *cpu, formula());
}

/// The limits to write to a tree's root, see core::root_limits(): those that differ from what they
/// were before the transaction, or all where the tree may not be as it was.
core::CgroupValues Transaction::changed_root_limits(const core::TreeRecord& tree,
                                                    core::TreeState state) const {
  const core::TreeRecord* old = core::tree_at(before_, tree.kubepods);
  if (state != core::TreeState::kUnchanged || writes_root_limits_ || old == nullptr)
    return core::root_limits(node(), tree, *settings_, cgroup::with_pids(capacity_));
  const core::CgroupValues held = core::root_limits(before_, *old, *settings_, capacity_);
  core::CgroupValues wanted = core::root_limits(node(), tree, *settings_, capacity_);
  if (wanted.memory_limit == held.memory_limit) wanted.memory_limit.reset();
  if (wanted.unified == held.unified) wanted.unified.clear();
  wanted.pids_limit.reset();  // constant
  return wanted;
}

/// Warns if ioWeight has no effect on this kernel: when the root is made, not at each container.
Status Transaction::check_io_weight(const std::string& kubepods) {
  if (settings_->io_weight == core::IoWeights{}) return {};
  // Only then does a tier have the file if only Guaranteed pods have a weight.
  PODQOS_TRY(execute({core::EnsureCgroup{.path = kubepods, .also = core::Controller::kIo}}));
  if (cgroup::takes_io_weight(*machine_, core::tier_path(kubepods, core::QosClass::kBurstable)))
    return {};
  log_->warning(
      cat("ioWeight has no effect below ", kubepods,
          ": the kernel has neither io.weight nor io.bfq.weight (cgroup v1: blkio.bfq.weight, "
          "blkio.weight): load the module bfq, or unset ioWeight"));
  return {};
}

core::TierSnapshot Transaction::observe_tier(const std::string& path,
                                             const core::CgroupValues& wanted,
                                             core::TreeState state) {
  core::TierSnapshot snapshot;
  if (wanted.memory_limit) {
    if (const auto usage = machine_->memory_usage(path)) snapshot.usage = *usage;
    const Bytes least = std::max(*wanted.memory_limit, settings_->tier_memory_floor);
    if (core::bounded_tier_limit(least, snapshot.usage, least) > least)
      snapshot.limit = cgroup::CgroupView{*machine_, path}.memory_limit();
  }
  snapshot.has_io_weight =
      state == core::TreeState::kMissing && cgroup::has_io_weight(*machine_, path);
  return snapshot;
}

/// Warns once, when the root is made, if Memory QoS has no effect on this machine.
void Transaction::check_memory_qos() {
  const bool wanted =
      settings_->reserve_memory || settings_->memory_throttling_thousandths.has_value();
  if (!wanted || machine_->layout_without_hugepages().memory == core::CgroupVersion::kV2) return;
  log_->warning(
      "memoryReservationPolicy and memoryThrottlingFactor have no effect: cgroup v1 has no files "
      "memory.min, memory.low and memory.high: boot with systemd.unified_cgroup_hierarchy=1, or "
      "unset them");
}

Status Transaction::write_tiers(const core::TreeRecord& tree, core::TreeState state) {
  core::TierValues wanted = core::wanted_tiers(tree.sums, node().sums, *settings_, capacity_);
  wanted.root = changed_root_limits(tree, state);
  const auto share = observe_share(tree);
  if (tree.top.empty()) wanted.root.cpu_shares = share;
  const bool watched_by_oomd =
      core::is_watched_by_oomd(tree.kubepods, machine_->layout_without_hugepages());
  const auto observe = [&](const core::CgroupValues& tier, core::QosClass qos_class) {
    const std::string path = core::tier_path(tree.kubepods, qos_class);
    core::TierSnapshot snapshot = observe_tier(path, tier, state);
    snapshot.has_eviction = watched_by_oomd && state == core::TreeState::kMissing &&
                            cgroup::has_eviction(*machine_, path);
    return snapshot;
  };
  const bool took_reservation = state == core::TreeState::kMissing && tree.reserves.value_or(false);
  const core::TierValues values = core::decide_tier_write(
      wanted, state,
      {.has_reservation = took_reservation,
       .root = observe(wanted.root, core::QosClass::kGuaranteed),
       .burstable = observe(wanted.burstable, core::QosClass::kBurstable),
       .besteffort = observe(wanted.besteffort, core::QosClass::kBestEffort),
       .watched_by_oomd = watched_by_oomd},
      *settings_);
  // Where the tree is not as it was, systemd is told even what the files hold.
  const auto make =
      state == core::TreeState::kUnchanged ? core::Cgroup::kExists : core::Cgroup::kCreate;
  const core::CgroupLayout& layout = machine_->layout_without_hugepages();
  Status first;
  const auto attempt = [&](const core::Plan& plan) {
    auto done = execute(plan);
    if (first && !done) first = std::move(done);
  };
  if (state == core::TreeState::kMissing) attempt(core::plan_tree(tree.kubepods, tree.top));
  attempt(core::plan_tiers(tree.kubepods, values, layout, formula(), make));
  const core::CgroupValues above{
      .cpu_shares = share, .cpu_idle = values.root.cpu_idle, .unified = values.root.unified};
  if (!tree.top.empty() && above != core::CgroupValues{})
    attempt(core::plan_top(core::cgroups_with_share(tree), above, layout, formula(), make));
  note_reservation(tree.kubepods, took_reservation && first);
  return first;
}

/// Notes whether cgroups of a tree may have a reservation.
/// @param rewritten  all of them hold what the settings say
void Transaction::note_reservation(const std::string& kubepods, bool rewritten) {
  core::TreeRecord* tree = core::tree_at(node(), kubepods);
  if (settings_->reserve_memory)
    tree->reserves = true;
  else if (rewritten)
    tree->reserves.reset();
}

Status Transaction::write_tree(const core::TreeRecord& tree) {
  if (!core::has_pods(node(), tree)) {
    // Only units may be left that systemd did not stop when it was asked: that is for reconcile to
    // try again, so that no container waits for a systemd that does not answer.
    const bool may_remain = trees_ == core::TreeState::kUnchanged &&
                            core::driver_of(tree.kubepods) == core::Driver::kSystemd &&
                            !machine_->exists(tree.kubepods);
    const Status done = may_remain ? Status{} : remove_tree(tree.kubepods);
    if (!done) {
      note_failure(cat("cgroup ", tree.kubepods,
                       ", in which no pod is left, was not removed: ", done.error().message));
    }
    return {};
  }
  const bool just_made = std::ranges::find(made_, tree.kubepods) != made_.end();
  const core::TreeState known =
      tree.unfinished.value_or(false) ? core::TreeState::kMissing : trees_;
  auto done = write_tiers(tree, just_made ? core::TreeState::kFresh : known);
  // Another program has removed them, or has made one idle: then it refuses a weight.
  if (!done && (done.error().code == ErrorCode::kNotFound ||
                done.error().code == ErrorCode::kInvalidArgument))
    done = write_tiers(tree, core::TreeState::kMissing);
  else if (done && just_made)
    done = check_io_weight(tree.kubepods);
  if (just_made) check_memory_qos();
  // Later transactions write what has changed, not all that a new tree needs.
  if (core::TreeRecord* kept = core::tree_at(node(), tree.kubepods)) {
    if (done)
      kept->unfinished.reset();
    else if (just_made)
      kept->unfinished = true;
  }
  return done;
}

Status Transaction::write_trees() {
  if (node().trees.empty()) return {};
  // By value: a tree without pods is forgotten.
  for (const core::TreeRecord& tree : std::vector{node().trees}) {
    if (auto done = write_tree(tree); !done)
      note_failure(cat("tiers of ", tree.kubepods, " not written: ", done.error().message));
  }
  return {};
}

}  // namespace podqos::app
