#pragma once

#include <unistd.h>

#include <expected>
#include <string_view>
#include <utility>

#include "common/base/error.h"

namespace podqos::sys {

/// A value or an errno, where the caller words the error: what it means depends on the file.
template <class T>
using OrErrno = std::expected<T, int>;

/// Owns a file descriptor and closes it on destruction. -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    const UniqueFd closed{std::exchange(fd_, other.release())};
    return *this;
  }
  ~UniqueFd() {
    if (valid()) ::close(fd_);
  }

  /// The descriptor, or -1; still owned.
  [[nodiscard]] int get() const { return fd_; }
  /// Whether it owns a descriptor.
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /// Gives up ownership; the caller closes the descriptor.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Writes all of `content`, continuing after EINTR and short writes. A part may have been written
/// when it fails.
[[nodiscard]] Status write_all(int fd, std::string_view content);

}  // namespace podqos::sys
