#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

#include "common/base/error.h"

namespace podqos::sys {

/// The address of a unix socket, for connect(2), bind(2) and sendto(2); unix(7).
class UnixAddress {
 public:
  /// Parses a socket name.
  /// @param name  an absolute path, or "@name" for an abstract address
  /// @return kInvalidArgument if it is neither, has a zero byte, or is longer than 107 bytes.
  static Result<UnixAddress> make(std::string_view name);

  /// Valid as long as the object. The socket calls take all kinds of addresses as sockaddr.
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  /// Length of the used part of the address, in bytes.
  [[nodiscard]] socklen_t size() const { return size_; }

 private:
  UnixAddress() = default;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

}  // namespace podqos::sys
