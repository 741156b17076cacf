#include "common/app/write_anew.h"

#include <utility>

#include "common/app/container_start.h"
#include "common/app/follow_memory_qos.h"
#include "common/base/text.h"

namespace podqos::app {

void note_event(core::ReconcileReport& report, core::Event event, std::string text) {
  event.text = std::move(text);
  report.events.push_back(std::move(event));
}

void note_failure(core::ReconcileReport& report, const std::string& uid, const Error& error) {
  report.failed.push_back(cat("pod ", uid, ": ", error.message));
  note_event(report, {.kind = core::EventKind::kFailed, .uid = uid}, error.message);
}

Status write_anew(Transaction& transaction, core::PodRecord& record, const core::PodRecord* stored,
                  core::ReconcileReport& report) {
  follow_memory_qos(transaction, record);
  if (stored == nullptr || *stored != record) PODQOS_TRY(transaction.save(record, stored));
  PODQOS_TRY(transaction.index(record));
  if (record.kubelets_own) return {};
  PODQOS_ASSIGN(const auto refused, transaction.write_or_postpone(record, nullptr));
  for (const core::ContainerRecord& container : record.containers) {
    if (container.state == core::ContainerState::kLive) write_burst(transaction, record, container);
  }
  if (refused && refused->code != ErrorCode::kBusy) note_failure(report, record.pod.uid, *refused);
  for (const std::string& line : transaction.release_written()) {
    report.changes.push_back(cat("pod ", record.pod.uid, ": ", line));
    const std::string cgroup = cat(record.cgroup, "/");
    note_event(report, core::event_of(core::EventKind::kCorrected, record),
               line.substr(line.starts_with(cgroup) ? cgroup.size() : 0));
  }
  return {};
}

}  // namespace podqos::app
