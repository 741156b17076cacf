#include "common/store/state_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "common/base/text.h"

namespace podqos::store {

Result<uid_t> check_state_directory(const sys::Directory& directory) {
  const std::string& path = directory.path();
  struct stat opened{};
  struct stat named{};
  if (::fstat(directory.fd(), &opened) != 0) return fail_errno(errno, path);
  if (::lstat(path.c_str(), &named) != 0) return fail_errno(errno, path);
  if (S_ISLNK(named.st_mode))
    return fail(ErrorCode::kConflict, cat("state directory ", path, " is a symlink"));
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path, " was exchanged while it was opened"));
  }
  const uid_t caller = ::geteuid();
  if (opened.st_uid != caller) {
    return fail(ErrorCode::kConflict, cat("state directory ", path, " belongs to user ",
                                          opened.st_uid, ", not to ", caller));
  }
  if ((opened.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path,
                    " is writable by others; chmod it to 0700 after a look at its files"));
  }
  return caller;
}

}  // namespace podqos::store
