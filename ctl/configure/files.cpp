#include "ctl/configure/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <ranges>
#include <system_error>

#include "common/base/text.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::ctl {
namespace {

constexpr mode_t kNewFile = 0644;
constexpr mode_t kNewDirectory = 0755;
/// The machine's engines are checked and restarted under the lock.
constexpr std::chrono::seconds kLockPatience{10};

/// Directory and name of an absolute path.
std::pair<std::string, std::string> split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

Result<sys::Directory> EngineFiles::open(const std::string& directory) const {
  if (root_.empty()) return sys::Directory::open(directory.empty() ? "/" : directory);
  PODQOS_ASSIGN(const auto root, sys::Directory::open(root_));
  return root.open_directory(directory.empty() ? "" : std::string_view{directory}.substr(1));
}

/// Where on this machine a path of the tree leads, its symlinks resolved inside of the tree as
/// chroot(2) would; a symlink if there are too many. By hand: RESOLVE_IN_ROOT of openat2(2) is
/// missing before Linux 5.6 and where a container engine's seccomp profile refuses the call.
std::string EngineFiles::resolve(const std::string& path) const {
  constexpr int kMaxLinks = 40;  // as the kernel's
  std::string found;
  std::vector<std::string> waiting = parts_of(path, '/');
  std::ranges::reverse(waiting);
  for (int links = 0; !waiting.empty();) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (name == "." || name == "..") {
      if (name == "..") found.resize(std::min(found.rfind('/'), found.size()));
      continue;
    }
    const std::string next = cat(found, "/", name);
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(cat(root_, next), error).string();
    if (!error && links++ == kMaxLinks) return cat(root_, next);
    if (!error && target.starts_with('/')) found.clear();
    if (error)
      found = next;
    else
      std::ranges::copy(parts_of(target, '/') | std::views::reverse, std::back_inserter(waiting));
  }
  return cat(root_, found);
}

Result<FileState> EngineFiles::read(const std::string& path) const {
  FileState state{.text = {}, .owner = {::geteuid(), ::getegid(), kNewFile}};
  const auto [parent, name] = split(path);
  const auto directory = open(parent);
  if (!directory && directory.error().code == ErrorCode::kNotFound) return state;
  if (!directory) return fail(directory.error());
  struct stat found{};
  if (::fstatat(directory->fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    const int err = errno;
    if (err == ENOENT) return state;
    return fail_errno(err, cat("stat ", root_, path));
  }
  state.owner = {.uid = found.st_uid, .gid = found.st_gid, .mode = found.st_mode};
  if (!S_ISLNK(found.st_mode)) {
    PODQOS_ASSIGN(auto text, directory->read_file(name, kMaxFile));
    return state.with(std::move(text));
  }
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(directory->fd(), name.c_str(), target.data(), target.size());
  if (length < 0) return fail_errno(errno, cat("read the link ", root_, path));
  state.kind = FileState::Kind::kLink;
  state.text.assign(target.data(), static_cast<std::size_t>(length));
  return state;
}

Result<std::optional<std::string>> EngineFiles::follow(const std::string& path) const {
  const auto [parent, name] = split(resolve(path));
  const auto directory = sys::Directory::open(cat(parent, "/"));
  auto text = directory ? directory->read_file(name, kMaxFile)
                        : Result<std::string>{fail(directory.error())};
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  return text;
}

bool EngineFiles::exists(const std::string& path) const {
  return ::access(resolve(path).c_str(), F_OK) == 0;
}

Result<std::vector<std::string>> EngineFiles::list(const std::string& directory,
                                                   Depth depth) const {
  const std::string top = resolve(directory);
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::recursive_directory_iterator each{top, error};
       !error && each != std::filesystem::end(each); each.increment(error)) {
    const bool is_directory =
        each->symlink_status(error).type() == std::filesystem::file_type::directory;
    if (depth == Depth::kOne) each.disable_recursion_pending();
    found.push_back(is_directory ? each->path() / "" : each->path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), cat("list ", root_, directory));
  std::ranges::sort(found);
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (const auto& path : found)
    paths.push_back(cat(directory, path.native().substr(top.size())));
  return paths;
}

Status EngineFiles::make_directories(const std::string& directory) const {
  if (directory.empty() || open(directory)) return {};
  const auto [parent, name] = split(directory);
  PODQOS_TRY(make_directories(parent));
  PODQOS_ASSIGN(const auto opened, open(parent));
  PODQOS_TRY(opened.make_directory(name, kNewDirectory));
  return {};
}

Status EngineFiles::write(const std::string& path, const FileState& state) const {
  const auto [parent, name] = split(path);
  PODQOS_ASSIGN(const auto directory, open(parent));
  switch (state.kind) {
    case FileState::Kind::kAbsent: return sys::remove_durable_file(directory, name);
    case FileState::Kind::kFile:
      return sys::replace_file(directory, name, state.text, state.owner, sys::Durability::kDurable);
    case FileState::Kind::kLink: return sys::make_durable_link(directory, name, state.text);
  }
  return {};
}

Status EngineFiles::put(const std::string& path, const FileState& after) {
  PODQOS_ASSIGN(auto before, read(path));
  PODQOS_TRY(write(path, after));
  made_.emplace_back(path, std::move(before));
  return {};
}

Status EngineFiles::lock() {
  // The lock file can only be opened by root; any user who can open an engine's directory could
  // hold a lock on the directory. Other users only change trees of their own.
  if (::geteuid() != 0) return {};
  PODQOS_ASSIGN(const auto directory, sys::Directory::open("/run"));
  const char* name = root_.empty() ? "podqos-configure.lock" : "podqos-configure-root.lock";
  auto lock = sys::FileLock::acquire(directory, name, kLockPatience);
  if (!lock)
    return fail(std::move(lock).error().with_context("another podqosctl is changing files"));
  lock_ = std::move(*lock);
  return {};
}

Status EngineFiles::make(const FileChange& change) {
  PODQOS_TRY(make_directories(split(change.path).first));
  PODQOS_ASSIGN(const auto now, read(change.path));
  if (now != change.before)
    return fail(ErrorCode::kBusy, cat(change.path, ": modified concurrently; retry"));
  const std::string backup = cat(change.path, kBackupSuffix);
  if (change.backup && !exists(backup)) PODQOS_TRY(put(backup, change.before));
  PODQOS_TRY(put(change.path, change.after));
  return change.drop_backup ? put(backup, {}) : Status{};
}

Status EngineFiles::apply(const std::vector<FileChange>& changes) {
  if (changes.empty()) return {};
  PODQOS_TRY(lock());
  for (const FileChange& change : changes)
    if (auto made = make(change); !made) return roll_back(std::move(made).error());
  return {};
}

std::unexpected<Error> EngineFiles::roll_back(Error reason) {
  if (made_.empty()) return fail(std::move(reason));
  std::string restored = "; changes rolled back";
  for (const auto& [path, before] : made_ | std::views::reverse)
    if (const auto undone = write(path, before); !undone)
      restored = cat("; cannot restore ", root_, path, ": ", undone.error().message);
  made_.clear();
  reason.message += restored;
  return fail(std::move(reason));
}

}  // namespace podqos::ctl
