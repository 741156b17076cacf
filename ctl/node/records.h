#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/store/state_directory.h"
#include "common/store/store.h"

namespace podqos::ctl {

/// What the state directory has; empty if it is missing.
struct NodeRecords {
  core::NodeState node;
  std::vector<core::PodRecord> pods;
  std::vector<std::string> warnings;  ///< of records that cannot be read
  /// Of find_engine_names(): the names by which engines show containers, by id.
  std::map<std::string, std::string, std::less<>> names = {};
};

/// Opens the records, whose lock the object holds.
[[nodiscard]] Result<store::Store> open_records(const core::Settings& settings,
                                                store::Opening opening = store::Opening::kRead);
/// @param opening  as the store was opened
[[nodiscard]] Result<NodeRecords> records_in(store::Store& store, store::Opening opening);

/// Reads the records under the lock, which is held no longer, so that a slow terminal delays no
/// container.
/// @param opening  kReadUnlocked for one who reads them again and again
[[nodiscard]] Result<NodeRecords> read_records(const core::Settings& settings,
                                               store::Opening opening = store::Opening::kRead);

/// Gives containers whose names no program has told podqos those by which Podman and Docker show
/// them, and a pod that is such a container its name. For display and select() alone: in the state
/// directory they have none.
/// @param root  "" but in tests
void find_engine_names(NodeRecords& records, const std::string& root = "");
/// The same with the names that it has found before, which stand in `records`.
void add_engine_names(NodeRecords& records);

}  // namespace podqos::ctl
