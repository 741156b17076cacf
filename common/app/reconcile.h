#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/app/engine_list.h"
#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::app {

struct ReconcileReport {
  std::int64_t pods = 0;                ///< pods that live, adopted ones included
  std::int64_t containers = 0;          ///< containers that live
  std::int64_t released = 0;            ///< pods that had ended without podqos hearing of it
  std::int64_t repaired = 0;            ///< pods whose record was lost and has been restored
  std::vector<std::string> changes;     ///< one sentence for each change
  std::vector<std::string> unreadable;  ///< records of a newer version: left alone, not counted
  std::vector<std::string> failed;      ///< pods of which something could not be written
  std::vector<std::string> warnings;    ///< what an operator should look at
};

/// Brings state and cgroups to the truth, which is the set of living containers: takes out the
/// dead, restores lost records from the copies in the cgroups, recomputes the sums, writes all
/// values, removes what is left over. Lowers a tier's memory limit that usage had held up, step by
/// step, with the lock released in between.
[[nodiscard]] Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log);

/// The same under the lock of an event that found the mark of an interrupted one; without the
/// steps.
[[nodiscard]] Result<ReconcileReport> recompute(Transaction& transaction);

/// Recomputes, knowing what an engine has: a container that was placed for it and has not been
/// confirmed yet is kept while it is in the list, whoever has placed it, and dropped if the
/// listener placed it and it is not.
/// @return ids of the containers that live then.
[[nodiscard]] Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list);

/// Recomputes if the mark of an interrupted event stands and this event has not done so yet.
[[nodiscard]] Status recover(Transaction& transaction);

}  // namespace podqos::app
