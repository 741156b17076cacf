#include "common/store/node_snapshot.h"

#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/naming.h"
#include "common/store/state_files.h"
#include "common/store/unlocked_state.h"

namespace podqos::store {

namespace {

bool is_missing(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

bool is_record_name(std::string_view name) {
  if (!name.ends_with(kRecordSuffix)) return false;
  name.remove_suffix(kRecordSuffix.size());
  return core::check_pod_uid(name).has_value();
}

PodSnapshot snapshot_of(const core::PodRecord& record) {
  return {.cgroup = record.cgroup,
          .qos_class = record.qos_class,
          .adopted = record.adopted,
          .released = record.released_at.has_value(),
          .requests = record.adopted ? record.claimed : record.granted};
}

}  // namespace

Result<std::optional<NodeSnapshot>> SnapshotReader::read() {
  PODQOS_ASSIGN(auto files, UnlockedState::open(path_));
  if (!files) {
    known_.clear();
    return std::nullopt;
  }
  NodeSnapshot state{
      .tiers = files->tiers(), .interrupted = files->interrupted(), .pods = {}, .unreadable = 0};
  PODQOS_TRY(read_pods(files->directory()));
  for (const auto& [name, known] : known_) {
    if (known.pod)
      state.pods.push_back(*known.pod);
    else
      ++state.unreadable;
  }
  return state;
}

Status SnapshotReader::read_pods(const sys::Directory& state) {
  const auto pods = state.open_directory(kPodsName);
  std::map<std::string, Known> seen;
  if (pods) {
    PODQOS_ASSIGN(const auto names, pods->entries());
    if (names.size() > kMaxPods)
      return fail(ErrorCode::kTooLarge, cat(path_, "/", kPodsName, ": ", names.size(),
                                            " files, at most ", kMaxPods, " are read"));
    reads_ = 0;
    for (const std::string& name : names)
      if (is_record_name(name)) read_pod(*pods, name, seen);
  } else if (!is_missing(pods.error())) {
    return fail(pods.error());
  }
  known_ = std::move(seen);
  if (reads_ > kMaxReads)
    return fail(ErrorCode::kBusy, cat(path_, "/", kPodsName, ": ", reads_ - kMaxReads,
                                      " new records are left for the next read"));
  return {};
}

void SnapshotReader::read_pod(const sys::Directory& pods, const std::string& name,
                              std::map<std::string, Known>& seen) {
  const auto stamp = stamp_of(name, pods.fd());
  // The pod was removed after its directory was listed.
  if (!stamp) return;
  const auto before = known_.find(name);
  if (before != known_.end() && before->second.stamp == *stamp) {
    seen.insert(known_.extract(before));
    return;
  }
  if (++reads_ > kMaxReads) return;
  const auto text = pods.read_file(name, codec::kMaxRecordSize);
  if (!text && is_missing(text.error())) return;
  const auto record = text ? codec::parse_pod_record(*text) : fail(text.error());
  seen.emplace(name, Known{.stamp = *stamp,
                           .pod = record ? std::optional{snapshot_of(*record)} : std::nullopt});
}

}  // namespace podqos::store
