#pragma once

#include <cerrno>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"
#include "common/sys/fd.h"

namespace podqos::nri {

/// The default socket of containerd and CRI-O since NRI 0.3 (containerd/nri, pkg/api/plugin.go).
constexpr const char* kDefaultSocket = "/var/run/nri/nri.sock";

/// Connects to a runtime that listens at `path`, without blocking.
/// @return a non-blocking, close-on-exec socket. kNotFound: no runtime listens there, with or
///         without a socket file; kBusy: its backlog is full. Both are normal while a runtime
///         starts.
[[nodiscard]] Result<sys::UniqueFd> connect_to(const std::string& path);

/// Whether an errno from a non-blocking socket means to retry after poll(2): EAGAIN or EINTR.
[[nodiscard]] constexpr bool is_later(int err) {
  return err == EAGAIN || err == EINTR;
}

/// The process at the other end of a unix socket, as of connect(2), which has to
/// be a runtime of root in this pid namespace: it decides what this process writes as root, and to
/// which processes.
/// @return kConflict or kPermission if it is not
[[nodiscard]] Result<Pid> runtime_at(int socket);

/// Opens a non-blocking socket that listens at the address of metrics. The file of a unix socket
/// has mode 0660 and the group of the process or of a set-gid directory; a stale one is replaced.
/// To be called before enter_sandbox(), which forbids bind(2).
/// @return kConflict: another process is listening there, or the path is not a socket; otherwise
///         the error of a system call. The message names the address.
[[nodiscard]] Result<sys::UniqueFd> listen_at(const core::MetricsAddress& address);

}  // namespace podqos::nri
