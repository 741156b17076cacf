#include "ctl/configure/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/text.h"
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

/// The target of a symlink; nullopt and errno for anything else.
std::optional<std::string> read_link(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string{target.data(), static_cast<std::size_t>(length)};
}

/// What is at a name, not followed. Where there is nothing, a new file's owner and mode.
struct Entry {
  FileState state;
  sys::FileOwner owner;
};

Result<Entry> entry_at(const sys::Directory& directory, const std::string& name) {
  struct stat found{};
  if (::fstatat(directory.fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    const int err = errno;
    if (err != ENOENT) return fail_errno(err, cat("stat ", directory.path(), "/", name));
    return Entry{.state = {}, .owner = {.uid = ::geteuid(), .gid = ::getegid(), .mode = kNewFile}};
  }
  Entry entry{.state = {},
              .owner = {.uid = found.st_uid, .gid = found.st_gid, .mode = found.st_mode}};
  if (S_ISLNK(found.st_mode)) {
    auto target = read_link(directory.fd(), name);
    if (!target) return fail_errno(errno, cat("read the link ", directory.path(), "/", name));
    entry.state = FileState::link(std::move(*target));
    return entry;
  }
  PODQOS_ASSIGN(auto text, directory.read_file(name, EngineFiles::kMaxFile));
  entry.state = FileState::file(std::move(text));
  return entry;
}

Status write_state(const sys::Directory& directory, const std::string& name, const FileState& state,
                   const sys::FileOwner& owner) {
  switch (state.kind) {
    case FileState::Kind::kAbsent: return sys::remove_durable_file(directory, name);
    case FileState::Kind::kFile:
      return sys::replace_durable_file(directory, name, state.text, owner);
    case FileState::Kind::kLink: return sys::make_durable_link(directory, name, state.text);
  }
  return {};
}

/// Splits a path into its components, the last one first.
std::vector<std::string> reversed_components(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(component.size() + 1, path.size()));
    if (!component.empty() && component != ".") components.emplace_back(component);
  }
  std::ranges::reverse(components);
  return components;
}

/// How to open a component of a path with this many behind it.
int open_flags(std::size_t waiting) {
  const int kind = waiting == 0 ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
  return kind | O_NOFOLLOW | O_CLOEXEC;
}

/// Opens a file for reading below `root`, with its symlinks resolved inside of it, as chroot(2)
/// would. By hand: RESOLVE_IN_ROOT of openat2(2) is missing before Linux 5.6 and where a container
/// engine's seccomp profile refuses the call.
/// @return an invalid descriptor and errno
sys::UniqueFd open_below(const sys::Directory& root, const std::string& path) {
  constexpr int kMaxLinks = 40;  // as the kernel's
  std::vector<std::string> waiting = reversed_components(path);
  std::vector<sys::UniqueFd> parents;
  for (int links = 0; !waiting.empty();) {
    const int at = parents.empty() ? root.fd() : parents.back().get();
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (name == "..") {
      if (!parents.empty()) parents.pop_back();
      continue;
    }
    if (const auto target = read_link(at, name)) {
      if (++links > kMaxLinks) break;
      if (target->starts_with('/')) parents.clear();
      std::ranges::move(reversed_components(*target), std::back_inserter(waiting));
      continue;
    }
    sys::UniqueFd next{::openat(at, name.c_str(), open_flags(waiting.size()))};
    if (!next.valid() || waiting.empty()) return next;
    parents.push_back(std::move(next));
  }
  errno = ELOOP;
  return {};
}

}  // namespace

ConfigSource EngineFiles::source() const {
  return {.read = [this](const std::string& path) { return read(path); },
          .follow = [this](const std::string& path) { return follow(path); },
          .list = [this](const std::string& directory) { return list(directory); }};
}

bool EngineFiles::exists(const std::string& path) const {
  struct stat found{};
  if (root_.empty()) return ::stat(path.c_str(), &found) == 0;
  const auto root = sys::Directory::open(root_);
  return root && open_below(*root, path).valid();
}

std::optional<LastChange> EngineFiles::last_change(const std::vector<std::string>& paths) const {
  std::optional<LastChange> last;
  for (const std::string& path : paths) {
    struct stat found{};
    if (::stat(cat(root_, path).c_str(), &found) != 0) continue;
    const std::chrono::sys_time<std::chrono::nanoseconds> time{
        std::chrono::seconds{found.st_ctim.tv_sec} +
        std::chrono::nanoseconds{found.st_ctim.tv_nsec}};
    if (!last || time > last->time) last = LastChange{.path = path, .time = time};
  }
  return last;
}

