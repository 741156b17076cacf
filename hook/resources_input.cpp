#include "hook/resources_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::hook {

namespace {

/// Moves what standard input has into a file in memory, which takes its place.
Status keep_input() {
  const sys::UniqueFd kept{::memfd_create("resources", MFD_CLOEXEC)};
  if (!kept.valid()) return fail_errno(errno, "keep standard input");
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(errno, "read standard input");
    if (size == 0) break;
    PODQOS_TRY(sys::write_all(kept.get(), {buffer.data(), static_cast<std::size_t>(size)}));
  }
  if (::lseek(kept.get(), 0, SEEK_SET) < 0 || ::dup2(kept.get(), STDIN_FILENO) < 0)
    return fail_errno(errno, "keep standard input");
  return {};
}

}  // namespace

Result<std::string> read_resources(const std::string& file) {
  const bool is_input = file == "-";
  if (is_input) PODQOS_TRY(keep_input());
  const std::string path = is_input ? "/proc/self/fd/0" : file;
  const sys::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!fd.valid()) return fail_errno(errno, cat("open ", file));
  return sys::read_all(fd.get(), codec::kMaxConfigSize, file);
}

}  // namespace podqos::hook
