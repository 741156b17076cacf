#include "common/store/state_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/text.h"
#include "common/store/state_files.h"

namespace podqos::store {

namespace {

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

Result<sys::Directory> with_subject(Result<sys::Directory> directory) {
  if (!directory) return fail(std::move(directory).error().with_context("state directory"));
  return directory;
}

/// Checks every directory above through "..", since the path itself may contain symlinks.
Status check_parents(const sys::Directory& directory, struct stat child, uid_t caller) {
  std::string above;
  while (true) {
    above += above.empty() ? ".." : "/..";
    struct stat parent{};
    if (::fstatat(directory.fd(), above.c_str(), &parent, 0) != 0)
      return fail_errno(errno, cat(directory.path(), "/", above));
    if (parent.st_dev == child.st_dev && parent.st_ino == child.st_ino) return {};
    const bool shared = (parent.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    const bool sticky = (parent.st_mode & S_ISVTX) != 0;
    if ((parent.st_uid != 0 && parent.st_uid != caller) || (shared && !sticky)) {
      return fail(ErrorCode::kConflict,
                  cat("state directory ", directory.path(), ": ", directory.path(), "/", above,
                      shared ? " is writable by others" : cat(" belongs to user ", parent.st_uid),
                      ", who could replace the state: set stateDir to a directory that only root "
                      "can write to"));
    }
    child = parent;
  }
}

}  // namespace

bool is_read_only(const std::string& path) {
  struct statfs found{};
  return ::statfs(path.c_str(), &found) == 0 && (found.f_flags & ST_RDONLY) != 0;
}

Result<sys::Directory> open_state_directory(const std::string& path) {
  return with_subject(sys::Directory::open(without_trailing_slashes(path)));
}

Result<sys::Directory> make_state_directory(const std::string& path) {
  const std::string name = without_trailing_slashes(path);
  auto directory = sys::Directory::open(name);
  if (directory || directory.error().code != ErrorCode::kNotFound)
    return with_subject(std::move(directory));
  // EEXIST: another process has made it since. The caller checks its owner in either case.
  if (::mkdir(name.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return fail_errno(errno, cat("make state directory ", name));
  return with_subject(sys::Directory::open(name));
}

Status check_state_directory(const sys::Directory& directory) {
  const std::string& path = directory.path();
  struct stat opened{};
  struct stat named{};
  if (::fstat(directory.fd(), &opened) != 0) return fail_errno(errno, path);
  if (::lstat(path.c_str(), &named) != 0) return fail_errno(errno, path);
  if (S_ISLNK(named.st_mode))
    return fail(ErrorCode::kConflict, cat("state directory ", path, " is a symlink"));
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path, " was replaced while it was opened"));
  }
  const uid_t caller = ::geteuid();
  if (opened.st_uid != caller) {
    return fail(ErrorCode::kConflict, cat("state directory ", path, " belongs to user ",
                                          opened.st_uid, ", not to ", caller));
  }
  if ((opened.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path,
                    " is writable by others; inspect its files, then chmod it to 0700"));
  }
  PODQOS_TRY(check_parents(directory, opened, caller));
  // Kubernetes makes a missing hostPath with 0755. A reader may find it on a read-only mount.
  const bool open_to_others = (opened.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (open_to_others && ::fchmod(directory.fd(), kDirectoryMode) != 0 && errno != EROFS) {
    const int err = errno;
    return fail_errno(err, cat("chmod state directory ", path, " to 0700"));
  }
  return {};
}

}  // namespace podqos::store
