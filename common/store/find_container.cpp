// A recorded container by its id, of whichever pod.
#include "common/base/text.h"
#include "common/store/store.h"

namespace podqos::store {

Result<std::optional<KnownContainer>> find_container(Store& records, const std::string& id,
                                                     const std::string& bundle) {
  PODQOS_ASSIGN(const auto uids, records.uids_with(id));
  std::optional<KnownContainer> partial;
  int candidates = 0;
  for (const std::string& uid : uids) {
    PODQOS_ASSIGN(auto record, records.pod(uid));
    // A program that died in between has left an entry without a record, which is harmless.
    if (!record) continue;
    for (std::size_t index = 0; index < record->containers.size(); ++index) {
      const core::ContainerRecord& container = record->containers[index];
      if (container.id != id) continue;
      if (!bundle.empty() && container.bundle == bundle)
        return KnownContainer{.record = std::move(*record), .index = index};
      if (!bundle.empty() && !container.bundle.empty()) continue;
      partial = KnownContainer{.record = *record, .index = index};
      ++candidates;
    }
  }
  if (candidates > 1) {
    return fail(
        ErrorCode::kConflict,
        cat("container id ", printable(id), " is in use in ", candidates,
            " bundles and the runtime reports none: nothing changed, run podqosctl reconcile "
            "to release the one that has ended"));
  }
  return partial;
}

Result<std::string> uid_by_sandbox(Store& records, const core::Identity& identity,
                                   const std::string& id) {
  for (const std::string& known : {id, identity.sandbox_id}) {
    PODQOS_ASSIGN(auto found, find_container(records, known, ""));
    if (!found || found->record.sandbox_id != identity.sandbox_id) continue;
    if (known == id || found->container().sandbox) return found->record.pod.uid;
  }
  return identity.uid;
}

}  // namespace podqos::store
