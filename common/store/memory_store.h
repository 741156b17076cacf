#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/store/record_store.h"

namespace podqos::store {

/// Stored records: what a state directory holds.
struct StoredRecords {
  core::TiersRecord tiers;
  bool dirty = false;                                    ///< the mark; see RecordStore
  std::map<std::string, std::string, std::less<>> pods;  ///< text of a pod's record by uid
  std::vector<IndexEntry> index;
  std::vector<std::string> incidents = {};  ///< what of it was corrupt, one sentence each
  std::size_t unreadable = 0;               ///< records that read_state() has skipped
};

/// Records in memory: for a dry run on a copy of the state directory, and for unit tests.
class MemoryStore final : public RecordStore {
 public:
  /// A change of what is stored.
  struct Change {
    enum class What : std::uint8_t {
      kMark,   ///< the mark is set
      kTiers,  ///< the tiers' record is saved, and the mark set or cleared
      kPod,    ///< a pod's record
      kEntry,  ///< an index entry
    };
    What what = What::kMark;
    std::string_view subject = {};  ///< the pod's uid
    bool erased = false;
  };
  /// Called before each change. If it returns an error, the change is not made, and the function
  /// that makes it returns that error.
  using OnChange = std::function<Status(const Change& change)>;

  /// @param stored  changed in place; it has to outlive this object
  MemoryStore(StoredRecords& stored, OnChange on_change);

  [[nodiscard]] core::TiersRecord& tiers() override { return tiers_; }
  [[nodiscard]] bool dirty() const override { return dirty_; }

  [[nodiscard]] Status begin() override;
  void keep_mark() override { keep_mark_ = true; }
  void recomputed() override { dirty_ = keep_mark_ = false; }
  [[nodiscard]] Status commit() override;
  [[nodiscard]] Status checkpoint() override;

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
  [[nodiscard]] Status write_tiers(bool marked);

  StoredRecords* stored_;
  OnChange on_change_;
  core::TiersRecord tiers_;
  std::vector<std::string> incidents_;
  bool dirty_ = false;
  bool keep_mark_ = false;
};

}  // namespace podqos::store
