#include "common/store/glance.h"

#include <fcntl.h>

#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/core/naming.h"
#include "common/store/state_directory.h"
#include "common/store/state_files.h"

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

PodGlance glance_at(const core::PodRecord& record) {
  return {.cgroup = record.cgroup,
          .qos_class = record.qos_class,
          .adopted = record.adopted,
          .released = record.released_at.has_value(),
          .requests = record.adopted ? record.claimed : record.granted};
}

}  // namespace

Result<std::optional<StateGlance>> Glance::look() {
  const auto directory = open_state_directory(path_);
  if (!directory) {
    known_.clear();
    if (is_missing(directory.error())) return std::nullopt;
    return fail(directory.error());
  }
  if (auto owner = check_state_directory(*directory); !owner) return fail(std::move(owner).error());
  StateGlance state;
  const auto text = directory->read_file(kTiersName, codec::kMaxRecordSize);
  if (!text && !is_missing(text.error())) return fail(text.error());
  if (text) {
    auto tiers = codec::parse_tiers(*text);
    if (!tiers) return fail(std::move(tiers).error().with_context(cat(path_, "/", kTiersName)));
    state.tiers = std::move(tiers->record);
    state.interrupted = tiers->dirty;
  }
  if (auto read = read_pods(*directory); !read) return fail(std::move(read).error());
  for (const auto& [name, known] : known_) {
    if (known.pod)
      state.pods.push_back(*known.pod);
    else
      ++state.unreadable;
  }
  return state;
}

Status Glance::read_pods(const sys::Directory& state) {
  const auto pods = state.open_directory(kPodsName);
  std::map<std::string, Known> seen;
  if (pods) {
    const auto names = pods->entries();
    if (!names) return fail(names.error());
    if (names->size() > kMaxPods)
      return fail(ErrorCode::kTooLarge, cat(path_, "/", kPodsName, ": ", names->size(),
                                            " files, at most ", kMaxPods, " are looked at"));
    reads_ = 0;
    for (const std::string& name : *names)
      if (is_record_name(name)) read_pod(*pods, name, seen);
  } else if (!is_missing(pods.error())) {
    return fail(pods.error());
  }
  known_ = std::move(seen);
  if (reads_ > kMaxReads)
    return fail(ErrorCode::kBusy, cat(path_, "/", kPodsName, ": ", reads_ - kMaxReads,
                                      " records are left to the next look"));
  return {};
}

void Glance::read_pod(const sys::Directory& pods, const std::string& name,
                      std::map<std::string, Known>& seen) {
  struct stat found{};
  // A pod that has just been released is none.
  if (::fstatat(pods.fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  const Stamp stamp{
      .inode = found.st_ino, .seconds = found.st_mtim.tv_sec, .nanoseconds = found.st_mtim.tv_nsec};
  const auto before = known_.find(name);
  if (before != known_.end() && before->second.stamp == stamp) {
    seen.insert(known_.extract(before));
    return;
  }
  if (++reads_ > kMaxReads) return;
  const auto text = pods.read_file(name, codec::kMaxRecordSize);
  if (!text && is_missing(text.error())) return;
  const auto record = text ? codec::parse_pod_record(*text) : fail(text.error());
  seen.emplace(name, Known{.stamp = stamp,
                           .pod = record ? std::optional{glance_at(*record)} : std::nullopt});
}

}  // namespace podqos::store
