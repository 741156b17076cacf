#include "common/store/store.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/naming.h"
#include "common/store/dry_run_files.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"
#include "common/sys/atomic_file.h"

namespace podqos::store {

namespace {

/// Never writes what pod() or load_tiers() would refuse.
Status check_text(std::string_view what, std::string_view text) {
  if (text.size() > codec::kMaxRecordSize)
    return fail(ErrorCode::kTooLarge, cat(what, " would have ", text.size(),
                                          " bytes, the limit is ", codec::kMaxRecordSize));
  if (!codec::is_utf8(text))
    return fail(
        ErrorCode::kUnsupported,
        cat(what, ": the path of its bundle or cgroup is not UTF-8: rename that directory"));
  return {};
}

std::string record_path(std::string_view uid) {
  return cat(kPodsName, "/", uid, kRecordSuffix);
}

std::string index_path(std::string_view name) {
  return cat(kContainersName, "/", name);
}

/// The uids in the target of a link, separated by '/'.
Result<std::vector<std::string>> parse_uids(std::string_view target) {
  std::vector<std::string> uids;
  while (!target.empty()) {
    uids.emplace_back(read_until(target, '/'));
    if (auto valid = core::check_pod_uid(uids.back()); !valid)
      return fail(ErrorCode::kCorrupt, std::move(valid).error().message);
  }
  return uids;
}

}  // namespace

Result<Store> Store::open(const StoreOptions& options, Opening opening) {
  const bool reads = opening == Opening::kRead || opening == Opening::kReadUnlocked;
  auto directory = StateDirectory::open(options, opening);
  const bool missing = !directory && directory.error().code == ErrorCode::kNotFound;
  if (!directory && !(reads && missing)) return fail(std::move(directory).error());
  std::unique_ptr<StateFiles> files;
  if (directory) files = std::make_unique<StateDirectory>(*std::move(directory));
  if (reads) files = std::make_unique<DryRunFiles>(std::move(files));
  return over(std::move(files));
}

Result<Store> Store::over(std::unique_ptr<StateFiles> files) {
  Store store{std::move(files)};
  PODQOS_TRY(store.load_tiers());
  return store;
}

Status Store::load_tiers() {
  const std::string path{kTiersName};
  PODQOS_ASSIGN(const auto mark, files_->read(std::string{kMarkName}));
  marked_ = dirty_ = mark.has_value();
  const auto text = files_->read(path);
  if (!text) return set_aside(path, text.error());
  if (!*text) {
    PODQOS_ASSIGN(const auto uids, pod_uids());
    dirty_ = dirty_ || !uids.empty();
    return {};
  }
  auto tiers = codec::parse_tiers(**text);
  if (!tiers) return set_aside(path, tiers.error());
  tiers_ = std::move(*tiers);
  stored_ = **text;
  return {};
}

bool Store::is_marked() {
  const auto mark = files_->read(std::string{kMarkName});
  return !mark || *mark;
}

Status Store::begin() {
  if (marked_) return {};
  PODQOS_TRY(files_->write(std::string{kMarkName}, ""));
  marked_ = true;
  return {};
}

Status Store::checkpoint() {
  PODQOS_TRY(begin());
  return write_tiers();
}

Status Store::commit() {
  const bool uncertain = dirty_ || keep_mark_;
  if (uncertain) PODQOS_TRY(begin());
  PODQOS_TRY(write_tiers());
  dirty_ = uncertain;
  if (uncertain || !marked_) return {};
  PODQOS_TRY(files_->remove(std::string{kMarkName}));
  marked_ = false;
  return {};
}

Status Store::write_tiers() {
  std::string text = codec::format_tiers(tiers_);
  if (text == stored_) return {};
  PODQOS_TRY(check_text(full(kTiersName), text));
  PODQOS_TRY(files_->write(std::string{kTiersName}, text));
  stored_ = std::move(text);
  return {};
}

Result<std::optional<core::PodRecord>> Store::pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  const std::string path = record_path(uid);
  const auto text = files_->read(path);
  if (text && !*text) return std::nullopt;
  auto record = text ? codec::parse_pod_record(**text) : fail(text.error());
  if (record && record->pod.uid != uid)
    record = fail(ErrorCode::kCorrupt,
                  cat("holds the record of pod \"", printable(record->pod.uid), "\""));
  if (record) return std::optional{std::move(*record)};
  PODQOS_TRY(set_aside(path, record.error()));
  return std::nullopt;
}

