#include "ctl/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
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

/// Splits bytes into lines; a line beyond the limit is dropped up to its newline.
class LineBuffer {
 public:
  LineBuffer(std::size_t limit, const std::function<bool(const Result<std::string>&)>& take)
      : limit_(limit), take_(take) {}

  /// Takes more bytes. @return false if the consumer wants no more lines.
  bool feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      keep(bytes.substr(0, end));
      if (end == std::string_view::npos) return true;
      if (!hand_over()) return false;
      bytes.remove_prefix(end + 1);
    }
    return true;
  }
  /// Passes on a last line without newline.
  bool last() { return (line_.empty() && !dropped_) || hand_over(); }

 private:
  /// Appends to the current line, or drops all of it beyond the limit.
  void keep(std::string_view bytes) {
    if (dropped_ || line_.size() + bytes.size() > limit_) {
      dropped_ = true;
      line_.clear();
    } else {
      line_.append(bytes);
    }
  }
  /// Passes the current line on and starts the next one.
  bool hand_over() {
    const bool more =
        dropped_ ? take_(fail(ErrorCode::kTooLarge, cat("line is longer than ", limit_, " bytes")))
                 : take_(line_);
    line_.clear();
    dropped_ = false;
    return more;
  }

  std::size_t limit_;
  const std::function<bool(const Result<std::string>&)>& take_;
  std::string line_;
  bool dropped_ = false;
};

}  // namespace

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

Result<std::string> read_input(const std::string& path, std::size_t limit) {
  auto source = open_source(path);
  if (!source) return fail(std::move(source).error());
  return sys::read_all(source->fd, limit, source->name);
}

Status read_lines(const std::string& path, std::size_t limit,
                  const std::function<bool(const Result<std::string>&)>& take) {
  auto source = open_source(path);
  if (!source) return fail(std::move(source).error());
  LineBuffer lines(limit, take);
  std::string chunk(kChunk, '\0');
  while (true) {
    const ssize_t got = ::read(source->fd, chunk.data(), chunk.size());
    const int err = errno;
    if (got < 0 && err == EINTR) continue;
    if (got < 0) return fail_errno(err, cat("read ", source->name));
    if (got == 0) break;
    if (!lines.feed(std::string_view{chunk}.substr(0, static_cast<std::size_t>(got)))) return {};
  }
  lines.last();
  return {};
}

}  // namespace podqos::ctl
