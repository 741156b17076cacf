#pragma once

#include "common/base/error.h"
#include "common/core/identity.h"
#include "common/core/record.h"

namespace podqos::core {

/// Checks that a container of this identity may be admitted to the pod of this record.
///
/// - A pod without containers admits any container.
/// - A container without a pod shares its pod with no other: its uid is predictable, so that
///   another container could claim it first.
/// - A uid from an annotation, which any author can write, or from a sandbox id is admitted if the
///   sandbox is the same. Without sandboxes, both uids must be from annotations.
/// - A uid from the engine or from a kubelet's cgroup is admitted if the record's uid is from there
///   too, also with a newer sandbox while containers of the old one still end. Otherwise the
///   sandbox or the pod's cgroup must be the same.
/// - Records of earlier releases lack the source of the uid; it is assumed to be the container's.
/// - The namespaces must be equal if both are known.
/// - A container in a kubelet's pod cgroup is not admitted to a pod of podqos's own elsewhere.
///
/// @return kConflict with the uid, both sandboxes or namespaces, and the remedy
[[nodiscard]] Status check_owner(const PodRecord& record, const Identity& identity);

}  // namespace podqos::core
