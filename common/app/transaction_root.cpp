// The root cgroup of the node's pods: choosing, creating and removing it.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/kubelet.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/cgroup/removal.h"
#include "common/core/attributes.h"
#include "common/core/counting.h"

namespace podqos::app {

namespace {

/// False for an empty `top`.
bool is_at_or_below(std::string_view path, std::string_view top) {
  return !top.empty() && (path == top || path.starts_with(cat(top, "/")));
}

/// "/a/b/c" → {"/a/b/c", "/a/b", "/a"}: a cgroup and its parents up to the hierarchy's root.
std::vector<std::string> with_parents(std::string_view path) {
  std::vector<std::string> out;
  while (path.size() > 1) {
    out.emplace_back(path);
    path = path.substr(0, path.rfind('/'));
  }
  return out;
}

}  // namespace

bool Transaction::holds_only(const std::string& kubepods, const std::string& container) {
  if (!container.starts_with(cat(kubepods, "/"))) return false;
  std::string path = kubepods;
  while (path != container) {
    if (!cgroup::is_untouched(*machine_, path)) return false;
    const std::size_t end = container.find('/', path.size() + 1);
    const std::string next = container.substr(0, end);
    const auto children = machine_->children(path);
    if (!children || children->size() != 1 || cat(path, "/", children->front()) != next)
      return false;
    path = next;
  }
  return true;
}

Result<bool> Transaction::is_marked(const std::string& cgroup) {
  auto mark = machine_->attribute(cgroup, core::kMadeAttribute);
  if (!mark) return fail(std::move(mark).error());
  return *mark == core::kMade;
}

Result<core::RootSnapshot> Transaction::observe_root(const std::string& root,
                                                     const std::optional<std::string>& just_made) {
  core::RootSnapshot snapshot;
  snapshot.exists = machine_->exists(root);
  if (snapshot.exists) {
    auto marked = is_marked(root);
    if (!marked) return fail(std::move(marked).error());
    snapshot.marked = *marked;
    snapshot.made_by_runtime = !*marked && just_made && holds_only(root, *just_made);
  }
  if (core::is_kubelets_root(root) && core::is_available(snapshot))
    snapshot.kubelet = cgroup::find_kubelet();
  return snapshot;
}

Status Transaction::remove_other_root(core::Driver driver) {
  const std::string in_use = tiers().kubepods;
  // Removal may have failed when the last pod ended, because systemd or another program used the
  // root.
  if (auto done = store_->begin(); !done) return done;
  if (auto done = teardown(); !done) return done;
  // Committed separately: the rest of the transaction may end without a change of its own.
  if (auto done = store_->commit(); !done) return done;
  if (tiers().kubepods.empty()) return {};
  return fail(core::describe_remaining_root(in_use, driver, holder_of(in_use)));
}

std::optional<std::string> Transaction::holder_of(const std::string& kubepods) {
  std::vector<std::string> tiers{kubepods};
  for (const auto qos_class : {core::QosClass::kBurstable, core::QosClass::kBestEffort})
    tiers.push_back(core::tier_path(kubepods, qos_class));
  for (const std::string& tier : tiers) {
    const auto children = machine_->children(tier);
    if (!children) continue;
    for (const std::string& child : *children) {
      std::string path = cat(tier, "/", child);
      if (std::ranges::find(tiers, path) == tiers.end()) return path;
    }
  }
  return std::nullopt;
}

Result<std::string> Transaction::choose_root(core::Driver driver,
                                             const std::optional<std::string>& just_made) {
  auto choice = core::choose_root(tiers(), settings_->cgroup_root, driver);
  if (!choice) return fail(std::move(choice).error());
  if (choice->step == core::RootStep::kUse) return std::move(choice->root);
  if (choice->step == core::RootStep::kReplace) {
    if (auto removed = remove_other_root(driver); !removed) return fail(std::move(removed).error());
  }
  auto snapshot = observe_root(choice->root, just_made);
  if (!snapshot) return fail(std::move(snapshot).error());
  if (auto free = core::check_root(choice->root, *snapshot); !free)
    return fail(std::move(free).error());
  return std::move(choice->root);
}

Status Transaction::use_root(const std::string& kubepods) {
  // Without pods the tiers may be missing, even if another program's cgroup keeps the root.
  if (!tiers().kubepods.empty() && core::has_pods(tiers())) return {};
  // A transaction interrupted here may have left directories without marks.
  const std::string known = tiers().kubepods == kubepods ? tiers().top : "";
  std::vector<std::string> made;
  for (std::string& path : with_parents(kubepods)) {
    if (path == kubepods || is_at_or_below(path, known) || !machine_->exists(path))
      made.push_back(std::move(path));
  }
  // Record the root before creating it: a process that dies in between must not leave an unmarked
  // root that looks like a kubelet's.
  tiers().kubepods = kubepods;
  tiers().top = made.back() == kubepods ? "" : made.back();
  tiers().yielded = false;
  if (auto done = store_->checkpoint(); !done) return done;
  core::Plan plan = core::plan_tree(kubepods, tiers().top);
  // Without support for the attribute, only the state directory names the root.
  for (const std::string& path : made) {
    plan.emplace_back(core::SetAttribute{.path = path,
                                         .name = core::kMadeAttribute,
                                         .value = core::kMade,
                                         .on_refusal = core::OnRefusal::kIgnoreIfUnsupported});
  }
  auto done = run(plan);
  if (done) tree_ = Tree::kJustMade;
  return done;
}

void Transaction::forget_root() {
  tiers().kubepods.clear();
  tiers().top.clear();
  tiers().yielded = false;
}

void Transaction::record_root(std::string kubepods) {
  tiers().kubepods = std::move(kubepods);
  for (const std::string& path : with_parents(tiers().kubepods)) {
    if (path == tiers().kubepods) continue;
    if (!is_marked(path).value_or(false)) break;
    tiers().top = path;
  }
}

void Transaction::leave_root_to(std::string_view kubelet) {
  if (tiers().yielded) return;
  tiers().yielded = true;
  // Without support for the attribute there is no mark to withdraw.
  static_cast<void>(run({core::SetAttribute{.path = tiers().kubepods,
                                            .name = core::kMadeAttribute,
                                            .value = core::kMarkWithdrawn}})
                        .has_value());
  log_->warning(
      cat("cgroup ", tiers().kubepods, " now belongs to a kubelet (", kubelet,
          "): podqos no longer writes to it, and the kubelet will remove podqos's pods in it; "
          "remove cgroupRoot \"/\" from the configuration"));
}

void Transaction::leave_root_to_kubelet() {
  if (!core::is_kubelets_root(tiers().kubepods)) return;
  if (const auto kubelet = cgroup::find_kubelet()) leave_root_to(*kubelet);
}

void Transaction::note_adopted(const std::string& pod_cgroup) {
  if (core::is_taken_over(tiers(), pod_cgroup)) leave_root_to(cat("found its pod ", pod_cgroup));
}

Status Transaction::remove_unused(const std::string& cgroup) {
  // Remaining children were not created by podqos, or are still in use.
  const auto children = machine_->children(cgroup);
  if (!children) return fail(children.error());
  return children->empty() ? run(core::plan_removal(cgroup)) : Status{};
}

Status Transaction::teardown() {
  const std::string kubepods = tiers().kubepods;
  leave_root_to_kubelet();
  if (tiers().yielded) {
    forget_root();
    return {};
  }
  auto removed = remove_beside_systemd(kubepods, [&]() -> Result<bool> {
    for (const std::string& cgroup : core::tiers_and_root(kubepods)) {
      if (auto done = remove_unused(cgroup); !done) return fail(std::move(done).error());
    }
    // Do not wait for a cgroup of another program.
    return cgroup::is_held_by_systemd(*machine_, kubepods) && !holder_of(kubepods);
  });
  if (!removed || machine_->exists(kubepods)) return removed;
  const std::string top = tiers().top;
  forget_root();
  for (const std::string& path : with_parents(kubepods)) {
    if (path == kubepods) continue;
    if (!is_at_or_below(path, top)) break;
    if (auto done = remove_unused(path); !done) return done;
  }
  return {};
}

}  // namespace podqos::app
