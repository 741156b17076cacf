#pragma once

#include "common/base/error.h"
#include "common/core/identity.h"
#include "common/core/record.h"

namespace podqos::core {

/// May a container of this identity join the pod of this record?
///
/// A pod that has no container left is nobody's. Otherwise what founded the record decides. A lone
/// container joins nothing and is joined by nothing: its uid can be foreseen and claimed first. An
/// annotation, which is anybody's word, joins only what an annotation has founded in the same
/// sandbox or in none; the engine's word joins that only in the same sandbox. Who founded a record
/// that lacks it is unknown: it is held to the sandbox alone.
/// A newer sandbox of an engine's pod joins while containers of the older one still end.
/// Namespaces that both are known must be one.
/// A container in the cgroup of a kubelet's pod joins none that podqos has made elsewhere.
/// @return kConflict that names the uid, both sandboxes or namespaces, and the remedy.
[[nodiscard]] Status check_owner(const PodRecord& record, const Identity& identity);

}  // namespace podqos::core