Status Store::put_pod(const core::PodRecord& record) {
  const std::string& uid = record.pod.uid;
  const std::string text = codec::format_pod_record(record);
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(check_text(cat("record of pod ", uid), text));
  PODQOS_TRY(begin());
  return files_->write(record_path(uid), text);
}

Status Store::erase_pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(begin());
  return files_->remove(record_path(uid));
}

Result<std::vector<std::string>> Store::pod_uids() {
  PODQOS_ASSIGN(auto names, list(kPodsName));
  std::vector<std::string> uids;
  for (std::string& name : names) {
    if (!name.ends_with(kRecordSuffix)) continue;
    name.resize(name.size() - kRecordSuffix.size());
    if (core::check_pod_uid(name)) uids.push_back(std::move(name));
  }
  // Without the suffix, which has sorted "a.json" behind "a-b.json".
  std::ranges::sort(uids);
  return uids;
}

Result<std::vector<std::string>> Store::uids_with(std::string_view id) {
  return uids_at(index_name(id));
}

Status Store::put_entry(const IndexEntry& entry) {
  PODQOS_ASSIGN(auto uids, uids_at(entry.name));
  if (std::ranges::find(uids, entry.uid) != uids.end()) return {};
  uids.push_back(entry.uid);
  return write_uids(entry.name, uids);
}

Status Store::erase_entry(const IndexEntry& entry) {
  PODQOS_ASSIGN(auto uids, uids_at(entry.name));
  return std::erase(uids, entry.uid) == 0 ? Status{} : write_uids(entry.name, uids);
}

Result<std::vector<IndexEntry>> Store::all_entries() {
  std::vector<IndexEntry> all;
  PODQOS_ASSIGN(const auto names, list(kContainersName));
  for (const std::string& name : names) {
    if (!is_index_name(name)) continue;
    PODQOS_ASSIGN(const auto uids, uids_at(name));
    for (const std::string& uid : uids)
      all.push_back({.name = name, .uid = uid});
  }
  return all;
}

Result<std::vector<std::string>> Store::list(std::string_view subdirectory) {
  PODQOS_ASSIGN(auto names, files_->list(subdirectory));
  std::erase_if(names, [&](const std::string& name) {
    return name.ends_with(sys::kTemporarySuffix) && files_->remove(cat(subdirectory, "/", name));
  });
  return names;
}

Result<std::vector<std::string>> Store::uids_at(const std::string& name) {
  if (const auto known = entries_.find(name); known != entries_.end()) return known->second;
  const std::string path = index_path(name);
  const auto target = files_->read(path);
  auto uids = target ? parse_uids(target->value_or("")) : fail(target.error());
  if (!uids) {
    PODQOS_TRY(set_aside(path, uids.error()));
    uids.emplace();
  }
  return entries_.emplace(name, *std::move(uids)).first->second;
}

Status Store::write_uids(const std::string& name, const std::vector<std::string>& uids) {
  PODQOS_TRY(begin());
  entries_.erase(name);
  std::string target;
  for (const std::string& uid : uids)
    target += cat(target.empty() ? "" : "/", uid);
  PODQOS_TRY(uids.empty() ? files_->remove(index_path(name))
                          : files_->write(index_path(name), target));
  entries_.emplace(name, uids);
  return {};
}

std::string Store::full(std::string_view path) const {
  const sys::Directory* const directory = files_->directory();
  return directory == nullptr ? std::string{path} : cat(directory->path(), "/", path);
}

Status Store::set_aside(const std::string& path, const Error& cause) {
  if (cause.code != ErrorCode::kCorrupt && cause.code != ErrorCode::kTooLarge)
    return fail(Error{cause}.with_context(full(path)));
  dirty_ = true;
  // Set the mark first: if the process dies after the rename, the sums still count the lost record.
  PODQOS_TRY(begin());
  PODQOS_ASSIGN(const auto aside, files_->set_aside(path));
  incidents_.push_back(cat(full(path), " is corrupt", aside.empty() ? "" : ", renamed to ", aside,
                           ": ", cause.message));
  return {};
}

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
