#include "common/sys/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/sys/fd.h"

namespace podqos::sys {

namespace {

constexpr mode_t kPermissionBits = 07777;

/// Creates the temporary file with mode 0600; a leftover of a killed process is removed first.
Result<UniqueFd> create_temporary(const Directory& directory, const char* name) {
  // O_EXCL also refuses a symlink of that name, which another user could place in a directory
  // writable by others (the bundle of a container with user namespace).
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd{::openat(directory.fd(), name, kFlags, 0600)};
  if (!fd.valid() && errno == EEXIST && ::unlinkat(directory.fd(), name, 0) == 0) {
    fd = UniqueFd{::openat(directory.fd(), name, kFlags, 0600)};
  }
  if (const int err = errno; !fd.valid())
    return fail_errno(err, cat("create ", directory.path(), "/", name));
  return fd;
}

Status write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      const int err = errno;
      if (err == EINTR) continue;
      return fail_errno(err, "write");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
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

/// @param owner  nullptr keeps the owner and mode of the new file
Status fill_and_close(UniqueFd fd, std::string_view content, const FileOwner* owner) {
  if (auto written = write_all(fd.get(), content); !written) return written;
  if (owner != nullptr) {
    if (auto owned = set_owner(fd.get(), *owner); !owned) return owned;
  }
  // Quotas and network file systems report a failed write only at close(2).
  if (::close(fd.release()) != 0 && errno != EINTR) return fail_errno(errno, "close");
  return {};
}

// No fsync(2): the state is on a tmpfs and is lost with the boot it describes, and the config.json
// of a bundle is written again before each create. A file left by a crash of the machine is never
// read.
Status replace(const Directory& directory, std::string_view name, std::string_view content,
               const FileOwner* owner) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, cat("replace \"", printable(name), "\" in ",
                                                 directory.path(), ": not a file name"));
  }
  const std::string target{name};
  const std::string temporary = cat(".", name, kTemporarySuffix);
  auto fd = create_temporary(directory, temporary.c_str());
  if (!fd) return fail(std::move(fd).error());

  auto filled = fill_and_close(std::move(*fd), content, owner);
  if (filled &&
      ::renameat(directory.fd(), temporary.c_str(), directory.fd(), target.c_str()) != 0) {
    filled = fail_errno(errno, "rename");
  }
  if (filled) return {};
  ::unlinkat(directory.fd(), temporary.c_str(), 0);
  return fail(std::move(filled).error().with_context(cat("replace ", directory.path(), "/", name)));
}

}  // namespace

Status replace_file(const Directory& directory, std::string_view name, std::string_view content,
                    const FileOwner& owner) {
  return replace(directory, name, content, &owner);
}

Status replace_file(const Directory& directory, std::string_view name, std::string_view content) {
  return replace(directory, name, content, nullptr);
}

Status remove_leftover(const Directory& directory, const std::string& name) {
  if (!name.ends_with(kTemporarySuffix)) return {};
  auto removed = directory.remove_file(name);
  if (!removed) return fail(std::move(removed).error());
  return {};
}

}  // namespace podqos::sys
