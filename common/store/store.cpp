#include "common/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/naming.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"
#include "common/sys/atomic_file.h"

namespace podqos::store {

namespace {

constexpr int kMaxSetAside = 1000;

bool is_corrupt(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kTooLarge;
}

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

template <class T>
Result<T> parsed(const Result<std::string>& text, Result<T> (*parse)(std::string_view)) {
  if (!text) return fail(text.error());
  return parse(*text);
}

std::string record_name(std::string_view uid) {
  return cat(uid, kRecordSuffix);
}

}  // namespace

Store::Store(sys::Directory directory, sys::FileLock lock)
    : directory_(std::move(directory)), lock_(std::move(lock)) {}

Result<Store> Store::open(const StoreOptions& options) {
  PODQOS_ASSIGN(auto directory, make_state_directory(options.path));
  return lock_directory(std::move(directory), options);
}

Result<Store> Store::open_existing(const StoreOptions& options) {
  PODQOS_ASSIGN(auto directory, open_state_directory(options.path));
  return lock_directory(std::move(directory), options);
}

Result<Store> Store::lock_directory(sys::Directory directory, const StoreOptions& options) {
  PODQOS_TRY(check_state_directory(directory));
  PODQOS_ASSIGN(auto lock, sys::FileLock::acquire(directory, kLockName, options.lock_timeout,
                                                  options.deadline, *options.clock));
  Store store{std::move(directory), std::move(lock)};
  PODQOS_TRY(store.load_tiers());
  return store;
}

Status Store::load_tiers() {
  struct stat found{};
  const bool marked = ::fstatat(directory_.fd(), kMarkName, &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (!marked && errno != ENOENT) return fail_errno(errno, cat(directory_.path(), "/", kMarkName));
  marked_ = dirty_ = marked;
  const auto text = directory_.read_file(kTiersName, codec::kMaxRecordSize);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    PODQOS_ASSIGN(const auto uids, pod_uids());
    dirty_ = dirty_ || !uids.empty();
    return {};
  }
  auto tiers = parsed(text, codec::parse_tiers);
  if (tiers) {
    tiers_ = std::move(*tiers);
    return {};
  }
  if (is_corrupt(tiers.error()))
    return set_aside(directory_, std::string{kTiersName}, tiers.error());
  return fail(std::move(tiers).error().with_context(cat(directory_.path(), "/", kTiersName)));
}

Status Store::begin() {
  return marked_ ? Status{} : set_mark();
}

Status Store::set_mark() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const sys::UniqueFd mark{::openat(directory_.fd(), kMarkName, kFlags, 0600)};
  if (!mark.valid()) return fail_errno(errno, cat("create ", directory_.path(), "/", kMarkName));
  marked_ = true;
  return {};
}

Status Store::checkpoint() {
  PODQOS_TRY(begin());
  return write_tiers();
}

Status Store::commit() {
  const bool uncertain = dirty_ || keep_mark_;
  if (uncertain) {
    PODQOS_TRY(begin());
  }
  PODQOS_TRY(write_tiers());
  dirty_ = uncertain;
  if (uncertain || !marked_) return {};
  PODQOS_TRY(directory_.remove_file(kMarkName));
  marked_ = false;
  return {};
}

Status Store::write_tiers() {
  const std::string text = codec::format_tiers(tiers_);
  PODQOS_TRY(check_text(cat(directory_.path(), "/", kTiersName), text));
  return sys::replace_file(directory_, kTiersName, text);
}

Result<std::optional<core::PodRecord>> Store::pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_ASSIGN(const auto pods, find(pods_, kPodsName));
  if (pods == nullptr) return std::nullopt;

  const std::string name = record_name(uid);
  const auto text = pods->read_file(name, codec::kMaxRecordSize);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  auto record = parsed(text, codec::parse_pod_record);
  if (record && record->pod.uid != uid) {
    record = fail(ErrorCode::kCorrupt,
                  cat("holds the record of pod \"", printable(record->pod.uid), "\""));
  }
  if (record) return std::optional{std::move(*record)};
  if (!is_corrupt(record.error())) {
    return fail(std::move(record).error().with_context(cat(pods->path(), "/", name)));
  }
  PODQOS_TRY(set_aside(*pods, name, record.error()));
  return std::nullopt;
}

Status Store::put_pod(const core::PodRecord& record) {
  const std::string& uid = record.pod.uid;
  const std::string text = codec::format_pod_record(record);
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(check_text(cat("record of pod ", uid), text));
  PODQOS_TRY(begin());
  PODQOS_ASSIGN(const auto pods, find_or_make(pods_, kPodsName));
  return sys::replace_file(*pods, record_name(uid), text);
}

