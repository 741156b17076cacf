#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>

#include "common/base/error.h"

namespace podqos::sys {

/// The address of a unix socket, as connect(2), bind(2) and sendto(2) take it.
class UnixAddress {
 public:
  /// @param name  an absolute path, or "@name" for an abstract address.
  /// @return kInvalidArgument for another text, and for one of more than 107 bytes.
  static Result<UnixAddress> make(std::string_view name);

  [[nodiscard]] const sockaddr* get() const;
  [[nodiscard]] socklen_t size() const { return size_; }

 private:
  UnixAddress() = default;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

}  // namespace podqos::sys
