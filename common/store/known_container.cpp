#include "common/store/known_container.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace podqos::store {

namespace {

/// Finds the index entry; see find_container().
Result<std::optional<core::IndexEntry>> find_entry(RecordStore& records, const std::string& id,
                                                   const std::string& bundle) {
  PODQOS_ASSIGN(auto entries, records.containers(id));
  const core::IndexEntry* partial = nullptr;
  std::size_t candidates = 0;
  for (const core::IndexEntry& entry : entries) {
    if (entry.id != id) continue;
    if (!bundle.empty() && entry.bundle == bundle) return entry;
    if (!bundle.empty() && !entry.bundle.empty()) continue;
    partial = &entry;
    ++candidates;
  }
  if (candidates > 1) {
    return fail(
        ErrorCode::kConflict,
        cat("container id ", printable(id), " is in use in ", candidates,
            " bundles and the runtime reports none: nothing changed, run podqosctl reconcile "
            "to release the one that has ended"));
  }
  if (partial == nullptr) return std::nullopt;
  return *partial;
}

}  // namespace

Result<std::optional<KnownContainer>> find_container(RecordStore& records, const std::string& id,
                                                     const std::string& bundle) {
  PODQOS_ASSIGN(auto entry, find_entry(records, id, bundle));
  if (!entry) return std::nullopt;
  PODQOS_ASSIGN(auto record, records.pod(entry->uid));
  if (record) {
    auto& containers = record->containers;
    const auto found = std::ranges::find_if(containers, [&](const core::ContainerRecord& c) {
      return c.id == id && c.bundle == entry->bundle;
    });
    if (found != containers.end()) {
      const auto index = static_cast<std::size_t>(found - containers.begin());
      return KnownContainer{.record = std::move(*record), .index = index};
    }
  }
  // A program that died in between has left an entry without a record, which is harmless.
  return std::nullopt;
}

Result<std::string> uid_by_sandbox(RecordStore& records, const core::Identity& identity,
                                   const std::string& id) {
  for (const std::string& known : {id, identity.sandbox_id}) {
    PODQOS_ASSIGN(auto found, find_container(records, known, ""));
    if (!found || found->record.sandbox_id != identity.sandbox_id) continue;
    if (known == id || found->container().sandbox) return found->record.pod.uid;
  }
  return identity.uid;
}

}  // namespace podqos::store
