#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/error.h"
#include "common/core/metrics_address.h"
#include "common/sys/fd.h"

namespace podqos::nri {

/// A socket that listens, and its file, which goes with it. To be opened before the sandbox, which
/// lets nothing be bound.
class Listener {
 public:
  /// Non-blocking. A unix socket is for its owner and its group (0660), the group being that of
  /// the process or of a set-gid directory; one that a killed plugin has left is replaced.
  /// @return kConflict: somebody listens there, or the path is no socket's; the error names the
  /// address.
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
  static Result<Listener> open_loopback(const core::LoopbackPort& port);

  sys::UniqueFd socket_;
  std::string path_;  ///< "": no file
  ino_t inode_ = 0;   ///< of the file
};

}  // namespace podqos::nri
