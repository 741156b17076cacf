#include "hook/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "common/app/log.h"
#include "common/base/text.h"

namespace podqos::hook {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void print_error(std::string_view program, std::string_view line) {
  write_all(STDERR_FILENO, cat(program, ": ", app::one_line(line), "\n"));
}

std::string own_path() {
  constexpr std::string_view kDeleted = " (deleted)";
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlinkat(AT_FDCWD, "/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0 || static_cast<std::size_t>(size) == buffer.size()) return {};
  std::string path{buffer.data(), static_cast<std::size_t>(size)};
  // The kernel (d_path) appends this if an upgrade has replaced the file; a file may also have that
  // name itself.
  if (path.ends_with(kDeleted) && ::faccessat(AT_FDCWD, path.c_str(), F_OK, 0) != 0)
    path.resize(path.size() - kDeleted.size());
  return path;
}

}  // namespace podqos::hook
