#include "ctl/configure/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <ranges>
#include <system_error>

#include "common/base/text.h"
#include "common/sys/directory.h"

namespace podqos::ctl {
namespace {

using std::filesystem::path;

constexpr mode_t kNewFile = 0644;
constexpr mode_t kNewDirectory = 0755;
/// The machine's engines are checked and restarted under the lock.
constexpr std::chrono::seconds kLockPatience{10};

std::string parent_of(const std::string& file) {
  return path{file}.parent_path();
}
std::string name_of(const std::string& file) {
  return path{file}.filename();
}

}  // namespace

Result<sys::Directory> EngineFiles::open(const std::string& directory) const {
  if (root_.empty()) return sys::Directory::open(directory);
  PODQOS_ASSIGN(const auto root, sys::Directory::open(root_));
  return root.open_directory(std::string_view{directory}.substr(1));
}

/// Where on this machine a path of the tree leads, its symlinks resolved inside of the tree as
/// chroot(2) would; a symlink if there are too many. By hand: RESOLVE_IN_ROOT of openat2(2) is
/// missing before Linux 5.6 and where a container engine's seccomp profile refuses the call.
std::string EngineFiles::resolve(const std::string& file) const {
  constexpr int kMaxLinks = 40;  // as the kernel's
  path found = "/";
  std::vector<std::string> waiting = parts_of(file, '/');
  std::ranges::reverse(waiting);
  for (int links = 0; !waiting.empty();) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (name == "..") found = found.parent_path();
    if (name == "." || name == "..") continue;
    const path next = found / name;
    std::error_code error;
    const path target = std::filesystem::read_symlink(root_ + next.native(), error);
    if (!error && links++ == kMaxLinks) return root_ + next.native();
    if (error) found = next;
    if (target.is_absolute()) found = "/";
    std::ranges::copy(parts_of(target.native(), '/') | std::views::reverse,
                      std::back_inserter(waiting));
  }
  return root_ + found.native();
}

Result<FileState> EngineFiles::read(const std::string& file) const {
  FileState state{.text = {}, .owner = {::geteuid(), ::getegid(), kNewFile}};
  const std::string name = name_of(file);
  const auto directory = open(parent_of(file));
  if (!directory && directory.error().code == ErrorCode::kNotFound) return state;
  if (!directory) return fail(directory.error());
  struct stat found{};
  if (::fstatat(directory->fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    const int err = errno;
    if (err == ENOENT) return state;
    return fail_errno(err, cat("stat ", root_, file));
  }
  state.owner = {.uid = found.st_uid, .gid = found.st_gid, .mode = found.st_mode};
  if (!S_ISLNK(found.st_mode)) {
    PODQOS_ASSIGN(auto text, directory->read_file(name, kMaxFile));
    return state.with(std::move(text));
  }
  state.kind = FileState::Kind::kLink;
  state.text.resize(static_cast<std::size_t>(found.st_size));
  if (::readlinkat(directory->fd(), name.c_str(), state.text.data(), state.text.size()) < 0)
    return fail_errno(errno, cat("read the link ", root_, file));
  return state;
}

Result<std::optional<std::string>> EngineFiles::follow(const std::string& file) const {
  const std::string real = resolve(file);
  const auto directory = sys::Directory::open(parent_of(real));
  auto text = directory ? directory->read_file(name_of(real), kMaxFile)
                        : Result<std::string>{fail(directory.error())};
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  return text;
}

bool EngineFiles::exists(const std::string& file) const {
  return ::access(resolve(file).c_str(), F_OK) == 0;
}

Result<std::vector<std::string>> EngineFiles::list(const std::string& directory,
                                                   Depth depth) const {
  const std::string top = resolve(directory);
  std::error_code error;
  std::vector<path> found;
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
  for (const path& each : found)
    paths.push_back(cat(directory, each.native().substr(top.size())));
  return paths;
}

Status EngineFiles::make_directories(const std::string& directory) const {
  if (directory == "/" || open(directory)) return {};
  PODQOS_TRY(make_directories(parent_of(directory)));
  PODQOS_ASSIGN(const auto parent, open(parent_of(directory)));
  PODQOS_TRY(parent.make_directory(name_of(directory), kNewDirectory));
  return {};
}

Status EngineFiles::write(const std::string& file, const FileState& state) const {
  PODQOS_ASSIGN(const auto directory, open(parent_of(file)));
  const std::string name = name_of(file);
  switch (state.kind) {
    case FileState::Kind::kAbsent: return sys::remove_durable_file(directory, name);
    case FileState::Kind::kFile:
      return sys::replace_file(directory, name, state.text, state.owner, sys::Durability::kDurable);
    case FileState::Kind::kLink: return sys::make_durable_link(directory, name, state.text);
  }
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
  const auto put = [&](const std::string& file, const FileState& before,
                       const FileState& after) -> Status {
    PODQOS_TRY(write(file, after));
    made_.emplace_back(file, before);
    return {};
  };
  const std::string backup = cat(change.path, kBackupSuffix);
  PODQOS_TRY(make_directories(parent_of(change.path)));
  PODQOS_ASSIGN(const auto now, read(change.path));
  PODQOS_ASSIGN(const auto kept, read(backup));
  if (now != change.before)
    return fail(ErrorCode::kBusy, cat(change.path, ": modified concurrently; retry"));
  if (change.backup && !kept.exists()) PODQOS_TRY(put(backup, kept, now));
  PODQOS_TRY(put(change.path, now, change.after));
  return change.drop_backup ? put(backup, kept, {}) : Status{};
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
  for (const auto& [file, before] : made_ | std::views::reverse)
    if (const auto undone = write(file, before); !undone)
      restored = cat("; cannot restore ", root_, file, ": ", undone.error().message);
  made_.clear();
  reason.message += restored;
  return fail(std::move(reason));
}

}  // namespace podqos::ctl
