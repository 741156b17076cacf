#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/sys/fd.h"

namespace podqos::nri {

/// Where containerd and CRI-O listen unless they are told otherwise, since NRI 0.3.
constexpr const char* kDefaultSocket = "/var/run/nri/nri.sock";

/// Connects to a runtime that listens at `path`, without waiting: the socket is non-blocking.
/// @return kNotFound: nobody listens there, with or without a socket left behind, which is normal
/// while a runtime starts; as is kBusy: more plugins at once than it has room for.
[[nodiscard]] Result<sys::UniqueFd> connect_to(const std::string& path);

/// Does errno of a call on such a socket say to try again once poll(2) says so?
[[nodiscard]] bool is_later(int err);

/// @return nullptr: it is not set.
[[nodiscard]] const char* environment_variable(const char* name);

/// What a runtime leaves in the environment of a plugin that it starts.
struct LaunchEnvironment {
  const char* socket = nullptr;  ///< NRI_PLUGIN_SOCKET
  const char* name = nullptr;    ///< NRI_PLUGIN_NAME
  const char* index = nullptr;   ///< NRI_PLUGIN_IDX
};
[[nodiscard]] LaunchEnvironment launch_environment();

/// A plugin that was started by a runtime, which has connected it already.
struct Launch {
  sys::UniqueFd socket;
  std::string name;   ///< empty: not said
  std::string index;  ///< the same
};

/// Takes over the socket, and makes it non-blocking and closed on exec.
/// @return nullopt: nobody has left a socket. kInvalidArgument: it is no number, or not that of a
/// connected unix stream socket.
[[nodiscard]] Result<std::optional<Launch>> read_launch(const LaunchEnvironment& environment);

/// The process at the other end when the connection was made; 0 if it is in another pid namespace.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};
[[nodiscard]] Result<Peer> peer_of(int socket);

}  // namespace podqos::nri
