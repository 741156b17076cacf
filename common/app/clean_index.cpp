#include "common/app/clean_index.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/core/pods/counting.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

/// What cannot be read may lead to one.
bool leads_to_container(store::Store& store, const store::IndexEntry& entry) {
  const auto record = store.pod(entry.uid);
  if (!record) return true;
  return *record && std::ranges::any_of((*record)->containers, [&](const auto& container) {
    return store::index_name(container.id) == entry.name;
  });
}

}  // namespace

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
