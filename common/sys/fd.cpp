#include "common/sys/fd.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace podqos::sys {

Status write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      const int err = errno;
      if (err == EINTR) continue;
      return fail_errno(err, "write");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace podqos::sys
