#include "common/app/runtime_update.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/pods/grants.h"
#include "common/core/pods/resize.h"

namespace podqos::app {

void follow_runtime(Transaction& transaction, core::PodRecord& record,
                    core::ReconcileReport& report) {
  if (record.adopted) return;
  std::vector<core::HeldResources> held;
  held.reserve(record.containers.size());
  for (const core::ContainerRecord& container : record.containers) {
    const cgroup::CgroupView own{transaction.machine(), container.cgroup};
    held.push_back(core::tells_of_updates(record, container)
                       ? cgroup::held_by(transaction.machine(), container, own)
                       : core::HeldResources{});
  }
  const core::NodeRules node{.formula = transaction.formula(),
                             .page_size = Bytes{::sysconf(_SC_PAGESIZE)},
                             .settings = transaction.settings()};
  const std::string pod = cat("pod ", record.pod.uid, ": ");
  const std::vector<std::string> followed = core::follow_updates(record, held, node);
  for (const std::string& change : followed)
    report.changes.push_back(cat(pod, change));
  for (const std::string& warning : core::describe_unfollowed(record, held, node))
    report.warnings.push_back(cat(pod, warning));
  if (followed.empty()) return;
  // What one pod may claim, whatever the others have.
  core::PodRecord alone = record;
  core::grant_requests(alone, {}, transaction.settings(), transaction.capacity());
  if (const auto cut = core::describe_uncounted(alone, transaction.settings()))
    report.warnings.push_back(cat(pod, *cut));
}

}  // namespace podqos::app
