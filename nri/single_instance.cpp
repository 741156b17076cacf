#include "nri/single_instance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"

namespace podqos::nri {

namespace {

/// The lock file in the state directory; it contains the holder's pid.
constexpr const char* kLockName = "nri.lock";
/// Bytes of the lock file that are read.
constexpr std::size_t kLongestPid = 16;

/// The pid in the lock file; nullopt if it has none.
std::optional<Pid> holder_of(const sys::Directory& directory) {
  const auto text = directory.read_file(kLockName, kLongestPid);
  if (!text) return std::nullopt;
  const auto pid = parse_int(std::string_view{*text}.substr(0, text->find('\n')));
  if (!pid || *pid <= 0 || !std::in_range<pid_t>(*pid)) return std::nullopt;
  return Pid{static_cast<pid_t>(*pid)};
}

/// Writes this process's pid into the lock file, for the message of another plugin.
Status name_holder(const sys::Directory& directory) {
  PODQOS_ASSIGN(const auto file, directory.open_file(kLockName, O_WRONLY | O_TRUNC));
  const std::string text = cat(::getpid(), "\n");
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(errno, cat("write ", directory.path(), "/", kLockName));
  return {};
}

}  // namespace

bool is_plugin(Pid pid) {
  const auto own = sys::stat_of(Pid{::getpid()});
  const auto other = sys::stat_of(pid);
  return own && *own && other && *other && (*own)->name == (*other)->name;
}

Result<SingleInstance> SingleInstance::open(const std::string& state_directory,
                                            const sys::Clock& clock) {
  PODQOS_ASSIGN(auto directory, store::make_state_directory(state_directory));
  PODQOS_TRY(store::check_state_directory(directory));
  return SingleInstance{std::move(directory), clock};
}

Result<SingleInstance> SingleInstance::acquire(const std::string& state_directory,
                                               std::chrono::milliseconds timeout,
                                               const sys::Clock& clock) {
  auto only = open(state_directory, clock);
  if (!only) return only;
  PODQOS_TRY(only->lock(timeout));
  return only;
}

Result<SingleInstance> SingleInstance::contend(const std::string& state_directory,
                                               const sys::Clock& clock) {
  auto only = open(state_directory, clock);
  if (!only) return only;
  if (auto held = only->hold(); !held && held.error().code != ErrorCode::kConflict)
    return fail(std::move(held).error());
  return only;
}

Status SingleInstance::take(std::chrono::milliseconds timeout) {
  if (is_held()) return {};
  auto held = hold();
  if (held || held.error().code != ErrorCode::kConflict) return held;
  const auto holder = holder_of(directory_);
  // It may have ended without its successor's pid in the file yet, and its pid be another's.
  if (!holder || !is_plugin(*holder) || ::kill(static_cast<pid_t>(holder->value()), SIGUSR1) != 0)
    return held;
  return lock(timeout);
}

Status SingleInstance::lock(std::chrono::milliseconds timeout) {
  auto lock =
      sys::FileLock::acquire(directory_, kLockName, timeout, sys::Clock::TimePoint::max(), *clock_);
  if (!lock && lock.error().code == ErrorCode::kTimeout) {
    const auto holder = holder_of(directory_);
    const std::string name = holder ? cat(" (process ", holder->value(), ")") : "";
    return fail(ErrorCode::kConflict,
                cat("another podqos-nri", name, " holds ", directory_.path(), "/", kLockName,
                    ": stop it first, as two plugins make container creation fail"));
  }
  if (!lock) return fail(std::move(lock).error());
  PODQOS_TRY(name_holder(directory_));
  lock_ = std::move(*lock);
  return {};
}

}  // namespace podqos::nri
