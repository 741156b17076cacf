#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/error.h"
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
[[nodiscard]] bool is_later(int err);

/// The value of an environment variable.
/// @return nullptr if it is not set.
[[nodiscard]] const char* environment_variable(const char* name);

/// Takes ownership of the socket that a runtime passes to a plugin that it starts (containerd/nri,
/// pkg/api/plugin.go), and makes it non-blocking and close-on-exec.
/// @return nullopt if NRI_PLUGIN_SOCKET is not set. kInvalidArgument: its value is not a number, or
///         not that of a connected unix stream socket.
[[nodiscard]] Result<std::optional<sys::UniqueFd>> inherited_socket();

/// The process at the other end of a unix socket, as of connect(2) or socketpair(2).
struct Peer {
  pid_t pid = 0;  ///< 0 if it is not visible in this pid namespace
  uid_t uid = 0;  ///< as seen in this user namespace
};
/// Reads SO_PEERCRED, see unix(7).
[[nodiscard]] Result<Peer> peer_of(int socket);

}  // namespace podqos::nri
