#include "ctl/node/usage_sampler.h"

#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/store/state_directory.h"
#include "ctl/node/records.h"

namespace podqos::ctl {
namespace {

/// What changes with each change of the records: a record is replaced by a rename in its directory,
/// a row in its file.
std::string state_of_records(const core::Settings& settings) {
  std::string state;
  for (const std::string_view name : {"/pods", "/rows"}) {
    struct stat file{};
    if (::stat(cat(settings.state_dir, name).c_str(), &file) == 0)
      state += cat(file.st_dev, " ", file.st_ino, " ", file.st_mtim.tv_sec, ".",
                   file.st_mtim.tv_nsec, "\n");
  }
  return state;
}

}  // namespace

Result<UsageSampler> UsageSampler::open(const core::Settings& settings, std::size_t most_files) {
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open(
                                  {.access = cgroup::Access::kRead, .most_files = most_files}));
  return UsageSampler{settings, std::move(cgroups)};
}

Status UsageSampler::refresh() {
  std::string state = state_of_records(*settings_);
  const bool changed = state != seen_;
  // A second change within the same tick of the clock does not show: so once more the next time.
  if (!changed && !std::exchange(again_, false)) return {};
  again_ = changed;
  // The lock is for container starts, and what is read in the middle of one is read again.
  PODQOS_ASSIGN(auto records, read_records(*settings_, store::Opening::kReadUnlocked));
  find_engine_names(records);
  seen_ = std::move(state);
  known_ = entries_of(records);
  warnings_ = std::move(records.warnings);
  return {};
}

bool UsageSampler::read(UsageEntry& entry) {
  if (entry.cgroup.empty()) return false;
  const cgroup::CgroupView cgroup{cgroups_, entry.cgroup};
  const auto usage = cgroup::usage_of(cgroup);
  if (!usage) return false;
  if (entry.kind != EntryKind::kContainer) entry.limits = limits_in(cgroup);
  const auto before = before_.find(entry.cgroup);
  entry.usage =
      usage_between(before == before_.end() ? std::nullopt : std::optional{before->second}, *usage);
  now_.insert_or_assign(entry.cgroup, *usage);
  return true;
}

Result<UsageSample> UsageSampler::next() {
  PODQOS_TRY(refresh());
  const auto start = std::chrono::steady_clock::now();
  std::vector<UsageEntry> entries = known_;
  std::vector<bool> found(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i)
    found[i] = read(entries[i]);
  cgroups_.close_unread();
  before_ = std::exchange(now_, {});
  UsageSample sample{.entries = leave(std::move(entries), std::move(found))};
  add_sums(sample.entries, cgroups_.layout_without_hugepages().memory);
  if (last_)
    sample.interval_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(start - *last_).count();
  last_ = start;
  return sample;
}

}  // namespace podqos::ctl
