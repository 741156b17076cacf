#include "common/store/state_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "common/sys/atomic_file.h"

namespace podqos::store {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kIndexNameLength = 16;  // of 64 bits

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
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

/// See make_state_directory().
Status check_state_directory(const sys::Directory& directory) {
  const std::string& path = directory.path();
  struct stat opened{};
  struct stat named{};
  if (::fstat(directory.fd(), &opened) != 0) return fail_errno(errno, path);
  if (::lstat(path.c_str(), &named) != 0) return fail_errno(errno, path);
  if (S_ISLNK(named.st_mode))
    return fail(ErrorCode::kConflict,
                cat("state directory ", path,
                    " is a symlink: remove it, or set stateDir to the directory that it names"));
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path, " was replaced while it was opened"));
  }
  const uid_t caller = ::geteuid();
  if (opened.st_uid != caller) {
    return fail(ErrorCode::kConflict,
                cat("state directory ", path, " belongs to user ", opened.st_uid, ", not to ",
                    caller, ": inspect its files, then chown or remove it"));
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

/// "pods" and "a.json" of "pods/a.json"; "" and "lock" of "lock".
std::pair<std::string_view, std::string> parts_of_path(std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {"", std::string{path}};
  return {path.substr(0, slash), std::string{path.substr(slash + 1)}};
}

Result<std::optional<std::string>> read_link(const sys::Directory& directory,
                                             const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(directory.fd(), name.c_str(), target.data(), target.size());
  if (size >= 0) return std::string{target.data(), static_cast<std::size_t>(size)};
  if (errno == ENOENT) return std::nullopt;
  if (errno == EINVAL) return fail(ErrorCode::kCorrupt, "not a symbolic link");
  return fail_errno(errno, "readlink");
}

}  // namespace

std::string index_name(std::string_view id) {
  return fnv1a_hex(id);
}

