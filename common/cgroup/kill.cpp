#include <cerrno>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/value.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

namespace {

/// Keeps what is in a cgroup and below from forking and from ending as long as the object lives, so
/// that pids that were read stay theirs. Does nothing where the machine has no freezer.
/// @note Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; cgroup-v2.rst, cgroup.freeze
class Frozen {
 public:
  Frozen(std::vector<OpenHierarchy>& hierarchies, const std::string& path) : path_{path} {
    for (OpenHierarchy& hierarchy : hierarchies) {
      const auto usable = hierarchy.is_usable();
      if (!usable || !*usable) continue;
      if (hierarchy.has("freezer")) {
        state_ = {.file = "freezer.state", .freeze = "FROZEN", .thaw = "THAWED"};
        hierarchy_ = &hierarchy;
      } else if (hierarchy.description().version == core::CgroupVersion::kV2 && !hierarchy_) {
        state_ = {.file = "cgroup.freeze", .freeze = "1", .thaw = "0"};
        hierarchy_ = &hierarchy;
      }
    }
    if (hierarchy_ && !hierarchy_->write(path_, state_.file, state_.freeze)) hierarchy_ = nullptr;
  }
  ~Frozen() {
    if (hierarchy_)
      static_cast<void>(hierarchy_->write(path_, state_.file, state_.thaw).has_value());
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  Frozen(Frozen&&) = delete;
  Frozen& operator=(Frozen&&) = delete;

  /// Whether the kernel has come to all processes; true without a freezer.
  [[nodiscard]] bool is_complete() {
    if (!hierarchy_) return true;
    const bool is_v2 = hierarchy_->description().version == core::CgroupVersion::kV2;
    const auto text = hierarchy_->read(path_, is_v2 ? "cgroup.events" : state_.file);
    return !text || (is_v2 ? find_key(*text, "frozen") == 1 : *text == state_.freeze);
  }

 private:
  struct State {
    const char* file = "";
    const char* freeze = "";
    const char* thaw = "";
  };

  const std::string& path_;
  OpenHierarchy* hierarchy_ = nullptr;
  State state_;
};

}  // namespace

Status Cgroupfs::kill(const core::KillProcesses& step) {
  if (primary().description().version == core::CgroupVersion::kV2) {
    // Since Linux 5.14; cgroup-v2.rst, cgroup.kill.
    const OrErrno<void> killed = primary().write(step.path, "cgroup.kill", "1");
    if (killed) return {};
    if (killed.error() != ENOENT)
      return fail_errno(killed.error(), cat(step.path, ": cgroup.kill"));
  }
  Frozen frozen{*hierarchies_, step.path};
  PODQOS_TRY(retry_until_done([&]() -> Result<bool> { return frozen.is_complete(); }));
  PODQOS_ASSIGN(const auto pids, processes(step.path));
  for (const Pid pid : pids)
    PODQOS_TRY(sys::kill_process(pid));
  return {};
}

}  // namespace podqos::cgroup
