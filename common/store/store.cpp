#include "common/store/store.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/record_json.h"
#include "common/codec/rows.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/counting.h"
#include "common/store/dry_run_files.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"
#include "common/sys/atomic_file.h"

namespace podqos::store {

namespace {

/// As podqos before it had rows: the sums and lists of node.json, and that a transaction was not
/// finished.
constexpr std::string_view kFormerName = "tiers.json";
constexpr std::string_view kFormerMark = "dirty";

/// Never writes what pod() or load_node() would refuse.
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
  PODQOS_TRY(store.load_rows());
  PODQOS_TRY(store.load_node());
  core::sum_up(store.node_);
  return store;
}

Status Store::load_node() {
  std::string path{kNodeName};
  auto text = files_->read(path);
  // As podqos before it had rows, whose lists and sums are not read.
  if (text && !*text) {
    path = kFormerName;
    text = files_->read(path);
  }
  if (!text) return set_aside(path, text.error());
  if (!*text) return {};
  auto node = codec::parse_node(**text);
  if (!node) return set_aside(path, node.error());
  node->rows = std::move(node_.rows);
  node_ = std::move(*node);
  if (path == kNodeName) stored_ = **text;
  return {};
}

Status Store::load_rows() {
  PODQOS_ASSIGN(const auto bytes, files_->read_rows());
  auto found = codec::parse_rows(bytes);
  if (!found) return make_rows();
  head_ = codec::format_rows_head(found->is_whole, found->rows.size());
  dirty_ = dirty_ || !found->is_whole;
  for (std::size_t place = 0; place < found->rows.size(); ++place) {
    const core::PodRow& row = found->rows[place];
    (row.uid.empty() ? free_ : places_).push_back(place);
    if (row.being_changed != 0) interrupted_.emplace_back(row.uid.view());
  }
  std::erase_if(found->rows, [](const core::PodRow& row) { return row.uid.empty(); });
  node_.rows = std::move(found->rows);
  return {};
}

Status Store::make_rows() {
  PODQOS_ASSIGN(const auto uids, pod_uids());
  is_file_lost_ = true;
  for (const std::string& uid : uids) {
    const auto record = pod(uid);
    // What cannot be read now, as of a newer release, counts for nothing.
    if (record && *record) add_row(uid) = core::row_of(**record);
  }
  dirty_ = dirty_ || !uids.empty();
  return {};
}

bool Store::is_marked() {
  const auto bytes = files_->read_rows();
  const auto found = bytes ? codec::parse_rows(*bytes) : std::nullopt;
  return found &&
         (!found->is_whole || std::ranges::any_of(found->rows, &core::PodRow::being_changed));
}

core::PodRow& Store::add_row(std::string_view uid) {
  if (const auto before = dropped_.extract(std::string{uid}); !before.empty()) {
    places_.push_back(before.mapped());
  } else {
    if (free_.empty()) free_.push_back(places_.size() + dropped_.size());
    places_.push_back(free_.back());
    free_.pop_back();
  }
  return node_.rows.emplace_back(core::PodRow{.uid = uid});
}

Status Store::write_row(std::size_t place, const core::PodRow& row) {
  if (is_file_lost_) return write_rows();
  PODQOS_TRY(files_->write_rows((place + 1) * codec::kRowSize, codec::format_row(row)));
  return write_head();
}

Status Store::write_rows() {
  std::string bytes = codec::format_rows_head(!dirty_, node_.rows.size());
  std::string head = bytes;
  free_.clear();
  dropped_.clear();
  for (std::size_t at = 0; at < node_.rows.size(); ++at) {
    places_[at] = at;
    bytes += codec::format_row(node_.rows[at]);
  }
  PODQOS_TRY(files_->write(std::string{kRowsName}, bytes));
  head_ = std::move(head);
  is_file_lost_ = false;
  return {};
}

Status Store::write_head() {
  std::string head =
      codec::format_rows_head(!dirty_, places_.size() + free_.size() + dropped_.size());
  if (head == head_) return {};
  if (is_file_lost_) return write_rows();
  PODQOS_TRY(files_->write_rows(0, head));
  head_ = std::move(head);
  return {};
}

Status Store::begin(std::string_view uid) {
  core::PodRow* row = find(uid);
  const bool is_new = row == nullptr;
  const std::size_t size = places_.size() + free_.size() + dropped_.size();
  if (is_new) row = &add_row(uid);
  row->being_changed = 1;
  if (begun_.contains(uid)) return {};
  auto done = write_row(place_of(*row), *row);
  if (done) begun_.emplace(uid);
  if (!done && is_new) {
    if (places_.back() < size) free_.push_back(places_.back());
    places_.pop_back();
    node_.rows.pop_back();
  }
  return done;
}

Status Store::begin_comparison() {
  dirty_ = true;
  return write_head();
}

Status Store::commit() {
  PODQOS_TRY(write_node());
  for (const std::string& name : std::exchange(shortened_, {}))
    PODQOS_TRY(write_uids(name, std::vector{entries_[name]}));
  for (const std::string& uid : std::exchange(unfinished_, {})) {
    PODQOS_TRY(begin(uid));
    begun_.erase(uid);
  }
  for (const std::string& uid : std::exchange(begun_, {})) {
    core::PodRow* row = find(uid);
    if (row == nullptr) continue;
    row->being_changed = 0;
    moved_.insert(uid);
  }
  PODQOS_TRY(write_changed());
  return places_.empty() && !dirty_ && head_.empty() ? Status{} : write_head();
}

Status Store::write_changed() {
  for (const std::string& uid : std::exchange(moved_, {})) {
    const core::PodRow* row = find(uid);
    if (row != nullptr) PODQOS_TRY(write_row(place_of(*row), *row));
  }
  for (const auto& [uid, place] : dropped_)
    free_.push_back(place);
  for (const auto& [uid, place] : std::exchange(dropped_, {}))
    PODQOS_TRY(write_row(place, {}));
  return {};
}

Status Store::write_node() {
  std::string text = codec::format_node(node_);
  if (text == stored_ || (stored_.empty() && text == codec::format_node({}))) return {};
  PODQOS_TRY(check_text(full(kNodeName), text));
  PODQOS_TRY(files_->write(std::string{kNodeName}, text));
  if (stored_.empty()) {
    for (const std::string_view former : {kFormerName, kFormerMark})
      PODQOS_TRY(files_->remove(std::string{former}));
  }
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

Status Store::put_pod(const core::PodRecord& record, const std::vector<std::string>& names) {
  const std::string& uid = record.pod.uid;
  const std::string& text = text_of(record);
  PODQOS_TRY(core::check_pod_uid(uid));
  PODQOS_TRY(check_text(cat("record of pod ", uid), text));
  PODQOS_TRY(begin(uid));
  for (const std::string& name : names)
    PODQOS_TRY(put_entry({.name = name, .uid = uid}));
  PODQOS_TRY(files_->write(record_path(uid), text));
  return put_row(record);
}

const std::string& Store::text_of(const core::PodRecord& record) {
  if (text_.empty() || printed_ != record) text_ = codec::format_pod_record(printed_ = record);
  return text_;
}

Status Store::put_row(const core::PodRecord& record) {
  core::PodRow row = core::row_of(record);
  row.being_changed = begun_.contains(record.pod.uid) ? 1 : 0;
  const core::PodRow* const before = find(record.pod.uid);
  if (before != nullptr && *before == row) return {};
  PODQOS_TRY(begin(record.pod.uid));
  row.being_changed = 1;
  *find(record.pod.uid) = row;
  core::sum_up(node_);
  return {};
}

void Store::postpone(std::string_view uid, BootSeconds due) {
  core::PodRow* row = find(uid);
  if (row == nullptr) return;
  row->due = due;
  moved_.emplace(uid);
}

Status Store::erase_pod(std::string_view uid) {
  PODQOS_TRY(core::check_pod_uid(uid));
  if (find(uid) != nullptr) PODQOS_TRY(begin(uid));
  PODQOS_TRY(files_->remove(record_path(uid)));
  return drop_row(uid);
}

Status Store::drop_row(std::string_view uid) {
  if (find(uid) == nullptr) return {};
  PODQOS_TRY(begin(uid));
  const auto at = find(uid) - node_.rows.data();
  dropped_.emplace(uid, places_[static_cast<std::size_t>(at)]);
  places_.erase(places_.begin() + at);
  node_.rows.erase(node_.rows.begin() + at);
  begun_.erase(begun_.find(uid));
  core::sum_up(node_);
  return {};
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
  if (std::erase(uids, entry.uid) == 0) return {};
  entries_.insert_or_assign(entry.name, std::move(uids));
  shortened_.insert(entry.name);
  return {};
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
  // First: the process may die after the rename.
  PODQOS_TRY(begin_comparison());
  PODQOS_ASSIGN(const auto aside, files_->set_aside(path));
  incidents_.push_back(cat(full(path), " is corrupt", aside.empty() ? "" : ", renamed to ", aside,
                           ": ", cause.message));
  return {};
}

}  // namespace podqos::store
