#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/store/store.h"

namespace podqos::app {

/// What a state directory holds.
struct FakeRecords {
  core::TiersRecord tiers;
  bool dirty = false;                                    ///< the mark
  std::map<std::string, std::string, std::less<>> pods;  ///< text of a pod's record by uid
  std::vector<store::IndexEntry> index;
  friend bool operator==(const FakeRecords&, const FakeRecords&) = default;
};

/// The files of such a directory.
class FakeFiles final : public store::StateFiles {
 public:
  /// @param on_change  called before each change, which is not made if that fails
  /// @param state  where events are recorded; nullptr: nowhere
  FakeFiles(FakeRecords& records, std::function<Status()> on_change,
            const sys::Directory* state = nullptr)
      : records_(&records), on_change_(std::move(on_change)), state_(state) {}

  Result<std::optional<std::string>> read(const std::string& path) override {
    if (path == store::kMarkName)
      return records_->dirty ? std::optional<std::string>{""} : std::nullopt;
    if (path == store::kTiersName) return codec::format_tiers(records_->tiers);
    if (parent_of(path) == store::kPodsName) {
      const auto found = records_->pods.find(uid_of(path));
      return found == records_->pods.end() ? std::nullopt : std::optional{found->second};
    }
    std::string uids;
    for (const auto& [name, uid] : records_->index)
      if (name == leaf_of(path)) uids += cat(uids.empty() ? "" : "/", uid);
    return uids.empty() ? std::nullopt : std::optional{uids};
  }
  Status write(const std::string& path, std::string_view content) override {
    return change(path, std::string{content});
  }
  Status remove(const std::string& path) override { return change(path, std::nullopt); }
  Result<std::string> set_aside(const std::string& path) override {
    PODQOS_TRY(remove(path));
    return "";
  }
  Result<std::vector<std::string>> list(std::string_view subdirectory) override {
    std::vector<std::string> names;
    if (subdirectory == store::kPodsName) {
      for (const auto& [uid, text] : records_->pods)
        names.push_back(cat(uid, store::kRecordSuffix));
    } else {
      for (const store::IndexEntry& entry : records_->index)
        names.push_back(entry.name);
    }
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return names;
  }
  [[nodiscard]] const sys::Directory* directory() const override { return state_; }

 private:
  static std::string uid_of(std::string_view path) {
    const std::string_view name = leaf_of(path);
    return std::string{name.substr(0, name.size() - store::kRecordSuffix.size())};
  }

  Status change(const std::string& path, std::optional<std::string> content) {
    if (*read(path) == content) return {};
    PODQOS_TRY(on_change_());
    if (path == store::kMarkName) {
      records_->dirty = content.has_value();
    } else if (path == store::kTiersName) {
      PODQOS_ASSIGN(records_->tiers, codec::parse_tiers(*content));
    } else if (parent_of(path) == store::kPodsName) {
      records_->pods.erase(uid_of(path));
      if (content) records_->pods.emplace(uid_of(path), std::move(*content));
    } else {
      const std::string name{leaf_of(path)};
      std::erase_if(records_->index, [&](const auto& entry) { return entry.name == name; });
      for (const std::string& uid : parts_of(content.value_or(""), '/'))
        records_->index.push_back({.name = name, .uid = uid});
    }
    return {};
  }

  FakeRecords* records_;
  std::function<Status()> on_change_;
  const sys::Directory* state_;
};

}  // namespace podqos::app
