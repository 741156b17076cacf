#include "common/core/confirmation.h"

#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/placement.h"
#include "common/core/reconciliation.h"

namespace podqos::core {

Confirmation decide_confirmation(PodRecord record, std::size_t index, const StartedInit& init,
                                 const std::string& bundle, TiersRecord& tiers) {
  Confirmation out;
  ContainerRecord& container = record.containers[index];
  confirm_container(container, {.pid = init.pid, .start_time = init.start_time});
  note_pending(tiers, record, container);
  const bool elsewhere = !is_at_or_below(init.cgroup, container.cgroup);
  if (elsewhere && is_below(container.cgroup, record.cgroup)) {
    out.warning = cat("pod ", record.pod.uid, ", container ", printable(container.id),
                      ": the runtime put it into cgroup ", init.cgroup, ", not into ",
                      container.cgroup, ": the pod's limits do not apply to it");
  }
  if (elsewhere) container.cgroup = init.cgroup;
  if (!bundle.empty()) container.bundle = bundle;
  out.record = std::move(record);
  return out;
}

}  // namespace podqos::core
