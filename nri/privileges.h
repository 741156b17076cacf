#pragma once

#include "common/base/error.h"

namespace podqos::nri {

/// Joins the cgroup namespace of process 1 if this process is in one below it, as a container of
/// cgroup v2 that is not privileged: there the cgroups of other processes have relative paths, and
/// none can be moved (cgroup_namespaces(7); "nsdelegate" in
/// Documentation/admin-guide/cgroup-v2.rst). To be called before enter_sandbox().
/// @return kPermission: it lacks CAP_SYS_PTRACE to open the namespace, or CAP_SYS_ADMIN to join it
[[nodiscard]] Status join_cgroup_namespace();

/// Drops all capabilities but those required to place containers and to reconcile, and installs the
/// syscall allow-list sys::Filter::kPlugin. To be called before anything is read from a runtime.
/// Cannot be undone: signals, sockets and everything else that the list forbids are opened before.
/// @return the error of dropping capabilities or of installing the filter.
[[nodiscard]] Status enter_sandbox();

}  // namespace podqos::nri
