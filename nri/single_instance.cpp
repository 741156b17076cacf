#include "nri/single_instance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"

namespace podqos::nri {

namespace {

/// The lock file in the state directory; it contains the holder's pid.
constexpr const char* kLockName = "nri.lock";
/// Bytes of the lock file that are read.
constexpr std::size_t kLongestPid = 16;

/// " (process 42)", or "" if the lock file has no pid.
std::string holder_of(const sys::Directory& directory) {
  const auto text = directory.read_file(kLockName, kLongestPid);
  if (!text) return "";
  const auto pid = parse_int(std::string_view{*text}.substr(0, text->find('\n')));
  return pid ? cat(" (process ", *pid, ")") : "";
}

/// Writes this process's pid into the lock file, for the message of another plugin.
Status name_holder(const sys::Directory& directory) {
  const auto file = directory.open_file(kLockName, O_WRONLY | O_TRUNC);
  if (!file) return fail(file.error());
  const std::string text = cat(::getpid(), "\n");
  if (::write(file->get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(errno, cat("write ", directory.path(), "/", kLockName));
  return {};
}

}  // namespace

Result<SingleInstance> SingleInstance::acquire(const std::string& state_directory,
                                               std::chrono::milliseconds timeout,
                                               const sys::Clock& clock) {
  const auto directory = store::make_state_directory(state_directory);
  if (!directory) return fail(directory.error());
  if (const auto owner = store::check_state_directory(*directory); !owner)
    return fail(owner.error());
  auto lock =
      sys::FileLock::acquire(*directory, kLockName, timeout, sys::Clock::TimePoint::max(), clock);
  if (!lock && lock.error().code == ErrorCode::kTimeout) {
    return fail(ErrorCode::kConflict,
                cat("another podqos-nri", holder_of(*directory), " holds ", directory->path(), "/",
                    kLockName, ": stop it first, as two plugins make container creation fail"));
  }
  if (!lock) return fail(std::move(lock).error());
  if (auto named = name_holder(*directory); !named) return fail(std::move(named).error());
  return SingleInstance{std::move(*lock)};
}

}  // namespace podqos::nri
