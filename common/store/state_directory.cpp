#include "common/store/state_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "common/base/text.h"

namespace podqos::store {

namespace {

constexpr mode_t kDirectoryMode = 0700;

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

Result<sys::Directory> with_subject(Result<sys::Directory> directory) {
  if (!directory) return fail(std::move(directory).error().with_context("state directory"));
  return directory;
}

}  // namespace

Result<sys::Directory> open_state_directory(const std::string& path) {
  return with_subject(sys::Directory::open(without_trailing_slashes(path)));
}

Result<sys::Directory> make_state_directory(const std::string& path) {
  const std::string name = without_trailing_slashes(path);
  auto directory = sys::Directory::open(name);
  if (directory || directory.error().code != ErrorCode::kNotFound)
    return with_subject(std::move(directory));
  // Somebody else may make it at the same moment; what is there is checked by the caller.
  if (::mkdir(name.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return fail_errno(errno, cat("make state directory ", name));
  return with_subject(sys::Directory::open(name));
}

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
