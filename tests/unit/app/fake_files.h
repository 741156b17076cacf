#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/codec/rows.h"
#include "common/core/pods/counting.h"
#include "common/store/store.h"

namespace podqos::app {

/// What a state directory holds.
struct FakeRecords {
  core::NodeState node;  ///< node.json and the rows
  /// Not all is as it should be: a pod is being changed, or records have been lost.
  bool dirty = false;
  std::map<std::string, std::string, std::less<>> pods;  ///< text of a pod's record by uid
  std::vector<store::IndexEntry> index;
  std::string rows;  ///< the file
  friend bool operator==(const FakeRecords& a, const FakeRecords& b) {
    return std::tie(a.node, a.dirty, a.pods, a.index) == std::tie(b.node, b.dirty, b.pods, b.index);
  }

  /// Uids of the pods of which a container is pending.
  [[nodiscard]] std::vector<std::string> pending() const {
    return uids([](const core::PodRow& row) { return row.is_pending != 0; });
  }
  /// Uids of the pods that a later transaction has to look at.
  [[nodiscard]] std::vector<std::string> due() const {
    return uids([](const core::PodRow& row) { return row.due != core::kNever; });
  }
  /// The time of those has come, of one after the other.
  void come_due() {
    std::set<std::int64_t> times;
    for (const core::PodRow& row : node.rows)
      if (row.due != core::kNever) times.insert(row.due.value());
    for (core::PodRow& row : node.rows)
      if (row.due != core::kNever)
        row.due = BootSeconds{std::distance(times.begin(), times.find(row.due.value()))};
    write_rows(!dirty);
  }
  /// Adds or replaces a row.
  void put(core::PodRow row) {
    std::erase_if(node.rows, [&](const core::PodRow& other) { return other.uid == row.uid; });
    node.rows.push_back(std::move(row));
    write_rows(!dirty);
  }
  /// Records may have been lost, as the file says.
  void lose_some() { write_rows(false); }
  /// What the file says.
  void read_rows() {
    auto found = codec::parse_rows(rows);
    if (!found) return;
    std::erase_if(found->rows, [](const core::PodRow& row) { return row.uid.empty(); });
    std::ranges::sort(found->rows, {}, [](const core::PodRow& row) { return row.uid.view(); });
    node.rows = std::move(found->rows);
    dirty = !found->is_whole || std::ranges::any_of(node.rows, &core::PodRow::being_changed);
    core::sum_up(node);
  }

 private:
  template <class Is>
  [[nodiscard]] std::vector<std::string> uids(const Is& is) const {
    std::vector<std::string> found;
    for (const core::PodRow& row : node.rows)
      if (is(row)) found.emplace_back(row.uid.view());
    return found;
  }
  void write_rows(bool is_whole) {
    rows = codec::format_rows_head(is_whole, node.rows.size());
    for (const core::PodRow& row : node.rows)
      rows += codec::format_row(row);
    read_rows();
  }
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
    if (path == store::kNodeName) return codec::format_node(records_->node);
    if (path == store::kRowsName) return records_->rows;
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
  Result<std::string> read_rows() override { return records_->rows; }
  Status write_rows(std::size_t offset, std::string_view bytes) override {
    if (records_->rows.substr(std::min(offset, records_->rows.size()), bytes.size()) == bytes)
      return {};
    PODQOS_TRY(on_change_());
    records_->rows.resize(std::max(records_->rows.size(), offset + bytes.size()));
    records_->rows.replace(offset, bytes.size(), bytes);
    records_->read_rows();
    return {};
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
  Status unlock() override { return {}; }
  [[nodiscard]] const sys::Directory* directory() const override { return state_; }

 private:
  static std::string uid_of(std::string_view path) {
    const std::string_view name = leaf_of(path);
    return std::string{name.substr(0, name.size() - store::kRecordSuffix.size())};
  }

  Status change(const std::string& path, std::optional<std::string> content) {
    if (*read(path) == content) return {};
    PODQOS_TRY(on_change_());
    if (path == store::kRowsName) {
      records_->rows = content.value_or("");
      records_->read_rows();
    } else if (path == store::kNodeName) {
      PODQOS_ASSIGN(records_->node, codec::parse_node(*content));
      records_->read_rows();
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
