#include "common/app/granting.h"

#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/core/pods/grants.h"

namespace podqos::app {

Status grant_freed(Transaction& transaction) {
  core::TiersRecord& tiers = transaction.tiers();
  for (const std::string& uid :
       core::grantable(tiers, transaction.settings(), transaction.capacity())) {
    auto record = transaction.store().pod(uid);
    // What cannot be read now is for a reconciliation.
    if (!record || !*record || (*record)->released_at) {
      core::forget_cut(tiers, uid);
      continue;
    }
    core::grant_again(**record, tiers, transaction.settings(), transaction.capacity());
    transaction.log().info(cat("pod ", uid, ": cpu ", format_amount((*record)->granted.cpu),
                               ", memory ", format_amount((*record)->granted.memory),
                               " count now, as other pods have left room"));
    PODQOS_TRY(transaction.save(**record, &**record));
  }
  return {};
}

}  // namespace podqos::app
