#include "common/cgroup/ensure.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/layout.h"

namespace podqos::cgroup {

namespace {

constexpr int kMaxAttempts = 8;  // each needs a concurrent removal of an ancestor
constexpr const char* kSubtreeControl = "cgroup.subtree_control";

/// What to write to cgroup.subtree_control, "+cpu +memory": the controllers that podqos uses, the
/// hierarchy has and `enabled` lacks.
std::string missing_controllers(const OpenHierarchy& hierarchy, std::string_view enabled,
                                std::optional<core::Controller> also) {
  std::string missing;
  for (const core::ControllerRow& row : core::kControllers) {
    if (row.on_demand && row.controller != also) continue;
    if (!hierarchy.has(row.v2_name) || has_word(enabled, row.v2_name)) continue;
    missing += cat(missing.empty() ? "" : " ", "+", row.v2_name);
  }
  return missing;
}

/// Up to five pids of a cgroup, "12, 13"; "" if it has none.
std::string some_processes(OpenHierarchy& hierarchy, std::string_view path) {
  constexpr int kShown = 5;
  const Result<std::string> pids = hierarchy.read(path, "cgroup.procs");
  if (!pids) return {};
  std::string shown;
  std::string_view rest = *pids;
  for (int i = 0; i < kShown && !rest.empty(); ++i)
    shown += cat(i > 0 ? ", " : "", read_until(rest, '\n'));
  if (!rest.empty()) shown += ", …";
  return shown;
}

/// The error of a refused write to cgroup.subtree_control.
Error refused_to_enable(const OpenHierarchy& hierarchy, std::string_view path,
                        std::string_view controllers, int err) {
  return Error::from_errno(err, cat(hierarchy.description().mount_point, path == "/" ? "" : path,
                                    ": write \"", controllers, "\" to ", kSubtreeControl));
}

/// What is known of a refusal beyond its errno.
/// @note kernel/sched/rt.c sched_rt_can_attach().
std::string cause_of(std::string_view controller, int err) {
  if (controller != "+cpu" || err != EINVAL) return {};
  return " (a kernel with CONFIG_RT_GROUP_SCHED refuses it while a realtime process runs outside "
         "the root cgroup: find it with `ps -eLo pid,cls,rtprio,cgroup,comm | grep -E ' (FF|RR) "
         "'`, "
         "give it an ordinary policy or move it to the root cgroup, and run podqosctl reconcile)";
}

/// Enables one controller after the other, once all together have been refused. Those that are
/// refused are noted: the pods have the others nevertheless.
/// @return the refusal of the file itself, or the first one if all of several are refused: then it
///         is not about a controller; kNotFound if an ancestor does not have a controller any more
Status enable_each(OpenHierarchy& hierarchy, std::string_view path, std::string_view controllers) {
  std::map<std::string, Error, std::less<>> refused;
  std::size_t tried = 0;
  while (!controllers.empty()) {
    const std::string_view controller = read_until(controllers, ' ');
    ++tried;
    const OrErrno<void> written = hierarchy.write(path, kSubtreeControl, controller);
    if (written) continue;
    Error error = refused_to_enable(hierarchy, path, controller, written.error());
    // An ancestor has lost the controller since it was enabled there, as while systemd realizes its
    // units: ensure_cgroup() begins again.
    if (written.error() == ENOENT || error.code == ErrorCode::kPermission)
      return fail(std::move(error));
    error.message += cause_of(controller, written.error());
    refused.emplace(controller.substr(1), std::move(error));
  }
  const bool all = refused.size() == tried;
  for (auto& [controller, error] : refused) {
    if (all && tried > 1) return fail(std::move(error));
    hierarchy.refuse(controller, std::move(error.message));
  }
  return {};
}

/// Enables controllers for the children of a cgroup.
Status enable(OpenHierarchy& hierarchy, std::string_view path, const std::string& controllers) {
  OrErrno<void> written = hierarchy.write(path, kSubtreeControl, controllers);
  if (written) return {};
  // EOPNOTSUPP instead of EBUSY if systemd has enabled threaded controllers here: the kernel then
  // treats the cgroup as the root of a threaded subtree.
  if (written.error() != EBUSY && written.error() != EOPNOTSUPP)
    return enable_each(hierarchy, path, controllers);
  const std::string pids = some_processes(hierarchy, path);
  // The processes have ended meanwhile.
  if (pids.empty()) written = hierarchy.write(path, kSubtreeControl, controllers);
  if (written) return {};
  Error error = refused_to_enable(hierarchy, path, controllers, written.error());
  if (!pids.empty()) {
    // Unlike other EBUSY errors, retrying does not help.
    error.code = ErrorCode::kConflict;
    error.message += cat(" (process ", pids,
                         " runs in it, but a cgroup that enables controllers for its children "
                         "cannot contain processes: move it to a leaf cgroup)");
  }
  return fail(std::move(error));
}

/// Gives a cgroup what its parent has in a cpuset file.
Status inherit(OpenHierarchy& hierarchy, std::string_view path, const char* file,
               std::string_view inherited) {
  const OrErrno<void> written = hierarchy.write(path, file, inherited);
  if (written) return {};
  return fail_errno(written.error(), cat(hierarchy.description().mount_point, path, ": write \"",
                                         inherited, "\" to ", file));
}

/// Makes a cgroup and the missing ones above it, and configures them.
class Walk {
 public:
  Walk(OpenHierarchy& hierarchy, std::optional<core::Controller> also)
      : hierarchy_(hierarchy), also_(also) {}