Status Store::erase_pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(begin());
  PODQOS_ASSIGN(const auto pods, find(pods_, kPodsName));
  if (pods == nullptr) return {};
  PODQOS_TRY(pods->remove_file(record_name(uid)));
  return {};
}

Result<std::vector<std::string>> Store::pod_uids() {
  PODQOS_ASSIGN(const auto pods, find(pods_, kPodsName));
  std::vector<std::string> uids;
  if (pods == nullptr) return uids;
  PODQOS_ASSIGN(auto names, pods->entries());
  for (std::string& name : names) {
    sys::remove_leftover(*pods, name);
    if (!name.ends_with(kRecordSuffix)) continue;
    name.resize(name.size() - kRecordSuffix.size());
    if (core::check_pod_uid(name)) uids.push_back(std::move(name));
  }
  std::ranges::sort(uids);
  return uids;
}

Result<std::vector<std::string>> Store::uids_with(std::string_view id) {
  return uids_at(index_name(id));
}

Status Store::put_entry(const IndexEntry& entry) {
  PODQOS_TRY(begin());
  PODQOS_ASSIGN(const auto index, find_or_make(containers_, kContainersName));
  auto added = add_entry(*index, entry);
  if (added || added.error().code != ErrorCode::kCorrupt) return added;
  PODQOS_TRY(set_aside(*index, entry.name, added.error()));
  return add_entry(*index, entry);
}

Status Store::erase_entry(const IndexEntry& entry) {
  PODQOS_ASSIGN(auto uids, uids_at(entry.name));
  if (std::erase(uids, entry.uid) == 0) return {};
  PODQOS_TRY(begin());
  PODQOS_ASSIGN(const auto index, find(containers_, kContainersName));
  return write_entries(*index, entry.name, uids);
}

Result<std::vector<IndexEntry>> Store::all_entries() {
  PODQOS_ASSIGN(const auto index, find(containers_, kContainersName));
  std::vector<IndexEntry> all;
  if (index == nullptr) return all;
  PODQOS_ASSIGN(auto names, index->entries());
  std::ranges::sort(names);
  for (const std::string& name : names) {
    sys::remove_leftover(*index, name);
    if (!is_index_name(name)) continue;
    PODQOS_ASSIGN(const auto uids, uids_at(name));
    for (const std::string& uid : uids)
      all.push_back({.name = name, .uid = uid});
  }
  return all;
}

Result<std::vector<std::string>> Store::uids_at(const std::string& name) {
  PODQOS_ASSIGN(const auto index, find(containers_, kContainersName));
  if (index == nullptr) return std::vector<std::string>{};
  auto uids = read_entries(*index, name);
  if (uids) return uids;
  if (!is_corrupt(uids.error()))
    return fail(std::move(uids).error().with_context(cat(index->path(), "/", name)));
  PODQOS_TRY(set_aside(*index, name, uids.error()));
  return std::vector<std::string>{};
}

Result<const sys::Directory*> Store::find(OptionalDirectory& slot, std::string_view name) {
  if (!slot) {
    auto opened = directory_.open_directory(name);
    if (!opened && opened.error().code == ErrorCode::kNotFound) return nullptr;
    if (!opened) return fail(std::move(opened).error());
    slot = std::move(*opened);
  }
  return &*slot;
}

Result<const sys::Directory*> Store::find_or_make(OptionalDirectory& slot, std::string_view name) {
  auto found = find(slot, name);
  if (!found || *found != nullptr) return found;
  PODQOS_TRY(directory_.make_directory(name, kDirectoryMode));
  PODQOS_ASSIGN(auto opened, directory_.open_directory(name));
  slot = std::move(opened);
  return &*slot;
}

Status Store::set_aside(const sys::Directory& directory, const std::string& name,
                        const Error& cause) {
  dirty_ = true;
  // Set the mark first: if the process dies after the rename, the sums still count the lost record.
  PODQOS_TRY(begin());
  for (int n = 1; n <= kMaxSetAside; ++n) {
    const std::string aside = cat(name, ".corrupt-", n);
    if (::renameat2(directory.fd(), name.c_str(), directory.fd(), aside.c_str(),
                    RENAME_NOREPLACE) == 0) {
      incidents_.push_back(
          cat(directory.path(), "/", name, " is corrupt, renamed to ", aside, ": ", cause.message));
      return {};
    }
    if (const int err = errno; err != EEXIST) {
      return fail_errno(err, cat("rename corrupt ", directory.path(), "/", name, " to ", aside));
    }
  }
  return fail(ErrorCode::kBusy,
              cat(directory.path(), "/", name, " is corrupt, and ", kMaxSetAside,
                  " corrupt files of that name are kept already; remove ", name, ".corrupt-*"));
}

}  // namespace podqos::store
