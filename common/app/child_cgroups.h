#pragma once

#include <span>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::app {

/// Removes the unpopulated cgroups directly below `cgroup`: left behind by killed runtimes, or of
/// ended containers that were not deleted, with what containers have nested in them. The kernel
/// refuses to remove populated ones.
/// @param except  containers whose cgroups are kept, because a runtime may be about to use an empty
///         one
[[nodiscard]] Status remove_empty_children(Transaction& transaction, const std::string& cgroup,
                                           std::span<const core::ContainerRecord> except = {});

}  // namespace podqos::app