  /// Makes `path` exist and fit for its use.
  Status prepare(const std::string& path, CgroupUse use) {
    if (hierarchy_.description().version == core::CgroupVersion::kV2) {
      return use == CgroupUse::kInner ? prepare_inner(path) : prepare_leaf(path);
    }
    if (!hierarchy_.has("cpuset")) return prepare_plain(path);
    PODQOS_TRY(prepare_cpuset(path));
    return {};
  }

 private:
  Status prepare_leaf(const std::string& path) {
    if (path == "/") return {};
    PODQOS_TRY(prepare_inner(std::string{parent_of(path)}));
    PODQOS_TRY(hierarchy_.make(path));
    return {};
  }

  Status prepare_inner(const std::string& path) {
    const auto enabled = hierarchy_.read(path, kSubtreeControl);
    const bool is_new = !enabled && enabled.error().code == ErrorCode::kNotFound;
    if (!enabled && !is_new) return fail(enabled.error());
    // A controller enabled here is enabled in all ancestors; if nothing is missing here, nothing is
    // missing above.
    if (enabled && missing_controllers(hierarchy_, *enabled, also_).empty()) return {};
    if (path != "/") PODQOS_TRY(prepare_inner(std::string{parent_of(path)}));
    if (is_new) PODQOS_TRY(hierarchy_.make(path));
    // What an ancestor has been refused is not available here.
    const std::string missing = missing_controllers(hierarchy_, enabled.value_or(""), also_);
    return missing.empty() ? Status{} : enable(hierarchy_, path, missing);
  }

  /// @return the CPUs of the cgroup
  Result<std::string> prepare_cpuset(const std::string& path) {
    auto cpus = hierarchy_.read(path, "cpuset.cpus");
    const bool is_new = !cpus && cpus.error().code == ErrorCode::kNotFound && path != "/";
    // The CPUs are copied last; if they are set, so are the memory nodes, and both in all
    // ancestors.
    if (!is_new && (!cpus || !cpus->empty() || path == "/")) return cpus;
    const std::string parent{parent_of(path)};
    PODQOS_ASSIGN(auto inherited, prepare_cpuset(parent));
    PODQOS_ASSIGN(const bool made, is_new ? hierarchy_.make(path) : false);
    PODQOS_ASSIGN(const auto own, made ? "" : hierarchy_.read(path, "cpuset.mems"));
    if (own.empty()) {
      PODQOS_ASSIGN(const auto nodes, hierarchy_.read(parent, "cpuset.mems"));
      PODQOS_TRY(inherit(hierarchy_, path, "cpuset.mems", nodes));
    }
    PODQOS_TRY(inherit(hierarchy_, path, "cpuset.cpus", inherited));
    return inherited;
  }

  Status prepare_plain(const std::string& path) {
    if (path == "/") return {};
    const auto made = hierarchy_.make(path);
    if (made) return {};
    if (made.error().code != ErrorCode::kNotFound) return fail(made.error());
    PODQOS_TRY(prepare_plain(std::string{parent_of(path)}));
    PODQOS_TRY(hierarchy_.make(path));
    return {};
  }

  OpenHierarchy& hierarchy_;
  std::optional<core::Controller> also_;
};

}  // namespace

Status ensure_cgroup(OpenHierarchy& hierarchy, const std::string& path, CgroupUse use,
                     std::optional<core::Controller> also) {
  Walk walk{hierarchy, also};
  Status done;
  // Again while an ancestor is removed concurrently.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    done = walk.prepare(path, use);
    if (done || done.error().code != ErrorCode::kNotFound) break;
  }
  return done;
}

}  // namespace podqos::cgroup
