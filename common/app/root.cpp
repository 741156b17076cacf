#include "common/app/root.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/node.h"
#include "common/cgroup/root.h"
#include "common/core/events/root.h"
#include "common/core/pods/counting.h"

namespace podqos::app {

namespace {

constexpr std::array kDrivers{core::Driver::kCgroupfs, core::Driver::kSystemd};

/// Enters the tree of this root into the state, unless it is there.
void record_root(core::TiersRecord& tiers, std::string kubepods) {
  if (core::tree_at(tiers, kubepods) == nullptr)
    tiers.trees.emplace_back(core::TreeRecord{.kubepods = std::move(kubepods)});
}

/// The CPU shares of core::cgroups_with_share(), see core::tree_shares(); nullopt if there are
/// none.
std::optional<CpuShares> observe_share(Transaction& transaction, const core::TreeRecord& tree) {
  cgroup::Machine& machine = transaction.machine();
  const auto& cpu = machine.layout_without_hugepages().cpu;
  if (!cpu || core::cgroups_with_share(tree).empty()) return std::nullopt;
  const core::TiersRecord& tiers = transaction.tiers();
  const core::NodeCpu node =
      cgroup::observe_node_cpu(machine, tiers, transaction.settings(), transaction.capacity());
  return core::tree_shares(node, tiers, tree, *cpu, transaction.formula());
}

/// The limits to write to a tree's root, see core::root_limits(); empty where the transaction has
/// changed nothing that they follow from, and the tree is as it was.
core::CgroupValues changed_root_limits(const Transaction& transaction, const core::TreeRecord& tree,
                                       core::TreeState state) {
  const core::Settings& settings = transaction.settings();
  const core::TreeRecord* old = core::tree_at(transaction.before(), tree.kubepods);
  if (state == core::TreeState::kUnchanged && old != nullptr &&
      core::root_limits(transaction.before(), *old, settings, transaction.capacity()) ==
          core::root_limits(transaction.tiers(), tree, settings, transaction.capacity()))
    return {};
  return core::root_limits(transaction.tiers(), tree, settings,
                           cgroup::with_pids(transaction.capacity()));
}

}  // namespace

Result<std::string> choose_root(Transaction& transaction, core::Driver driver,
                                const std::optional<std::string>& container) {
  PODQOS_ASSIGN(auto root,
                core::choose_root(transaction.tiers(), transaction.settings().cgroup_root, driver));
  if (core::tree_at(transaction.tiers(), root) != nullptr) return root;
  PODQOS_ASSIGN(const auto origin, cgroup::origin_of_root(transaction.machine(), root, container));
  PODQOS_TRY(core::check_root(root, origin));
  return root;
}

bool has_lost_roots(Transaction& transaction) {
  if (!transaction.tiers().trees.empty()) return false;
  return std::ranges::any_of(kDrivers, [&](core::Driver driver) {
    const std::string root = core::root_path(transaction.settings().cgroup_root, driver);
    return cgroup::is_marked(transaction.machine(), root).value_or(false);
  });
}

std::vector<Error> find_roots(Transaction& transaction, const core::PodRecords& records) {
  std::vector<Error> failed;
  core::TiersRecord& tiers = transaction.tiers();
  for (const core::Driver driver : kDrivers) {
    std::string root = core::root_path(transaction.settings().cgroup_root, driver);
    if (core::tree_at(tiers, root) != nullptr) continue;
    auto marked = cgroup::is_marked(transaction.machine(), root);
    if (!marked) {
      failed.push_back(std::move(marked).error());
    } else if (*marked) {
      record_root(tiers, std::move(root));
    }
  }
  for (const auto& [uid, record] : records) {
    auto root = record.adopted ? std::nullopt : core::root_of_pod(record.cgroup);
    if (root) record_root(tiers, std::move(*root));
  }
  for (core::TreeRecord& tree : tiers.trees) {
    if (tree.top.empty()) tree.top = cgroup::marked_top(transaction.machine(), tree.kubepods);
  }
  transaction.remake_trees();
  return failed;
}

Status make_root_for(Transaction& transaction, const core::PodRecord& record,
                     const Result<std::string>& root) {
  if (record.adopted) return {};
  // Without pods its tiers may be missing, even if another program's cgroup keeps it.
  const core::TreeRecord* tree = core::tree_at(transaction.tiers(), *root);
  if (tree != nullptr && core::has_pods(transaction.tiers(), *tree)) return {};
  cgroup::Machine& machine = transaction.machine();
  // A cgroup of another name may be the node operator's.
  const bool own_name = transaction.settings().cgroup_root == core::kDefaultCgroupRoot;
  std::vector<std::string> missing = core::with_parents(*root);
  std::erase_if(missing, [&](const std::string& path) {
    return machine.exists(path) && !(own_name && cgroup::is_made_above(machine, path, *root));
  });
  return transaction.make_tree(*root, core::plan_root(transaction.tiers(), *root, missing));
}

void take_back_root(Transaction& transaction, const std::string& kubepods) {
  const core::TreeRecord* tree = core::tree_at(transaction.tiers(), kubepods);
  if (tree == nullptr || core::has_pods(transaction.tiers(), *tree)) return;
  const std::string top = tree->top;
  const std::string outermost = top.empty() ? kubepods : top;
  cgroup::Machine& machine = transaction.machine();
  if (auto done = transaction.remove_tree(kubepods); !done)
    transaction.log().error(done.error().message);
  core::Plan left;  // by a systemd that has answered the first calls only
  for (std::string& path : core::tiers_and_root(kubepods))
    left.emplace_back(core::RemoveCgroup{.path = std::move(path)});
  const std::vector<std::string> directories = core::directories_above(kubepods, top);
  for (auto path = directories.rbegin(); path != directories.rend(); ++path)
    left.emplace_back(core::RemoveCgroup{.path = *path});
  if (auto done = transaction.execute(left); !done) transaction.log().error(done.error().message);
  if (!machine.exists(outermost)) core::forget_root(transaction.tiers(), kubepods);
}

core::Plan plan_top(Transaction& transaction, const core::TreeRecord& tree, core::Cgroup make) {
  const auto share = tree.top.empty() ? std::nullopt : observe_share(transaction, tree);
  if (!share) return {};
  return core::plan_top(core::cgroups_with_share(tree), *share,
                        transaction.machine().layout_without_hugepages(), transaction.formula(),
                        make);
}

core::CgroupValues changed_root_values(Transaction& transaction, const core::TreeRecord& tree,
                                       core::TreeState state) {
  core::CgroupValues values = changed_root_limits(transaction, tree, state);
  if (tree.top.empty()) values.cpu_shares = observe_share(transaction, tree);
  return values;
}

Status check_io_weight(Transaction& transaction, const std::string& kubepods) {
  if (transaction.settings().io_weight == core::IoWeights{}) return {};
  // Only then does a tier have the file if only Guaranteed pods have a weight.
  const core::EnsureCgroup with_io{.path = kubepods, .also = core::Controller::kIo};
  PODQOS_TRY(transaction.execute({with_io}));
  if (cgroup::takes_io_weight(transaction.machine(),
                              core::tier_path(kubepods, core::QosClass::kBurstable)))
    return {};
  transaction.log().warning(
      cat("ioWeight has no effect below ", kubepods,
          ": the kernel has neither io.weight nor io.bfq.weight (cgroup v1: blkio.bfq.weight, "
          "blkio.weight): load the module bfq, or unset ioWeight"));
  return {};
}

}  // namespace podqos::app