Result<sys::Directory> EngineFiles::open(const std::string& directory) const {
  if (root_.empty()) return sys::Directory::open(directory.empty() ? "/" : directory);
  PODQOS_ASSIGN(const auto root, sys::Directory::open(root_));
  return root.open_directory(directory.empty() ? "" : std::string_view{directory}.substr(1));
}

Result<FileState> EngineFiles::read(const std::string& path) const {
  const auto [parent, name] = split(path);
  auto directory = open(parent);
  if (!directory && directory.error().code == ErrorCode::kNotFound) return FileState{};
  if (!directory) return fail(std::move(directory).error());
  PODQOS_ASSIGN(auto entry, entry_at(*directory, name));
  return std::move(entry.state);
}

Result<std::optional<std::string>> EngineFiles::follow(const std::string& path) const {
  PODQOS_ASSIGN(const auto root, sys::Directory::open(root_.empty() ? "/" : root_));
  sys::UniqueFd fd =
      root_.empty()
          ? sys::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)}
          : open_below(root, path);
  if (!fd.valid()) {
    const int err = errno;
    if (err == ENOENT || err == ENOTDIR) return std::nullopt;
    return fail_errno(err, cat("open ", root_, path));
  }
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return fail_errno(errno, cat("stat ", root_, path));
  if (!S_ISREG(found.st_mode))
    return fail(ErrorCode::kConflict, cat(root_, path, ": not a regular file"));
  PODQOS_ASSIGN(auto text, sys::read_all(fd.get(), kMaxFile, cat(root_, path)));
  return text;
}

Result<std::vector<std::string>> EngineFiles::list(const std::string& directory) const {
  auto opened = open(directory);
  if (!opened && opened.error().code == ErrorCode::kNotFound) return std::vector<std::string>{};
  if (!opened) return fail(std::move(opened).error());
  PODQOS_ASSIGN(auto entries, opened->entries());
  std::ranges::sort(entries);
  PODQOS_ASSIGN(const auto directories, opened->subdirectories());
  for (std::string& entry : entries)
    if (std::ranges::find(directories, entry) != directories.end()) entry += '/';
  return entries;
}

Status EngineFiles::make_directories(const std::string& directory) const {
  if (directory.empty() || open(directory)) return {};
  const auto [parent, name] = split(directory);
  PODQOS_TRY(make_directories(parent));
  PODQOS_ASSIGN(const auto opened, open(parent));
  PODQOS_TRY(opened.make_directory(name, kNewDirectory));
  return {};
}

Status EngineFiles::put(const std::string& path, const FileState& after,
                        const sys::FileOwner& owner) {
  const auto [parent, name] = split(path);
  PODQOS_ASSIGN(auto directory, open(parent));
  PODQOS_ASSIGN(auto before, entry_at(directory, name));
  PODQOS_TRY(write_state(directory, name, after, owner));
  made_.push_back({.directory = std::move(directory),
                   .name = name,
                   .state = std::move(before.state),
                   .owner = before.owner});
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
  const auto [parent, name] = split(change.path);
  PODQOS_TRY(make_directories(parent));
  PODQOS_ASSIGN(const auto directory, open(parent));
  PODQOS_ASSIGN(const auto now, entry_at(directory, name));
  if (now.state != change.before)
    return fail(ErrorCode::kBusy, cat(change.path, ": modified concurrently; retry"));
  const std::string backup = cat(change.path, kBackupSuffix);
  if (change.backup && !exists(backup)) PODQOS_TRY(put(backup, change.before, now.owner));
  PODQOS_TRY(put(change.path, change.after, now.owner));
  return change.drop_backup ? put(backup, {}, now.owner) : Status{};
}

Status EngineFiles::apply(const ConfigurePlan& plan) {
  if (plan.changes.empty()) return {};
  PODQOS_TRY(lock());
  for (const FileChange& change : plan.changes) {
    auto made = make(change);
    if (made) continue;
    if (auto undone = roll_back(); !undone)
      return fail(made.error().code, cat(made.error().message, "; ", undone.error().message));
    return made;
  }
  return {};
}

Status EngineFiles::roll_back() {
  Status result;
  for (; !made_.empty(); made_.pop_back()) {
    const Made& made = made_.back();
    auto undone = write_state(made.directory, made.name, made.state, made.owner);
    if (!undone && result)
      result = fail(std::move(undone).error().with_context(
          cat("cannot restore ", made.directory.path(), "/", made.name)));
  }
  return result;
}

}  // namespace podqos::ctl
