#include "ctl/records.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/store/store.h"

namespace podqos::ctl {

Result<NodeRecords> read_records(const core::Settings& settings, store::Opening opening) {
  PODQOS_ASSIGN(
      auto store,
      store::Store::open({.path = settings.state_dir,
                          .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}},
                         opening));
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
  if (store.dirty() || !store.take_interrupted().empty())
    records.warnings.emplace_back(
        "an event was interrupted, or records have been lost: run podqosctl reconcile");
  std::ranges::copy(store.incidents(), std::back_inserter(records.warnings));
  return records;
}

}  // namespace podqos::ctl
