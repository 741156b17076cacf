#pragma once

#include "common/app/transaction.h"
#include "common/base/error.h"

namespace podqos::app {

/// Grants what has become free to the pods whose requests have been cut, in the order in which they
/// asked; to few of them, so that later transactions go on.
/// @return the errors of the record store
[[nodiscard]] Status grant_freed(Transaction& transaction);

}  // namespace podqos::app
