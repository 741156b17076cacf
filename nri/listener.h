#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/error.h"
#include "common/core/metrics_address.h"
#include "common/sys/fd.h"

namespace podqos::nri {

/// A listening socket for metrics, with its file, which the destructor removes. To be opened before
/// enter_sandbox(), which forbids bind(2).
class Listener {
 public:
  /// Opens a non-blocking socket that listens at the address. The file of a unix socket has mode
  /// 0660 and the group of the process or of a set-gid directory; a stale one is replaced.
  /// @return kConflict: another process is listening there, or the path is not a socket; otherwise
  ///         the error of a system call. The message names the address.
  static Result<Listener> open(const core::MetricsAddress& address);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  explicit Listener(sys::UniqueFd socket) : socket_(std::move(socket)) {}
  static Result<Listener> open_unix(const std::string& path);
  static Result<Listener> open_tcp(const core::TcpPort& port);

  sys::UniqueFd socket_;
  std::string path_;  ///< of the unix socket; "": none
  ino_t inode_ = 0;   ///< of the file at path_, to remove only this one
};

}  // namespace podqos::nri
