#include "nri/single_instance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/text.h"
#include "common/store/state_directory.h"

namespace podqos::nri {

namespace {

/// The lock file in the state directory; it contains the holder's pid.
constexpr const char* kLockName = "nri.lock";

/// Describes the process whose pid is in the lock file; "" if it has none.
std::string holder_of(const sys::Directory& directory) {
  constexpr std::size_t kLongest = 16;
  const auto text = directory.read_file(kLockName, kLongest);
  const auto pid = text ? parse_int(without_newline(*text)) : std::nullopt;
  return pid ? cat(" (process ", *pid, ")") : "";
}

}  // namespace

Result<SingleInstance> SingleInstance::open(const std::string& state_directory) {
  PODQOS_ASSIGN(auto directory, store::make_state_directory(state_directory));
  PODQOS_TRY(store::check_state_directory(directory));
  return SingleInstance{std::move(directory)};
}

Status SingleInstance::hold(std::chrono::milliseconds timeout, const sys::Clock& clock) {
  auto lock =
      sys::FileLock::acquire(directory_, kLockName, timeout, sys::Clock::TimePoint::max(), clock);
  if (!lock && lock.error().code == ErrorCode::kTimeout) {
    return fail(ErrorCode::kTimeout,
                cat("another podqos-nri", holder_of(directory_), " holds ", directory_.path(), "/",
                    kLockName, ": only one may serve a runtime"));
  }
  if (!lock) return fail(std::move(lock).error());
  PODQOS_ASSIGN(const auto file, directory_.open_file(kLockName, O_WRONLY | O_TRUNC));
  const std::string text = cat(::getpid(), "\n");
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(errno, cat("write ", directory_.path(), "/", kLockName));
  lock_ = std::move(*lock);
  return {};
}

}  // namespace podqos::nri
