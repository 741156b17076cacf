#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/fd.h"
#include "common/sys/file_lock.h"

/// What podqos-nri takes from its surroundings before it serves a runtime.
namespace podqos::nri {

/// Blocks SIGTERM, SIGINT and SIGHUP in this thread, and opens a signalfd(2) for them.
[[nodiscard]] Result<sys::UniqueFd> open_signals();

/// Locks `nri.lock` in the state directory, which is created if it is missing, and writes the pid
/// of this process into it. Only one plugin per state directory may serve a runtime: if two
/// connections adjust the same container, its creation fails (containerd/nri,
/// pkg/adaptation/result.go). The kernel releases the lock when the process ends.
/// @return kTimeout: another plugin holds it; the error names its process.
[[nodiscard]] Result<sys::FileLock> lock_single_instance(const std::string& state_directory);

/// Writes what the plugin does below its pid in `nri.lock`, on one line, where podqosctl finds it
/// however the plugin was started. Only for the holder of the lock. What a longer status has left
/// follows on further lines; "" leaves the pid alone.
[[nodiscard]] Status write_status(const std::string& state_directory, std::string_view status);

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
