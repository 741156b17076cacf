#include "common/store/memory_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/naming.h"

namespace podqos::store {

MemoryStore::MemoryStore(StoredRecords& stored, OnChange on_change)
    : stored_(&stored),
      on_change_(std::move(on_change)),
      tiers_(stored.tiers),
      incidents_(stored.incidents),
      dirty_(stored.dirty) {}

Status MemoryStore::begin() {
  if (stored_->dirty) return {};
  PODQOS_TRY(on_change_({.what = Change::What::kMark}));
  stored_->dirty = true;
  return {};
}

Status MemoryStore::write_tiers(bool marked) {
  if (stored_->tiers == tiers_ && stored_->dirty == marked) return {};
  PODQOS_TRY(on_change_({.what = Change::What::kTiers}));
  stored_->tiers = tiers_;
  stored_->dirty = marked;
  return {};
}

Status MemoryStore::commit() {
  const bool uncertain = dirty_ || keep_mark_;
  PODQOS_TRY(write_tiers(uncertain));
  dirty_ = uncertain;
  return {};
}

Status MemoryStore::checkpoint() {
  PODQOS_TRY(begin());
  return write_tiers(true);
}

Result<std::optional<core::PodRecord>> MemoryStore::pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  const auto found = stored_->pods.find(uid);
  if (found == stored_->pods.end()) return std::nullopt;
  auto record = codec::parse_pod_record(found->second);
  if (record && record->pod.uid == uid) return std::optional{std::move(*record)};
  if (!record && record.error().code == ErrorCode::kUnsupported)
    return fail(std::move(record).error().with_context(cat("record of pod ", uid)));
  const std::string cause = record ? "it is another pod's" : record.error().message;
  incidents_.push_back(cat("record of pod ", uid, " is corrupt: ", cause));
  dirty_ = true;
  PODQOS_TRY(begin());
  PODQOS_TRY(on_change_({.what = Change::What::kPod, .subject = uid, .erased = true}));
  stored_->pods.erase(found);
  return std::nullopt;
}

Status MemoryStore::put_pod(const core::PodRecord& record) {
  const std::string& uid = record.pod.uid;
  const std::string text = codec::format_pod_record(record);
  PODQOS_TRY(core::check_pod_uid(uid));
  if (text.size() > codec::kMaxRecordSize) {
    return fail(ErrorCode::kTooLarge, cat("record of pod ", uid, " has ", text.size(),
                                          " bytes, the limit is ", codec::kMaxRecordSize));
  }
  PODQOS_TRY(begin());
  const auto found = stored_->pods.find(uid);
  if (found != stored_->pods.end() && found->second == text) return {};
  PODQOS_TRY(on_change_({.what = Change::What::kPod, .subject = uid}));
  stored_->pods.insert_or_assign(uid, text);
  return {};
}

Status MemoryStore::erase_pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(begin());
  const auto found = stored_->pods.find(uid);
  if (found == stored_->pods.end()) return {};
  PODQOS_TRY(on_change_({.what = Change::What::kPod, .subject = uid, .erased = true}));
  stored_->pods.erase(found);
  return {};
}

Result<std::vector<std::string>> MemoryStore::pod_uids() {
  std::vector<std::string> uids;
  std::ranges::transform(stored_->pods, std::back_inserter(uids),
                         [](const auto& entry) { return entry.first; });
  return uids;
}

Result<std::vector<std::string>> MemoryStore::uids_with(std::string_view id) {
  std::vector<std::string> uids;
  for (const IndexEntry& entry : stored_->index) {
    if (entry.name == index_name(id)) uids.push_back(entry.uid);
  }
  return uids;
}

Status MemoryStore::put_entry(const IndexEntry& entry) {
  if (std::ranges::find(stored_->index, entry) != stored_->index.end()) return {};
  PODQOS_TRY(begin());
  PODQOS_TRY(on_change_({.what = Change::What::kEntry, .subject = entry.uid}));
  stored_->index.push_back(entry);
  return {};
}

Status MemoryStore::erase_entry(const IndexEntry& entry) {
  const auto found = std::ranges::find(stored_->index, entry);
  if (found == stored_->index.end()) return {};
  PODQOS_TRY(begin());
  PODQOS_TRY(on_change_({.what = Change::What::kEntry, .subject = entry.uid, .erased = true}));
  stored_->index.erase(found);
  return {};
}

Result<std::vector<IndexEntry>> MemoryStore::all_entries() {
  return stored_->index;
}

}  // namespace podqos::store
