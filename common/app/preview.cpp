#include "common/app/preview.h"

#include <chrono>
#include <utility>

#include "common/app/admission.h"
#include "common/app/reconciler.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/dry_run.h"
#include "common/cgroup/node.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/core/cgroups/naming.h"
#include "common/store/dry_run_files.h"
#include "common/store/state_directory.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

Log silent_log(core::Settings settings) {
  settings.log_sink = "none";
  settings.events_size = Bytes{0};
  return Log{"podqosctl", settings};
}

/// A transaction that changes nothing but `plan`, which has to outlive it.
Result<Transaction> dry_transaction(const core::Settings& settings, Log& log, NodeView node,
                                    std::vector<std::string>& plan) {
  PODQOS_ASSIGN(auto store, store::Store::over(std::make_unique<store::DryRunFiles>(
                                std::move(node.files), &plan)));
  return Transaction{settings, log, std::make_unique<store::Store>(std::move(store)),
                     std::make_unique<cgroup::DryRun>(std::move(node.machine), plan),
                     node.capacity};
}

/// Whether a line is about the copy of a record in its cgroup: it lags behind the record where
/// containers have only been confirmed, and says nothing to the operator.
bool is_copy(std::string_view line) {
  return line.starts_with("attr ") && line.ends_with(cat(" ", core::kRecordAttribute));
}

}  // namespace

std::string describe_written(std::string_view written) {
  const std::string_view cgroup = parent_of(written.substr(0, written.find(": ")));
  const auto pod = core::find_pod_cgroup(cgroup);
  std::string owner = pod ? cat("pod ", pod->uid) : "root";
  for (const auto tier : {core::QosClass::kBurstable, core::QosClass::kBestEffort}) {
    if (cgroup == core::tier_path(parent_of(cgroup), tier))
      owner = cat("tier ", core::format_qos_class(tier));
  }
  return cat(owner, ": ", written);
}

Result<NodeView> view_node(const core::Settings& settings) {
  if (store::is_read_only(settings.state_dir)) {
    return fail(ErrorCode::kPermission,
                cat(settings.state_dir, " is mounted read-only, so nothing can be reconciled"));
  }
  NodeView node;
  auto directory = store::StateDirectory::open(
      {.path = settings.state_dir,
       .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}},
      store::Opening::kRead);
  if (directory)
    node.files = std::make_unique<store::StateDirectory>(*std::move(directory));
  else if (directory.error().code != ErrorCode::kNotFound)
    return fail(std::move(directory).error());
  // As a transaction opens it, so that the preview fails where that would.
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open());
  node.machine = std::make_unique<cgroup::Cgroupfs>(std::move(machine));
  PODQOS_ASSIGN(node.capacity, cgroup::node_capacity(settings));
  return node;
}

namespace {

/// The state with its rows in the order of their uids: where they stand in the file tells nothing.
core::NodeState in_order(core::NodeState state) {
  std::ranges::sort(state.rows, {}, [](const core::PodRow& row) { return row.uid.view(); });
  for (core::PodRow& row : state.rows)
    row.being_changed = 0;
  return state;
}

}  // namespace

Result<ReconcilePreview> preview_reconcile(const core::Settings& settings, NodeView node) {
  Log log = silent_log(settings);
  ReconcilePreview preview;
  const bool has_state = node.files != nullptr;
  PODQOS_ASSIGN(auto transaction, dry_transaction(settings, log, std::move(node), preview.plan));
  const core::NodeState node_before = in_order(transaction.node());
  if (has_state) transaction.keep_settings();
  Reconciler all{Warnings::kLogged, follow_runtime};
  PODQOS_TRY(all.run(transaction));
  preview.report = std::move(all.report());
  PODQOS_TRY(transaction.finish());
  for (const std::string& line : transaction.release_written())
    preview.report.changes.push_back(describe_written(line));
  std::erase_if(preview.plan, is_copy);
  if (in_order(transaction.node()) != node_before) preview.plan.emplace_back("save   node");
  for (const std::string& incident : transaction.store().incidents())
    preview.report.warnings.push_back(incident);
  return preview;
}

Result<std::optional<PlacementPreview>> preview_place(const core::Settings& settings,
                                                      const PlacementRequest& call, NodeView node) {
  Log log = silent_log(settings);
  PODQOS_ASSIGN(const auto config, codec::OciConfig::parse(call.config, call.names));
  PODQOS_ASSIGN(auto request, request_of(settings, log, call, config));
  if (!request) return std::nullopt;
  std::vector<std::string> plan;
  PODQOS_ASSIGN(auto transaction, dry_transaction(settings, log, std::move(node), plan));
  PODQOS_ASSIGN(auto admission, admit_created(transaction, *std::move(request)));
  if (!admission) return std::nullopt;
  PODQOS_ASSIGN(auto edited, codec::edit_config(config, edit_for(*admission), std::nullopt));
  PODQOS_TRY(transaction.finish());
  PlacementPreview preview{
      .admission = *std::move(admission), .config = std::move(edited), .changes = {}, .plan = {}};
  for (const std::string& line : transaction.release_written())
    preview.changes.push_back(describe_written(line));
  std::erase_if(plan, is_copy);
  preview.plan = std::move(plan);
  return preview;
}

}  // namespace podqos::app
