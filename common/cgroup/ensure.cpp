#include "common/cgroup/ensure.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/control_file.h"
#include "common/core/cgroups/layout.h"

namespace podqos::cgroup {

namespace {

/// Readable by all, like cgroups made by runc and systemd.
constexpr mode_t kMode = 0755;
constexpr int kMaxAttempts = 8;  // each needs a concurrent removal of an ancestor
constexpr const char* kSubtreeControl = "cgroup.subtree_control";

enum class Age : std::uint8_t { kExisting, kNew };

/// What to write to cgroup.subtree_control, "+cpu +memory": the controllers that podqos uses, the
/// hierarchy has and `enabled` lacks.
std::string missing_controllers(const OpenHierarchy& hierarchy, std::string_view enabled,
                                std::optional<core::Controller> also) {
  std::string missing;
  for (const core::ControllerRow& row : core::kControllers) {
    if (row.enabled == core::Enabled::kOnDemand && row.controller != also) continue;
    if (!hierarchy.has(row.v2_name) || has_word(enabled, row.v2_name)) continue;
    missing += cat(missing.empty() ? "" : " ", "+", row.v2_name);
  }
  return missing;
}

/// Up to five pids of a cgroup, "12, 13"; "" if it has none.
std::string some_processes(const sys::Directory& cgroup) {
  constexpr int kShown = 5;
  const Result<std::string> pids = read_value(cgroup, "cgroup.procs");
  if (!pids) return {};
  std::string shown;
  std::string_view rest = *pids;
  for (int i = 0; i < kShown && !rest.empty(); ++i)
    shown += cat(i > 0 ? ", " : "", read_until(rest, '\n'));
  if (!rest.empty()) shown += ", …";
  return shown;
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
Status enable_each(OpenHierarchy& hierarchy, const sys::Directory& cgroup,
                   std::string_view controllers) {
  std::map<std::string, Error, std::less<>> refused;
  std::size_t tried = 0;
  while (!controllers.empty()) {
    const std::string_view controller = read_until(controllers, ' ');
    ++tried;
    const OrErrno<void> written = write_value(cgroup, kSubtreeControl, std::string{controller});
    if (written) continue;
    Error error = Error::from_errno(
        written.error(), cat(cgroup.path(), ": write \"", controller, "\" to ", kSubtreeControl));
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
Status enable(OpenHierarchy& hierarchy, const sys::Directory& cgroup,
              const std::string& controllers) {
  const OrErrno<void> written = write_value(cgroup, kSubtreeControl, controllers);
  if (written) return {};
  // EOPNOTSUPP instead of EBUSY if systemd has enabled threaded controllers here: the kernel then
  // treats the cgroup as the root of a threaded subtree.
  if (written.error() != EBUSY && written.error() != EOPNOTSUPP)
    return enable_each(hierarchy, cgroup, controllers);
  int refusal = written.error();
  const std::string pids = some_processes(cgroup);
  // The processes have ended meanwhile.
  if (pids.empty()) {
    const OrErrno<void> again = write_value(cgroup, kSubtreeControl, controllers);
    if (again) return {};
    refusal = again.error();
  }
  Error error = Error::from_errno(
      refusal, cat(cgroup.path(), ": write \"", controllers, "\" to ", kSubtreeControl));
  if (!pids.empty()) {
    // Unlike other EBUSY errors, retrying does not help.
    error.code = ErrorCode::kConflict;
    error.message += cat(" (process ", pids,
                         " runs in it, but a cgroup that enables controllers for its children "
                         "cannot contain processes: move it to a leaf cgroup)");
  }
  return fail(std::move(error));
}

/// Copies a cpuset file from the parent if the cgroup's own is empty.
Status inherit(const sys::Directory& parent, const sys::Directory& cgroup, const char* file) {
  const std::string what = cat(cgroup.path(), "/", file);
  const OrErrno<sys::UniqueFd> own = open_control_file(cgroup, file, O_RDWR);
  if (!own) return fail_errno(own.error(), cat("open ", what));
  const OrErrno<std::string> current = read_value(own->get());
  if (!current) return fail_errno(current.error(), cat("read ", what));
  if (!current->empty()) return {};
  PODQOS_ASSIGN(const auto inherited, read_value(parent, file));
  const OrErrno<void> written = write_value(own->get(), inherited);
  if (!written) return fail_errno(written.error(), cat("write \"", inherited, "\" to ", what));
  return {};
}

/// Walks up from a cgroup to the first ancestor that exists, and down again, creating and
/// configuring what is missing.
class Walk {
 public:
  Walk(OpenHierarchy& hierarchy, std::optional<core::Controller> also)
      : hierarchy_(hierarchy), also_(also) {}

  /// Makes `path` exist and fit for its use.
  Status prepare(const std::string& path, CgroupUse use);
  [[nodiscard]] std::int64_t made() const { return made_; }

 private:
  Status prepare_above(const std::string& path) {
    return prepare(std::string{parent_of(path)}, CgroupUse::kInner);
  }
  /// mkdir(2) of one cgroup whose parent exists.
  Status make(const std::string& path);
  /// Sets what an empty cgroup needs before it can be used: subtree controllers or CPUs.
  Status configure(const std::string& path, CgroupUse use, Age age);
  Status configure_v2(const std::string& path, const sys::Directory& cgroup, CgroupUse use,
                      Age age);
  Status configure_cpuset(const std::string& path, const sys::Directory& cgroup, Age age);
  [[nodiscard]] bool is_v2() const {
    return hierarchy_.description().version == core::CgroupVersion::kV2;
  }

  OpenHierarchy& hierarchy_;
  std::optional<core::Controller> also_;
  std::int64_t made_ = 0;
};

Status Walk::prepare(const std::string& path, CgroupUse use) {
  const Result<DirectoryRef> found = hierarchy_.directory(path);
  if (found) return configure(path, use, Age::kExisting);
  if (found.error().code != ErrorCode::kNotFound || path == "/") return fail(found.error());
  PODQOS_TRY(prepare_above(path));
  PODQOS_TRY(make(path));
  return configure(path, use, Age::kNew);
}

Status Walk::make(const std::string& path) {
  PODQOS_ASSIGN(const auto parent, hierarchy_.directory(parent_of(path)));
  // directory(path) returned kNotFound, so that the name is a valid component.
  const std::string name{leaf_of(path)};
  if (::mkdirat(parent->fd(), name.c_str(), kMode) != 0) {
    const int err = errno;
    if (err == EEXIST) return {};
    Error error = Error::from_errno(err, cat("mkdir ", parent->path(), "/", name));
    // Not a lack of memory on the host: the cgroup's structures are charged to its parent.
    if (err == ENOMEM) error.message += " (the parent's memory limit is exhausted)";
    return fail(std::move(error));
  }
  ++made_;
  PODQOS_ASSIGN(const auto cgroup, hierarchy_.directory(path));
  // Overrides a strict umask, so that monitoring tools can read the cgroup; podqos does not depend
  // on it.
  static_cast<void>(::fchmod(cgroup->fd(), kMode));
  return {};
}

Status Walk::configure(const std::string& path, CgroupUse use, Age age) {
  const bool is_cpuset = !is_v2() && hierarchy_.has("cpuset");
  if (!is_v2() && !is_cpuset) return {};
  PODQOS_ASSIGN(const auto cgroup, hierarchy_.directory(path));
  if (is_cpuset) return configure_cpuset(path, *cgroup, age);
  return configure_v2(path, *cgroup, use, age);
}

Status Walk::configure_v2(const std::string& path, const sys::Directory& cgroup, CgroupUse use,
                          Age age) {
  if (use == CgroupUse::kLeaf) {
    return age == Age::kNew || path == "/" ? Status{} : prepare_above(path);
  }
  std::string enabled;
  if (age == Age::kExisting) {
    PODQOS_ASSIGN(enabled, read_value(cgroup, kSubtreeControl));
  }
  std::string missing = missing_controllers(hierarchy_, enabled, also_);
  // A controller enabled here is enabled in all ancestors; if nothing is missing here, nothing is
  // missing above.
  if (missing.empty()) return {};
  if (age == Age::kExisting && path != "/") {
    PODQOS_TRY(prepare_above(path));
  }
  // What an ancestor has been refused is not available here.
  missing = missing_controllers(hierarchy_, enabled, also_);
  return missing.empty() ? Status{} : enable(hierarchy_, cgroup, missing);
}

Status Walk::configure_cpuset(const std::string& path, const sys::Directory& cgroup, Age age) {
  if (path == "/") return {};
  if (age == Age::kExisting) {
    PODQOS_ASSIGN(const auto cpus, read_value(cgroup, "cpuset.cpus"));
    // The CPUs are copied last; if they are set, so are the memory nodes, and both in all
    // ancestors.
    if (!cpus.empty()) return {};
    PODQOS_TRY(prepare_above(path));
  }
  PODQOS_ASSIGN(const auto parent, hierarchy_.directory(parent_of(path)));
  PODQOS_TRY(inherit(*parent, cgroup, "cpuset.mems"));
  return inherit(*parent, cgroup, "cpuset.cpus");
}

}  // namespace

Result<std::int64_t> ensure_cgroup(OpenHierarchy& hierarchy, const std::string& path, CgroupUse use,
                                   std::optional<core::Controller> also) {
  Walk walk{hierarchy, also};
  for (int attempt = 1;; ++attempt) {
    Status done = walk.prepare(path, use);
    if (done) return walk.made();
    if (done.error().code != ErrorCode::kNotFound || attempt == kMaxAttempts)
      return fail(std::move(done).error());
    // An ancestor was removed concurrently; the cached directories may be stale.
    hierarchy.forget(std::string_view{path}.substr(0, path.find('/', 1)));
  }
}

}  // namespace podqos::cgroup
