#include "common/cgroup/control_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

// The kernel formats most values into one page.
constexpr std::size_t kMaxValue = 4'096;

}  // namespace

OrErrno<sys::UniqueFd> open_control_file(const sys::Directory& cgroup, const std::string& name,
                                         int flags) {
  constexpr std::string_view kForbidden{"/\0", 2};
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(kForbidden) != std::string::npos) {
    return std::unexpected(EINVAL);
  }
  sys::UniqueFd fd{::openat(cgroup.fd(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW)};
  if (const int err = errno; !fd.valid()) return std::unexpected(err);
  return fd;
}

OrErrno<std::string> read_value(int fd) {
  std::array<char, kMaxValue> buffer;  // NOLINT(*-member-init): the kernel fills it
  const ssize_t size = ::read(fd, buffer.data(), buffer.size());
  if (size < 0) return std::unexpected(errno);
  return std::string{without_newline({buffer.data(), static_cast<std::size_t>(size)})};
}

Result<std::string> read_value(const sys::Directory& cgroup, const std::string& name) {
  const OrErrno<sys::UniqueFd> file = open_control_file(cgroup, name, O_RDONLY);
  auto text = file ? read_value(file->get()) : std::unexpected(file.error());
  if (!text) return fail_errno(text.error(), cat("read ", cgroup.path(), "/", name));
  return std::move(*text);
}

OrErrno<void> write_value(int fd, std::string_view value) {
  const ssize_t size = ::write(fd, value.data(), value.size());
  if (size < 0) return std::unexpected(errno);
  // The kernel takes a control value whole or not at all.
  if (static_cast<std::size_t>(size) != value.size()) return std::unexpected(EIO);
  return {};
}

OrErrno<void> write_value(const sys::Directory& cgroup, const std::string& name,
                          std::string_view value) {
  const OrErrno<sys::UniqueFd> file = open_control_file(cgroup, name, O_WRONLY);
  return file ? write_value(file->get(), value) : std::unexpected(file.error());
}

Result<std::string> read_long(const sys::Directory& cgroup, const std::string& name,
                              std::size_t limit, sys::FileEnd end) {
  const std::string what = cat(cgroup.path(), "/", name);
  const OrErrno<sys::UniqueFd> file = open_control_file(cgroup, name, O_RDONLY);
  if (!file) return fail_errno(file.error(), cat("open ", what));
  Result<std::string> text = sys::read_all(file->get(), limit, what, end);
  if (text) text->resize(without_newline(*text).size());
  return text;
}

std::optional<std::int64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ' ') == key) return parse_int(line);
  }
  return std::nullopt;
}

}  // namespace podqos::cgroup
