#include "common/app/nested_removal.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/app/departure.h"
#include "common/app/reconcile.h"
#include "common/app/transaction.h"
#include "common/base/text.h"

namespace podqos::app {

namespace {

constexpr int kMaxAttempts = 400;  ///< to remove 200,000 cgroups; each may take 50 ms of the lock

/// One more attempt on a pod's cgroup.
/// @return what the machine has refused
Result<std::optional<Error>> try_again(Transaction& transaction, const std::string& uid) {
  PODQOS_ASSIGN(auto record, transaction.store().pod(uid));
  // Meanwhile another event may have removed it, or started a container in it.
  if (!record || !record->released_at) return std::nullopt;
  return handle_due(transaction, *record);
}

/// One more attempt on a pod's cgroup, in a transaction.
/// @param kept  gets what the machine has refused, one sentence each
/// @return whether another attempt gets further
Result<bool> try_again(const core::Settings& settings, Log& log, const std::string& uid,
                       std::vector<std::string>& kept) {
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log));
  if (!transaction) return false;
  PODQOS_TRY(recover(*transaction));
  PODQOS_ASSIGN(const auto refused, try_again(*transaction, uid));
  if (refused) kept.push_back(cat("pod ", uid, ": ", refused->message));
  PODQOS_TRY(transaction->finish());
  return std::ranges::count(transaction->partly_removed(), uid) > 0;
}

}  // namespace

std::vector<std::string> remove_rest(const core::Settings& settings, Log& log,
                                     const std::vector<std::string>& uids) {
  std::vector<std::string> kept;
  for (const std::string& uid : uids) {
    Result<bool> again = true;
    for (int attempt = 0; attempt < kMaxAttempts && again && *again; ++attempt)
      again = try_again(settings, log, uid, kept);
    if (!again) kept.push_back(cat("pod ", uid, ": ", again.error().message));
    if (again && *again) {
      kept.push_back(cat("pod ", uid,
                         ": its containers have nested so many cgroups that its own is "
                         "not removed yet: podqosctl reconcile goes on with it"));
    }
  }
  for (const std::string& line : kept)
    log.error(line);
  return kept;
}

}  // namespace podqos::app
