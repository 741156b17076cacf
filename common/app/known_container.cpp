#include "common/app/known_container.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

/// Finds the index entry; see find_container().
Result<std::optional<core::IndexEntry>> find_entry(Transaction& transaction, const std::string& id,
                                                   const std::string& bundle) {
  auto entries = transaction.store().containers(id);
  if (!entries) return fail(std::move(entries).error());
  const core::IndexEntry* partial = nullptr;
  std::size_t candidates = 0;
  for (const core::IndexEntry& entry : *entries) {
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

Result<std::optional<KnownContainer>> find_container(Transaction& transaction,
                                                     const std::string& id,
                                                     const std::string& bundle) {
  auto entry = find_entry(transaction, id, bundle);
  if (!entry) return fail(std::move(entry).error());
  if (!*entry) return std::nullopt;
  auto record = transaction.store().pod((*entry)->uid);
  if (!record) return fail(std::move(record).error());
  if (*record) {
    auto& containers = (*record)->containers;
    const auto found = std::ranges::find_if(containers, [&](const core::ContainerRecord& c) {
      return c.id == id && c.bundle == (*entry)->bundle;
    });
    if (found != containers.end()) {
      const auto index = static_cast<std::size_t>(found - containers.begin());
      return KnownContainer{.record = std::move(**record), .index = index};
    }
  }
  // A process that died in between has left an entry without a record.
  if (auto done = transaction.execute({core::EraseIndexEntry{**entry}}); !done)
    return fail(std::move(done).error());
  if (auto done = transaction.store().commit(); !done) return fail(std::move(done).error());
  return std::nullopt;
}

Result<std::string> uid_by_sandbox(Transaction& transaction, const core::Identity& identity,
                                   const std::string& id) {
  for (const std::string& known : {id, identity.sandbox_id}) {
    auto found = find_container(transaction, known, "");
    if (!found) return fail(std::move(found).error());
    if (!*found || (*found)->record.sandbox_id != identity.sandbox_id) continue;
    if (known == id || (*found)->container().sandbox) return (*found)->record.pod.uid;
  }
  return identity.uid;
}

namespace {

/// Finds the pod's record of a reported container: in the same bundle, or the only one of its id if
/// one of the two has no bundle.
core::ContainerRecord* find_recorded(core::PodRecord& record, const core::ContainerFacts& facts) {
  core::ContainerRecord* found = nullptr;
  for (core::ContainerRecord& container : record.containers) {
    if (container.id != facts.id) continue;
    if (container.bundle == facts.bundle) return &container;
    if (found != nullptr) return nullptr;
    found = &container;
  }
  if (found == nullptr || (!found->bundle.empty() && !facts.bundle.empty())) return nullptr;
  return found;
}

}  // namespace

std::optional<core::IndexEntry> recognise(Transaction& transaction, core::PodRecord& record,
                                          core::ContainerFacts& facts) {
  core::ContainerRecord* const known = find_recorded(record, facts);
  if (known == nullptr || known->bundle == facts.bundle) return std::nullopt;
  if (facts.bundle.empty()) {
    facts.bundle = known->bundle;
    return std::nullopt;
  }
  core::IndexEntry outdated{.id = known->id, .bundle = known->bundle, .uid = record.pod.uid};
  core::forget_pending(transaction.tiers(), outdated);
  known->bundle = facts.bundle;
  return outdated;
}

}  // namespace podqos::app
