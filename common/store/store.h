#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/record_store.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "common/sys/file_lock.h"

namespace podqos::store {

/// How to open a Store.
struct StoreOptions {
  std::string path = "/run/podqos";              ///< the state directory
  std::chrono::milliseconds lock_timeout{5000};  ///< per lock holder, see sys::FileLock
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  ///< for the whole wait for the lock
  const sys::Clock* clock = &sys::kSteadyClock;      ///< never null
};

/// The shared state of all podqos processes: <path>/{lock, dirty, tiers.json, pods/<uid>.json,
/// containers/<hash>}; `dirty` is the mark. An object of this class holds the exclusive lock as
/// long as it lives.
class Store final : public RecordStore {
 public:
  /// Creates the state directory if it is missing (mode 0700; its parent must exist), takes the
  /// lock and reads tiers.json.
  /// @return kConflict if the state directory or a file in it is a symlink, or if the directory
  ///         fails check_state_directory(); kTimeout if the lock is not free in time; kUnsupported
  ///         for a tiers.json of a newer version, which is left unchanged.
  static Result<Store> open(const StoreOptions& options);
  /// Like open(), but fails with kNotFound if the state directory is missing.
  static Result<Store> open_existing(const StoreOptions& options);

  /// As read by open(). A corrupt tiers.json is renamed.
  [[nodiscard]] core::TiersRecord& tiers() override { return tiers_; }
  [[nodiscard]] bool dirty() const override { return dirty_; }

  [[nodiscard]] Status begin() override;
  void keep_mark() override { keep_mark_ = true; }
  void recomputed() override { dirty_ = keep_mark_ = false; }
  [[nodiscard]] Status commit() override;
  [[nodiscard]] Status checkpoint() override;

  /// A corrupt record is renamed to <uid>.json.corrupt-<n>, which overwrites no earlier one.
  [[nodiscard]] Result<std::optional<core::PodRecord>> pod(std::string_view uid) override;
  [[nodiscard]] Status put_pod(const core::PodRecord& record) override;
  [[nodiscard]] Status erase_pod(std::string_view uid) override;
  [[nodiscard]] Result<std::vector<std::string>> pod_uids() override;

  [[nodiscard]] Result<std::vector<std::string>> uids_with(std::string_view id) override;
  [[nodiscard]] Status put_entry(const IndexEntry& entry) override;
  [[nodiscard]] Status erase_entry(const IndexEntry& entry) override;
  [[nodiscard]] Result<std::vector<IndexEntry>> all_entries() override;

  [[nodiscard]] const std::vector<std::string>& incidents() const override { return incidents_; }

 private:
  using OptionalDirectory = std::optional<sys::Directory>;

  Store(sys::Directory directory, sys::FileLock lock);

  static Result<Store> lock_directory(sys::Directory directory, const StoreOptions& options);
  Status load_tiers();
  [[nodiscard]] Status write_tiers();
  [[nodiscard]] Status set_mark();

  /// Opens the subdirectory once; nullptr while it does not exist.
  Result<const sys::Directory*> find(OptionalDirectory& slot, std::string_view name);
  Result<const sys::Directory*> find_or_make(OptionalDirectory& slot, std::string_view name);

  /// The uids of a name of the index; a corrupt file is set aside.
  Result<std::vector<std::string>> uids_at(const std::string& name);
  /// Renames a corrupt file and marks the sums as dirty, in memory and on disk.
  Status set_aside(const sys::Directory& directory, const std::string& name, const Error& cause);

  sys::Directory directory_;
  sys::FileLock lock_;
  OptionalDirectory pods_;
  OptionalDirectory containers_;
  core::TiersRecord tiers_;
  bool dirty_ = false;
  bool marked_ = false;     ///< the mark is set
  bool keep_mark_ = false;  ///< keep_mark() was called
  std::vector<std::string> incidents_;
};

}  // namespace podqos::store
