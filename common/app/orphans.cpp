// What is found below podqos's roots, and in the index, that no record tells of.
#include "common/app/orphans.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/pods/counting.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

class Orphans {
 public:
  Orphans(Transaction& transaction, const KnownPods& known)
      : transaction_(transaction), known_(known) {}

  /// Pod cgroups below a root of podqos's without a record: restored from their copy, or removed.
  void restore(const std::string& kubepods) {
    for (const auto qos_class :
         {core::QosClass::kGuaranteed, core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
      const std::string tier = core::tier_path(kubepods, qos_class);
      auto children = transaction_.machine().children(tier);
      if (!children) {
        known_.report.failed.push_back(std::move(children).error().message);
        continue;
      }
      for (const std::string& child : *children) {
        const std::string path = cat(tier, "/", child);
        const auto pod = core::find_pod_cgroup(path);
        if (!pod || pod->pod_path != path) continue;
        if (auto done = restore_pod(path, pod->uid); !done)
          known_.report.failed.push_back(std::move(done).error().message);
      }
    }
  }

  Status restore_pod(const std::string& cgroup, const std::string& uid) {
    const core::PodRow* const known = core::find_row(transaction_.node(), uid);
    if (known != nullptr && is_recorded_at(*known, cgroup)) return {};
    PODQOS_ASSIGN(auto populated, cgroup::holds_container(transaction_.machine(), cgroup));
    const core::TreeRecord* tree = core::find_tree(transaction_.node(), cgroup);
    const auto copy = transaction_.machine().attribute(cgroup, core::kRecordAttribute);
    // The hierarchy that has the copies lacks it: what an engine makes is in all of them.
    const bool incomplete = !copy && copy.error().code == ErrorCode::kNotFound;
    if (!copy && !incomplete) return fail(copy.error());
    const bool left_over =
        incomplete || (!*copy && cgroup::is_bare(transaction_.machine(), cgroup));
    core::FoundPodCgroup found{.path = cgroup,
                               .uid = uid,
                               .known = known != nullptr,
                               .populated = populated,
                               .has_copy = copy && copy->has_value(),
                               .left_over = left_over && tree != nullptr,
                               .copy = std::nullopt};
    if (found.has_copy) {
      std::string_view text = **copy;
      if (text.starts_with(core::kUnwrittenRecord))
        text.remove_prefix(std::string_view{core::kUnwrittenRecord}.size());
      if (auto record = codec::parse_pod_record(text)) found.copy = std::move(*record);
    }
    // A container that was moved out of its pod by hand still belongs to the pod.
    found.lives_elsewhere = !found.populated && found.copy &&
                            cgroup::has_living_container(transaction_.machine(), *found.copy);
    return apply(core::decide_restoration(std::move(found)), cgroup);
  }

  Status apply(core::Restoration restoration, const std::string& cgroup) {
    if (restoration.warning) known_.report.warnings.push_back(std::move(*restoration.warning));
    if (restoration.removed) {
      transaction_.remove_children({.cgroup = cgroup});
      PODQOS_TRY(transaction_.execute(core::plan_removal(cgroup)));
      if (transaction_.machine().exists(cgroup)) {
        return fail(ErrorCode::kConflict,
                    cat("cgroup ", cgroup,
                        " of a pod that has ended is not removed: processes, mounts or cgroups "
                        "below it keep it; podqosctl reconcile will retry it"));
      }
    }
    if (restoration.change) known_.report.changes.push_back(std::move(*restoration.change));
    if (restoration.record) {
      ++known_.report.repaired;
      std::string uid = restoration.record->pod.uid;
      known_.records.emplace(std::move(uid), std::move(*restoration.record));
    }
    return {};
  }

  /// Stops slices of ended pods that systemd still lists although record and cgroup are gone.
  void stop_stray_units(const core::TreeRecord& tree) {
    if (core::driver_of(tree.kubepods) == core::Driver::kCgroupfs) return;
    std::string pattern{core::unit_of(tree.kubepods)};
    pattern.replace(pattern.rfind('.'), std::string::npos, "-*.slice");
    auto units = transaction_.machine().list_units(pattern);
    if (!units) {
      known_.report.failed.push_back(std::move(units).error().message);
      return;
    }
    for (const cgroup::ListedUnit& unit : *units) {
      auto path = core::expand_slice(unit.name);
      const auto pod = path ? core::find_pod_cgroup(*path) : std::nullopt;
      const bool ours =
          pod && pod->pod_path == *path && core::find_row(transaction_.node(), pod->uid) == nullptr;
      if (!ours || unit.active_state == "inactive" || transaction_.machine().exists(*path))
        continue;
      known_.report.changes.push_back(cat("stopped unit ", unit.name, " of a pod that has ended"));
      if (auto done = transaction_.execute({core::StopUnit{*path}}); !done)
        known_.report.failed.push_back(std::move(done).error().message);
    }
  }

 private:
  /// Whether the cgroup is that of a recorded pod, or its record cannot be read.
  [[nodiscard]] bool is_recorded_at(const core::PodRow& row, const std::string& cgroup) {
    const core::TreeRecord* tree = core::find_tree(transaction_.node(), cgroup);
    if (tree != nullptr && row.tree == core::tree_key(tree->kubepods) &&
        cgroup == core::pod_path(tree->kubepods, row.qos_class, row.uid.view()))
      return true;
    // Its class may be another than that of its cgroup.
    const auto record = transaction_.store().pod(row.uid.view());
    return !record || (*record && (*record)->cgroup == cgroup);
  }

  Transaction& transaction_;
  const KnownPods& known_;
};

/// What cannot be read may lead to one.
bool leads_to_container(store::Store& store, const store::IndexEntry& entry) {
  const auto record = store.pod(entry.uid);
  if (!record) return true;
  return *record && std::ranges::any_of((*record)->containers, [&](const auto& container) {
    return store::index_name(container.id) == entry.name;
  });
}

}  // namespace

void restore_orphans(Transaction& transaction, const core::TreeRecord& tree,
                     const KnownPods& known) {
  Orphans orphans{transaction, known};
  orphans.restore(tree.kubepods);
  orphans.stop_stray_units(tree);
}

void clean_index(Transaction& transaction, core::ReconcileReport& report) {
  store::Store& store = transaction.store();
  const auto entries = store.all_entries();
  if (!entries) {
    report.failed.push_back(entries.error().message);
    return;
  }
  std::map<std::string, std::uint32_t, std::less<>> counts;
  for (const store::IndexEntry& entry : *entries)
    ++counts[entry.uid];
  for (const store::IndexEntry& entry : *entries) {
    const core::PodRow* const row = core::find_row(store.node(), entry.uid);
    const bool is_kept = row != nullptr && row->containers == counts[entry.uid];
    if (is_kept || leads_to_container(store, entry)) continue;
    if (auto done = store.erase_entry(entry); !done)
      report.failed.push_back(std::move(done).error().message);
  }
}

}  // namespace podqos::app
