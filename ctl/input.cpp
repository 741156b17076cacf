#include "ctl/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/text.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::ctl {
namespace {

/// Bytes of one read(2).
constexpr std::size_t kChunk = std::size_t{64} << 10U;

/// An open file, or standard input, whose descriptor the program does not own.
struct Source {
  sys::UniqueFd owned;
  int fd = STDIN_FILENO;
  std::string name = shown_name("-");
};

/// Opens a file, or standard input for "-".
Result<Source> open_source(const std::string& path) {
  if (path == "-") return Source{};
  sys::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  if (!fd.valid()) return fail_errno(errno, cat("open ", path));
  const int number = fd.get();
  return Source{.owned = std::move(fd), .fd = number, .name = path};
}

/// Reads what is there into `chunk`.
/// @return the number of bytes; 0 at the end
Result<std::size_t> read_some(const Source& source, std::string& chunk) {
  ssize_t got = 0;
  do {
    got = ::read(source.fd, chunk.data(), chunk.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno(errno, cat("read ", source.name));
  return static_cast<std::size_t>(got);
}

}  // namespace

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

Result<std::string> read_input(const std::string& path, std::size_t limit) {
  PODQOS_ASSIGN(const Source source, open_source(path));
  return sys::read_all(source.fd, limit, source.name);
}

Status read_lines(const std::string& path, std::size_t limit,
                  const std::function<bool(const Result<std::string>&)>& take) {
  PODQOS_ASSIGN(const Source source, open_source(path));
  std::string line;
  std::size_t length = 0;  // of the line, beyond the limit, too
  const auto hand_over = [&] {
    const bool more =
        length > limit
            ? take(fail(ErrorCode::kTooLarge, cat("line is longer than ", limit, " bytes")))
            : take(line);
    line.clear();
    length = 0;
    return more;
  };
  std::string chunk(kChunk, '\0');
  while (true) {
    PODQOS_ASSIGN(const std::size_t got, read_some(source, chunk));
    if (got == 0) break;
    for (const char c : std::string_view{chunk}.substr(0, got)) {
      if (c == '\n' && !hand_over()) return {};
      if (c != '\n' && ++length <= limit) line += c;
    }
  }
  if (length > 0) hand_over();
  return {};
}

}  // namespace podqos::ctl