bool is_index_name(std::string_view name) {
  return name.size() == kIndexNameLength &&
         name.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool may_involve(const std::string& state_dir, std::string_view id) {
  struct stat found{};
  const auto lacks = [&](const std::string& name) {
    return ::lstat(cat(state_dir, "/", name).c_str(), &found) != 0 && errno == ENOENT;
  };
  // An index that is lost tells of none, as does one beside which the rows are.
  const std::string index{kContainersName};
  return lacks(index) || !lacks(cat(index, "/", index_name(id))) || lacks(std::string{kRowsName});
}

bool is_indexed(const std::string& state_dir, std::string_view id) {
  struct stat found{};
  return ::lstat(cat(state_dir, "/", kContainersName, "/", index_name(id)).c_str(), &found) == 0;
}

bool is_read_only(const std::string& path) {
  struct statfs found{};
  return ::statfs(path.c_str(), &found) == 0 && (found.f_flags & ST_RDONLY) != 0;
}

Result<sys::Directory> open_state_directory(const std::string& path) {
  auto directory = sys::Directory::open(without_trailing_slashes(path));
  if (!directory) return fail(std::move(directory).error().with_context("state directory"));
  PODQOS_TRY(check_state_directory(*directory));
  return directory;
}

Result<sys::Directory> make_state_directory(const std::string& path) {
  const std::string name = without_trailing_slashes(path);
  auto directory = open_state_directory(name);
  if (directory || directory.error().code != ErrorCode::kNotFound) return directory;
  // EEXIST: another process has made it since.
  if (::mkdir(name.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return fail_errno(errno, cat("make state directory ", name));
  return open_state_directory(name);
}

Result<StateDirectory> StateDirectory::open(const StoreOptions& options, Opening opening) {
  PODQOS_ASSIGN(auto top, opening == Opening::kMake ? make_state_directory(options.path)
                                                    : open_state_directory(options.path));
  const bool reads = opening == Opening::kRead || opening == Opening::kReadUnlocked;
  StateDirectory directory{std::move(top), reads};
  const bool lockable = opening != Opening::kRead || !is_read_only(options.path);
  if (opening != Opening::kReadUnlocked && lockable) {
    PODQOS_ASSIGN(directory.lock_,
                  sys::FileLock::acquire(directory.top_, kLockName, options.lock_timeout,
                                         options.deadline, *options.clock));
  }
  return directory;
}

Result<const sys::Directory*> StateDirectory::find(std::string_view subdirectory) {
  if (subdirectory.empty()) return &top_;
  const auto known = subdirectories_.find(subdirectory);
  if (known != subdirectories_.end()) return &known->second;
  auto opened = top_.open_directory(subdirectory);
  if (!opened && opened.error().code == ErrorCode::kNotFound) return nullptr;
  if (!opened) return fail(std::move(opened).error());
  return &subdirectories_.emplace(subdirectory, std::move(*opened)).first->second;
}

Result<const sys::Directory*> StateDirectory::find_or_make(std::string_view subdirectory) {
  auto found = find(subdirectory);
  if (!found || *found != nullptr) return found;
  PODQOS_TRY(top_.make_directory(subdirectory, kDirectoryMode));
  return find(subdirectory);
}

Result<std::optional<std::string>> StateDirectory::read(const std::string& path) {
  const auto& [subdirectory, name] = parts_of_path(path);
  PODQOS_ASSIGN(const auto directory, find(subdirectory));
  if (directory == nullptr) return std::nullopt;
  if (subdirectory == kContainersName) return read_link(*directory, name);
  auto text = directory->read_file(name, codec::kMaxRecordSize);
  if (text) return std::optional{*std::move(text)};
  if (text.error().code == ErrorCode::kNotFound) return std::nullopt;
  return fail(std::move(text).error());
}

Status StateDirectory::write(const std::string& path, std::string_view content) {
  const auto& [subdirectory, name] = parts_of_path(path);
  PODQOS_ASSIGN(const auto directory, find_or_make(subdirectory));
  if (subdirectory == kContainersName)
    return sys::replace_link(*directory, name, std::string{content});
  if (path == kRowsName) rows_ = {};  // the file is another one then
  return sys::replace_file(*directory, name, content);
}

Result<std::string> StateDirectory::read_rows() {
  // 16,000 pods, of which no node has a tenth: what is larger was not written by podqos.
  constexpr std::size_t kMost = std::size_t{4} << 20U;
  auto opened = top_.open_file(kRowsName, reads_ ? O_RDONLY : O_RDWR);
  if (!opened && opened.error().code == ErrorCode::kNotFound) return "";
  if (!opened) return fail(std::move(opened).error());
  rows_ = std::move(opened->fd);
  const auto size = static_cast<std::size_t>(opened->status.st_size);
  const std::string what = cat("read ", top_.path_of(kRowsName));
  if (size > kMost) return "";
  std::string bytes;
  int error = 0;
  bytes.resize_and_overwrite(size, [&](char* buffer, std::size_t most) {
    const ssize_t got = ::read(rows_.get(), buffer, most);
    if (got < 0) error = errno;
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  });
  if (error != 0) return fail_errno(error, what);
  return bytes;
}

Status StateDirectory::write_rows(std::size_t offset, std::string_view bytes) {
  if (!rows_.valid()) {
    PODQOS_ASSIGN(auto opened, top_.open_file(kRowsName, O_RDWR | O_CREAT));
    rows_ = std::move(opened.fd);
  }
  const ssize_t written =
      ::pwrite(rows_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (written == static_cast<ssize_t>(bytes.size())) return {};
  const std::string what = cat("write ", top_.path_of(kRowsName));
  return written < 0 ? fail_errno(errno, what) : fail_errno(ENOSPC, what);
}

Status StateDirectory::remove(const std::string& path) {
  const auto& [subdirectory, name] = parts_of_path(path);
  PODQOS_ASSIGN(const auto directory, find(subdirectory));
  if (directory != nullptr) PODQOS_TRY(directory->remove_file(name));
  return {};
}

Result<std::string> StateDirectory::set_aside(const std::string& path) {
  constexpr int kMaxSetAside = 1000;
  const auto& [subdirectory, name] = parts_of_path(path);
  PODQOS_ASSIGN(const auto directory, find(subdirectory));
  const std::string full = cat(directory->path(), "/", name);
  for (int n = 1; n <= kMaxSetAside; ++n) {
    std::string aside = cat(name, ".corrupt-", n);
    if (::renameat2(directory->fd(), name.c_str(), directory->fd(), aside.c_str(),
                    RENAME_NOREPLACE) == 0)
      return aside;
    if (const int err = errno; err != EEXIST)
      return fail_errno(err, cat("rename corrupt ", full, " to ", aside));
  }
  return fail(ErrorCode::kBusy,
              cat(full, " is corrupt, and ", kMaxSetAside,
                  " corrupt files of that name are kept already; remove ", name, ".corrupt-*"));
}

Result<std::vector<std::string>> StateDirectory::list(std::string_view subdirectory) {
  PODQOS_ASSIGN(const auto directory, find(subdirectory));
  if (directory == nullptr) return std::vector<std::string>{};
  PODQOS_ASSIGN(auto names, directory->entries());
  std::ranges::sort(names);
  return names;
}

}  // namespace podqos::store
