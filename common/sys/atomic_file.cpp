#include "common/sys/atomic_file.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "common/sys/fd.h"

namespace podqos::sys {

namespace {

constexpr mode_t kPermissionBits = 07777;

std::string temporary_name(std::string_view name) {
  return cat(".", name, kTemporarySuffix);
}

/// Makes something under its temporary name; a leftover of a killed process is removed first.
/// @param make  takes the name; returns false, with errno set, if it fails
/// @return errno; 0 if it was made
template <class Make>
int make_temporary(const Directory& directory, const std::string& name, Make make) {
  if (make(name)) return 0;
  const bool removed = errno == EEXIST && ::unlinkat(directory.fd(), name.c_str(), 0) == 0;
  return removed && make(name) ? 0 : errno;
}

/// Sets owner and permission bits where they differ.
Status set_owner(int fd, const FileOwner& owner) {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return fail_errno(errno, "fstat");
  if ((now.st_uid != owner.uid || now.st_gid != owner.gid) &&
      ::fchown(fd, owner.uid, owner.gid) != 0) {
    return fail_errno(errno, cat("chown to ", owner.uid, ":", owner.gid));
  }
  const mode_t mode = owner.mode & kPermissionBits;
  // After fchown(2), which clears the set-id bits.
  if ((now.st_mode & kPermissionBits) != mode && ::fchmod(fd, mode) != 0)
    return fail_errno(errno, "chmod");
  return {};
}

/// Gives a file the extended attributes of the one that it replaces, such as SELinux's label and
/// ACLs, as far as there are any and the file system takes them.
void copy_attributes(const Directory& directory, const std::string& from, int to) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd old{::openat(directory.fd(), from.c_str(), kFlags)};
  std::string names(XATTR_LIST_MAX, '\0');
  std::string value(XATTR_SIZE_MAX, '\0');
  const ssize_t size = ::flistxattr(old.get(), names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  for (std::string_view rest = names; !rest.empty();) {
    const std::string name{read_until(rest, '\0')};
    const ssize_t length = ::fgetxattr(old.get(), name.c_str(), value.data(), value.size());
    if (length >= 0)
      ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(length), 0);
  }
}

Status fill_and_close(UniqueFd fd, std::string_view content, const std::optional<FileOwner>& owner,
                      Durability durability) {
  PODQOS_TRY(write_all(fd.get(), content));
  if (owner) PODQOS_TRY(set_owner(fd.get(), *owner));
  if (durability == Durability::kDurable && ::fsync(fd.get()) != 0)
    return fail_errno(errno, "fsync");
  // Quotas and network file systems report a failed write only at close(2).
  if (::close(fd.release()) != 0 && errno != EINTR) return fail_errno(errno, "close");
  return {};
}

/// Puts the directory's entries on the disk.
Status sync_directory(const Directory& directory) {
  if (::fsync(directory.fd()) != 0) return fail_errno(errno, cat(directory.path(), ": fsync"));
  return {};
}

struct Names {
  std::string target;
  std::string temporary;
};

Status replace_by(const Names& names, const Directory& directory, std::string_view content,
                  const std::optional<FileOwner>& owner, Durability durability) {
  const auto& [target, temporary] = names;
  if (target.empty() || target == "." || target == ".." || target.contains('/')) {
    return fail(ErrorCode::kInvalidArgument, cat("replace \"", printable(target), "\" in ",
                                                 directory.path(), ": not a file name"));
  }
  UniqueFd fd;
  const int err = make_temporary(directory, temporary, [&](const std::string& as) {
    // O_EXCL also refuses a symlink of that name, which another user could place in a directory
    // writable by others (the bundle of a container with user namespace).
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    fd = UniqueFd{::openat(directory.fd(), as.c_str(), kFlags, 0600)};
    return fd.valid();
  });
  if (err != 0) return fail_errno(err, cat("create ", directory.path_of(temporary)));

  if (durability == Durability::kDurable) copy_attributes(directory, target, fd.get());
  auto filled = fill_and_close(std::move(fd), content, owner, durability);
  if (filled &&
      ::renameat(directory.fd(), temporary.c_str(), directory.fd(), target.c_str()) != 0) {
    filled = fail_errno(errno, "rename");
  }
  if (filled) return durability == Durability::kDurable ? sync_directory(directory) : Status{};
  ::unlinkat(directory.fd(), temporary.c_str(), 0);
  return fail(std::move(filled).error().with_context(cat("replace ", directory.path_of(target))));
}

}  // namespace

Status replace_file(const Directory& directory, std::string_view name, std::string_view content,
                    const std::optional<FileOwner>& owner, Durability durability) {
  return replace_by({std::string{name}, temporary_name(name)}, directory, content, owner,
                    durability);
}

Status replace_shared_file(const Directory& directory, std::string_view name,
                           std::string_view content, const std::optional<FileOwner>& owner) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) < 0) return fail_errno(errno, "getrandom");
  return replace_by({std::string{name}, temporary_name(cat(name, ".", random))}, directory, content,
                    owner, Durability::kUntilBoot);
}

Status replace_link(const Directory& directory, const std::string& name,
                    const std::string& target) {
  const auto link_as = [&](const std::string& as) {
    return ::symlinkat(target.c_str(), directory.fd(), as.c_str()) == 0;
  };
  if (link_as(name)) return {};
  int err = errno;
  if (err == EEXIST) {
    const std::string temporary = temporary_name(name);
    err = make_temporary(directory, temporary, link_as);
    if (err == 0 &&
        ::renameat(directory.fd(), temporary.c_str(), directory.fd(), name.c_str()) != 0)
      err = errno;
    if (err == 0) return {};
  }
  const std::string what = cat("link ", directory.path_of(name));
  if (err == ENAMETOOLONG) {
    return fail(ErrorCode::kTooLarge,
                cat(what, ": its target would have ", target.size(), " bytes"));
  }
  return fail_errno(err, what);
}

Status make_durable_link(const Directory& directory, const std::string& name,
                         const std::string& target) {
  if (::symlinkat(target.c_str(), directory.fd(), name.c_str()) != 0)
    return fail_errno(errno, cat("link ", directory.path_of(name)));
  return sync_directory(directory);
}

Status remove_durable_file(const Directory& directory, const std::string& name) {
  PODQOS_TRY(directory.remove_file(name));
  return sync_directory(directory);
}

}  // namespace podqos::sys
