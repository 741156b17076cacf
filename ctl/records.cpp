#include "ctl/records.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace podqos::ctl {

Result<store::Store> open_records(const core::Settings& settings, store::Opening opening) {
  return store::Store::open({.path = settings.state_dir,
                             .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}},
                            opening);
}

Result<NodeRecords> records_in(store::Store& store, store::Opening opening) {
  NodeRecords records;
  PODQOS_ASSIGN(auto uids, store.pod_uids());
  for (const std::string& uid : uids) {
    auto pod = store.pod(uid);
    if (!pod) {
      records.warnings.push_back(pod.error().message);
    } else if (*pod) {
      records.pods.push_back(std::move(**pod));
    }
  }
  records.node = store.node();
  // Without the lock, an event that goes on looks like one that was interrupted.
  if (opening != store::Opening::kReadUnlocked &&
      (store.dirty() || !store.take_interrupted().empty()))
    records.warnings.emplace_back(
        "an event was interrupted, or records have been lost: run podqosctl reconcile");
  std::ranges::copy(store.incidents(), std::back_inserter(records.warnings));
  return records;
}

Result<NodeRecords> read_records(const core::Settings& settings, store::Opening opening) {
  PODQOS_ASSIGN(auto store, open_records(settings, opening));
  return records_in(store, opening);
}

}  // namespace podqos::ctl
