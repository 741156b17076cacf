#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/sys/fd.h"
#include "common/sys/sandbox.h"

namespace podqos::sys {

namespace {

/// LANDLOCK_ACCESS_FS_TRUNCATE, which the headers of Debian 12 do not have.
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14U;
/// The first version of the interface that knows it; landlock(7).
constexpr long kVersionWithTruncate = 3;

/// What applies to files; the kernel refuses everything else in a rule for one.
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
/// Moving a file to another directory is not among them: without a rule it is refused.
constexpr std::uint64_t kChanges = kOfFiles | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                   LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

Status allow_beneath(int ruleset, int place, std::uint64_t changes) {
  struct stat status{};
  if (::fstat(place, &status) != 0) return fail_errno(errno, "fstat of a place for Landlock");
  if (!S_ISDIR(status.st_mode)) changes &= kOfFiles;
  const landlock_path_beneath_attr rule{.allowed_access = changes, .parent_fd = place};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0U) != 0)
    return fail_errno(errno, "landlock_add_rule");
  return {};
}

}  // namespace

Result<bool> restrict_writes(std::span<const int> places) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  // ENOSYS, EOPNOTSUPP, or EPERM of a container's seccomp profile.
  if (version < 0) return false;
  const std::uint64_t changes = version < kVersionWithTruncate ? kChanges & ~kTruncate : kChanges;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = changes;
  // Without the members that later versions have.
  const UniqueFd ruleset{static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0U))};
  if (!ruleset.valid()) return fail_errno(errno, "landlock_create_ruleset");
  for (const int place : places)
    PODQOS_TRY(allow_beneath(ruleset.get(), place, changes));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(errno, "set no_new_privs");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0U) != 0)
    return fail_errno(errno, "landlock_restrict_self");
  return true;
}

}  // namespace podqos::sys
