#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/cgroup/cgroup_usage.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/settings.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {

/// Looks at the usage of all pods again and again. Reads each file of a cgroup once a look, and the
/// records, without the lock, only after they have changed.
class UsageSampler {
 public:
  /// @param settings  have to outlive the sampler
  /// @param most_files  see cgroup::CgroupfsOptions
  /// @return the errors of Cgroupfs::open()
  static Result<UsageSampler> open(const core::Settings& settings, std::size_t most_files);

  /// The next look; without rates for what the one before did not have, so for all the first time.
  /// @return the errors of the state directory
  [[nodiscard]] Result<UsageSample> next();
  /// Of records that could not be read.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  UsageSampler(const core::Settings& settings, cgroup::Cgroupfs cgroups)
      : settings_(&settings), cgroups_(std::move(cgroups)) {}
  /// Reads the records if they have changed.
  [[nodiscard]] Status refresh();
  /// Reads an entry's usage. @return false if it has gone
  [[nodiscard]] bool read(UsageEntry& entry);

  using Usages = std::map<std::string, cgroup::CgroupUsage, std::less<>>;

  const core::Settings* settings_;
  cgroup::Cgroupfs cgroups_;
  std::string seen_;               ///< state of the records' directories when they were read
  bool again_ = true;              ///< the records are to be read once more
  std::vector<UsageEntry> known_;  ///< by the records
  std::vector<std::string> warnings_;
  Usages before_;
  Usages now_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace podqos::ctl
