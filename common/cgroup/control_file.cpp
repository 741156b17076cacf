#include "common/cgroup/control_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/text.h"

namespace podqos::cgroup {

Result<std::string> read_control(int fd, std::string_view what, std::size_t limit,
                                 sys::FileEnd end) {
  Result<std::string> text = sys::read_all(fd, limit, what, end);
  if (text) text->resize(without_newline(*text).size());
  return text;
}

Result<std::string> read_control(const sys::Directory& cgroup, std::string_view name,
                                 std::size_t limit, sys::FileEnd end) {
  const std::string what = cat(cgroup.path(), "/", name);
  const auto file = cgroup.open_any(name, O_RDONLY);
  if (!file) return fail_errno(file.error(), cat("open ", what));
  return read_control(file->get(), what, limit, end);
}

OrErrno<void> write_value(int fd, std::string_view value) {
  const ssize_t size = ::write(fd, value.data(), value.size());
  if (size < 0) return std::unexpected(errno);
  // The kernel takes a control value whole or not at all.
  if (static_cast<std::size_t>(size) != value.size()) return std::unexpected(EIO);
  return {};
}

std::optional<std::int64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ' ') == key) return parse_int(line);
  }
  return std::nullopt;
}

}  // namespace podqos::cgroup
