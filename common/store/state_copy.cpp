#include "common/store/state_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/naming.h"
#include "common/store/container_index.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"

namespace podqos::store {

namespace {

/// Records that are read without the lock: others wait for the process that does it.
constexpr std::size_t kMaxUnlocked = 4096;

bool exists(const sys::Directory& directory, const char* name) {
  struct stat found{};
  return ::fstatat(directory.fd(), name, &found, AT_SYMLINK_NOFOLLOW) == 0;
}

/// Who reads.
enum class Reader : std::uint8_t {
  kLocked,    ///< all of it, no transaction in between
  kUnlocked,  ///< what figures need; a record that cannot be read is counted
};

/// Reads one state directory into a copy.
class Copying {
 public:
  Copying(const sys::Directory& directory, StoredRecords& records, Reader reader)
      : directory_(directory), records_(records), reader_(reader) {}

  Status run() {
    note_mark();
    PODQOS_TRY(each_file(kPodsName, [this](const sys::Directory& pods, const std::string& name) {
      return copy_pod(pods, name);
    }));
    if (reader_ == Reader::kLocked) {
      PODQOS_TRY(each_file(kContainersName,
                           [this](const sys::Directory& containers, const std::string& name) {
                             return copy_index(containers, name);
                           }));
    }
    PODQOS_TRY(copy_tiers());
    note_mark();
    return {};
  }

 private:
  template <class Copy>
  Status each_file(std::string_view subdirectory, Copy copy) {
    auto opened = directory_.open_directory(subdirectory);
    if (!opened && opened.error().code == ErrorCode::kNotFound) return {};
    if (!opened) return fail(std::move(opened).error());
    PODQOS_ASSIGN(auto names, opened->entries());
    if (reader_ == Reader::kUnlocked && names.size() > kMaxUnlocked) {
      return fail(ErrorCode::kTooLarge, cat(opened->path(), ": ", names.size(), " files, at most ",
                                            kMaxUnlocked, " are read"));
    }
    for (const std::string& name : names) {
      PODQOS_TRY(copy(*opened, name));
    }
    return {};
  }

  void note_mark() { records_.dirty = records_.dirty || exists(directory_, kMarkName); }

  Status copy_pod(const sys::Directory& pods, const std::string& name) {
    if (!name.ends_with(kRecordSuffix)) return {};
    const std::string uid = name.substr(0, name.size() - kRecordSuffix.size());
    if (!core::check_pod_uid(uid)) return {};
    auto text = pods.read_file(name, codec::kMaxRecordSize);
    const bool gone = !text && text.error().code == ErrorCode::kNotFound;
    if (!text && !gone && reader_ == Reader::kUnlocked) {
      ++records_.unreadable;
      return {};
    }
    if (!text) return note(pods, name, std::move(text).error());
    records_.pods.emplace(uid, std::move(*text));
    return {};
  }

  Status copy_index(const sys::Directory& containers, const std::string& name) {
    if (!is_index_name(name)) return {};
    auto uids = read_entries(containers, name);
    if (!uids) return note(containers, name, std::move(uids).error());
    for (std::string& uid : *uids)
      records_.index.push_back({.name = name, .uid = std::move(uid)});
    return {};
  }

  Status copy_tiers() {
    const auto text = directory_.read_file(kTiersName, codec::kMaxRecordSize);
    if (!text && text.error().code == ErrorCode::kNotFound) {
      records_.dirty = records_.dirty || !records_.pods.empty();
      return {};
    }
    if (!text) return note(directory_, std::string{kTiersName}, text.error());
    auto tiers = codec::parse_tiers(*text);
    if (!tiers) return note(directory_, std::string{kTiersName}, std::move(tiers).error());
    records_.tiers = std::move(*tiers);
    return {};
  }

  /// Notes a corrupt file, whose content counts as lost.
  Status note(const sys::Directory& directory, const std::string& name, Error error) {
    // Removed since the directory was listed: without a lock a transaction may be in progress.
    if (error.code == ErrorCode::kNotFound) return {};
    const bool corrupt = error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kTooLarge;
    if (!corrupt || reader_ == Reader::kUnlocked)
      return fail(std::move(error).with_context(cat(directory.path(), "/", name)));
    records_.dirty = true;
    records_.incidents.push_back(cat(directory.path(), "/", name, " is corrupt: ", error.message));
    return {};
  }

  const sys::Directory& directory_;
  StoredRecords& records_;
  Reader reader_;
};

}  // namespace

Result<std::optional<StateCopy>> copy_state(const StoreOptions& options) {
  auto directory = open_state_directory(options.path);
  if (!directory && directory.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!directory) return fail(std::move(directory).error());
  PODQOS_TRY(check_state_directory(*directory));
  std::optional<StateCopy> copy{std::in_place};
  if (!is_read_only(options.path)) {
    PODQOS_ASSIGN(auto lock, sys::FileLock::acquire(*directory, kLockName, options.lock_timeout,
                                                    options.deadline, *options.clock));
    copy->lock = std::move(lock);
  }
  PODQOS_TRY(Copying{*directory, copy->records, Reader::kLocked}.run());
  return copy;
}

Result<std::optional<StoredRecords>> read_state(const std::string& path) {
  auto directory = open_state_directory(path);
  if (!directory && directory.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!directory) return fail(std::move(directory).error());
  PODQOS_TRY(check_state_directory(*directory));
  std::optional<StoredRecords> records{std::in_place};
  PODQOS_TRY(Copying{*directory, *records, Reader::kUnlocked}.run());
  return records;
}

bool may_involve(const std::string& state_dir, std::string_view id) {
  struct stat found{};
  const auto lacks = [&](const std::string& name) {
    return ::lstat(cat(state_dir, "/", name).c_str(), &found) != 0 && errno == ENOENT;
  };
  // An index that is lost tells of none, and tiers.json is missing where pods' sums are lost. The
  // entry is looked for again after the mark: a transaction may have written it in between.
  const std::string index{kContainersName};
  const std::string entry = cat(index, "/", index_name(id));
  return lacks(index) || !lacks(entry) || !lacks(kMarkName) || lacks(std::string{kTiersName}) ||
         !lacks(entry);
}

}  // namespace podqos::store
