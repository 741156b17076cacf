#include "common/store/unlocked_state.h"

#include <cerrno>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/naming.h"
#include "common/store/container_index.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"

namespace podqos::store {

namespace {

std::string record_path(std::string_view uid) {
  return cat(kPodsName, "/", uid, kRecordSuffix);
}

/// Whether the index may have an entry for the id. True also if the index cannot be read.
bool may_be_indexed(const std::string& index, std::string_view id, int directory = AT_FDCWD) {
  if (stamp_of(cat(index, "/", index_name(id)), directory)) return true;
  return errno != ENOENT || !stamp_of(index, directory);
}

}  // namespace

Result<std::optional<UnlockedState>> UnlockedState::open(const std::string& path) {
  auto directory = open_state_directory(path);
  if (!directory) {
    if (directory.error().code == ErrorCode::kNotFound) return std::nullopt;
    return fail(std::move(directory).error());
  }
  PODQOS_TRY(check_state_directory(*directory));
  UnlockedState state{std::move(*directory)};
  // Taken before the file is read, so that is_current() notices a change in between.
  state.stamp_ = stamp_of(state.tiers_path());
  const auto text = state.directory_.read_file(kTiersName, codec::kMaxRecordSize);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    // Records without tiers.json: it was lost, and the next transaction recomputes it.
    const auto pods = state.directory_.open_directory(kPodsName);
    const auto records = pods ? pods->entries() : fail(pods.error());
    state.interrupted_ = records && !records->empty();
    return state;
  }
  if (!text) return fail(text.error());
  auto tiers = codec::parse_tiers(*text);
  if (!tiers) return fail(std::move(tiers).error().with_context(state.tiers_path()));
  state.tiers_ = std::move(tiers->record);
  state.interrupted_ = tiers->dirty;
  return state;
}

std::string UnlockedState::tiers_path() const {
  return cat(directory_.path(), "/", kTiersName);
}

bool UnlockedState::is_current() const {
  return stamp_of(tiers_path()) == stamp_;
}

std::optional<Stamp> UnlockedState::stamp_of_pod(std::string_view uid) const {
  if (!core::check_pod_uid(uid)) return std::nullopt;
  return stamp_of(record_path(uid), directory_.fd());
}

Result<std::optional<core::PodRecord>> UnlockedState::pod(std::string_view uid) const {
  PODQOS_TRY(core::check_pod_uid(uid));
  const std::string name = record_path(uid);
  const auto text = directory_.read_file(name, codec::kMaxRecordSize);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!text) return fail(text.error());
  auto record = codec::parse_pod_record(*text);
  if (!record)
    return fail(std::move(record).error().with_context(cat(directory_.path(), "/", name)));
  if (record->pod.uid != uid) {
    return fail(ErrorCode::kCorrupt,
                cat(directory_.path(), "/", name, " holds the record of pod \"",
                    printable(record->pod.uid), "\""));
  }
  return std::optional{std::move(*record)};
}

bool UnlockedState::may_involve(std::string_view id) const {
  // A transaction sets the mark before it writes the entry, so the mark is checked second.
  return may_be_indexed(std::string{kContainersName}, id, directory_.fd()) || interrupted_ ||
         !is_current();
}

bool may_involve(const std::string& state_dir, std::string_view id) {
  if (may_be_indexed(cat(state_dir, "/", kContainersName), id)) return true;
  const auto state = UnlockedState::open(state_dir);
  return !state || !*state || (*state)->interrupted();
}

}  // namespace podqos::store
