#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::ctl {

/// What the state directory has; empty if it is missing.
struct NodeRecords {
  core::TiersRecord tiers;
  std::vector<core::PodRecord> pods;
  std::vector<std::string> warnings;  ///< of records that cannot be read
};

/// Reads the records under the lock, which is held no longer, so that a slow terminal delays no
/// container.
[[nodiscard]] Result<NodeRecords> read_records(const core::Settings& settings);

}  // namespace podqos::ctl
