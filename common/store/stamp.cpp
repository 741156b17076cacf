#include "common/store/stamp.h"

#include <sys/stat.h>

namespace podqos::store {

std::optional<Stamp> stamp_of(const std::string& path, int directory) {
  struct stat found{};
  if (::fstatat(directory, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return Stamp{
      .inode = found.st_ino, .seconds = found.st_mtim.tv_sec, .nanoseconds = found.st_mtim.tv_nsec};
}

}  // namespace podqos::store
