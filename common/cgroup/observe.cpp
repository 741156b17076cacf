#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/value.h"

namespace podqos::cgroup {

namespace {

// More than the kernel's maximum of 4 million pids takes.
constexpr std::size_t kMaxProcs = 64U << 20U;
// Bounds the descriptors and the stack of a walk.
constexpr int kMaxDepth = 16;
// Cgroups that one call looks into, in all hierarchies: containers make as many as they like, and
// the lock may be held.
constexpr std::size_t kMaxWalked = 256;

bool is_gone(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

/// Whether there cannot be a cgroup of this path: it is not there, or the path is improper.
bool means_absent(const Error& error) {
  return is_gone(error) || error.code == ErrorCode::kInvalidArgument;
}

/// A threaded v2 cgroup returns EOPNOTSUPP for cgroup.procs; its processes are listed in the domain
/// cgroup above it.
bool has_no_list(const Error& error) {
  return is_gone(error) || error.code == ErrorCode::kUnsupported;
}

/// Reads cgroup.procs of cgroups and all their descendants.
class ProcessWalk {
 public:
  /// Called with the contents of each file, until it returns false.
  using Visit = std::function<bool(std::string_view)>;

  explicit ProcessWalk(Visit visit) : visit_(std::move(visit)) {}

  /// Cgroups that are removed meanwhile are skipped.
  /// @return false if it was stopped; kTooLarge beyond what one call looks into.
  Result<bool> run(const sys::Directory& cgroup, int depth = 0) {
    if (depth > kMaxDepth || left_ == 0) {
      return fail(ErrorCode::kTooLarge,
                  cat(cgroup.path(), ": too many cgroups are nested in each other or in it"));
    }
    --left_;
    constexpr const char* kFile = "cgroup.procs";
    const auto file = cgroup.open_any(kFile, O_RDONLY);
    const std::string what = cat(cgroup.path(), "/", kFile);
    const Result<std::string> pids = file ? sys::read_all(file->get(), kMaxProcs, what)
                                          : fail_errno(file.error(), cat("open ", what));
    if (!pids && !has_no_list(pids.error())) return fail(pids.error());
    if (pids && !visit_(*pids)) return false;
    // One more than there are steps, so that the walk does not seem to be complete.
    const Result<std::vector<std::string>> names = cgroup.subdirectories(left_ + 1);
    if (!names && is_gone(names.error())) return true;
    if (!names) return fail(names.error());
    for (const std::string& name : *names) {
      const Result<bool> went_on = run_child(cgroup, name, depth);
      if (!went_on || !*went_on) return went_on;
    }
    return true;
  }

 private:
  Result<bool> run_child(const sys::Directory& cgroup, const std::string& name, int depth) {
    const Result<sys::Directory> child = cgroup.open_directory(name);
    if (child) return run(*child, depth + 1);
    if (is_gone(child.error())) return true;
    return fail(child.error());
  }

  Visit visit_;
  std::size_t left_ = kMaxWalked;
};

/// Whether the cgroup or a descendant lists a process; nullopt if the walk does not come to all.
Result<std::optional<bool>> lists_process(OpenHierarchy& hierarchy, std::string_view path,
                                          ProcessWalk& walk) {
  const auto cgroup = hierarchy.directory(path);
  const Result<bool> empty = cgroup ? walk.run(*cgroup) : fail(cgroup.error());
  if (empty) return !*empty;
  if (is_gone(empty.error())) return false;
  if (empty.error().code == ErrorCode::kTooLarge) return std::nullopt;
  return fail(empty.error());
}

/// cgroup.events covers all descendants (cgroup-v2.rst, "[Un]populated Notification"), and a killed
/// process until the kernel has switched away from it for the last time, when it is in no
/// cgroup.procs any more and its cgroup may be removed already.
Result<std::optional<bool>> populated_v2(OpenHierarchy& hierarchy, std::string_view path,
                                         ProcessWalk& walk) {
  const Result<std::string> events = hierarchy.read(path, "cgroup.events");
  if (!events && is_gone(events.error())) return false;
  if (!events) return fail(events.error());
  if (find_key(*events, "populated") != 1) return false;
  // A threaded cgroup has no list of its processes.
  const Result<std::string> type = hierarchy.read(path, "cgroup.type");
  if (type && *type == "threaded") return true;
  return lists_process(hierarchy, path, walk);
}

}  // namespace

bool Cgroupfs::exists(std::string_view path) {
  const auto may_have = [path](OpenHierarchy& hierarchy) {
    const auto exists = hierarchy.exists(path);
    return exists ? *exists : !means_absent(exists.error());
  };
  return std::ranges::any_of(*hierarchies_, may_have);
}

Result<bool> Cgroupfs::is_complete(std::string_view path) {
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    PODQOS_ASSIGN(const bool writable, hierarchy.is_writable());
    PODQOS_ASSIGN(const bool exists, hierarchy.exists(path));
    if (writable && !exists) return false;
  }
  return true;
}

Result<std::string> Cgroupfs::read(std::string_view path, core::Controller controller,
                                   const std::string& file) {
  OpenHierarchy* hierarchy = hierarchy_of(controller);
  // cgroup v1 counts CPU time by a controller that some machines mount apart from cpu.
  if (file == "cpuacct.usage") {
    const auto counts_time = [](const OpenHierarchy& each) { return each.has("cpuacct"); };
    const auto found = std::ranges::find_if(*hierarchies_, counts_time);
    if (found != hierarchies_->end()) hierarchy = &*found;
  }
  if (hierarchy == nullptr) {
    return fail(ErrorCode::kUnsupported, cat(path, ": this machine has no ",
                                             core::row_of(controller).v2_name, " controller"));
  }
  return kept_files_.read(*hierarchy, path, file);
}

Result<std::vector<std::string>> Cgroupfs::children(std::string_view path) {
  std::set<std::string> all;
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    const auto names = hierarchy.children(path);
    if (!names && !is_gone(names.error())) return fail(names.error());
    if (names) all.insert(names->begin(), names->end());
  }
  return std::vector<std::string>{all.begin(), all.end()};
}

bool Cgroupfs::counts_processes(std::string_view path) {
  if (layout_.pids != core::CgroupVersion::kV1) return true;
  const Result<std::string> count = read(path, core::Controller::kPids, "pids.current");
  return count ? *count != "0" : !is_gone(count.error());
}

Result<bool> Cgroupfs::populated(std::string_view path) {
  ProcessWalk walk{[](std::string_view pids) { return pids.empty(); }};
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    const bool is_v2 = hierarchy.description().version == core::CgroupVersion::kV2;
    // Neither v1 nor the root has cgroup.events.
    PODQOS_ASSIGN(const auto found, is_v2&& path != "/" ? populated_v2(hierarchy, path, walk)
                                                        : lists_process(hierarchy, path, walk));
    if (found ? *found : is_v2 || counts_processes(path)) return true;
  }
  return false;
}

Result<std::vector<Pid>> Cgroupfs::processes(std::string_view path) {
  std::set<Pid> all;
  ProcessWalk walk{[&all](std::string_view pids) {
    while (!pids.empty()) {
      // 0 stands for a process outside the own pid namespace.
      const std::optional<std::int64_t> pid = parse_int(read_until(pids, '\n'));
      if (pid && *pid > 0) all.emplace(*pid);
    }
    return true;
  }};
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    const auto cgroup = hierarchy.directory(path);
    const Result<bool> walked = cgroup ? walk.run(*cgroup) : fail(cgroup.error());
    if (walked || is_gone(walked.error())) continue;
    if (walked.error().code != ErrorCode::kTooLarge) return fail(walked.error());
    const Result<bool> any = populated(path);
    return any && !*any ? Result<std::vector<Pid>>{} : fail(walked.error());
  }
  return std::vector<Pid>{all.begin(), all.end()};
}

core::MemoryFiles Cgroupfs::memory_files(std::string_view path) {
  OpenHierarchy* hierarchy = hierarchy_of(core::Controller::kMemory);
  // Runtimes use this mount to decide whether v2 files are available: not on a hybrid host, even if
  // its v2 hierarchy has the memory controller.
  if (hierarchy == nullptr || hierarchy->description().mount_point != CgroupfsOptions{}.unified ||
      hierarchy->description().version == core::CgroupVersion::kV1)
    return {};
  const auto has = [&](std::string_view file) {
    return hierarchy->exists(cat(path, "/", file)).value_or(false);
  };
  return {.swap_max = has("memory.swap.max"), .oom_group = has("memory.oom.group")};
}

Result<Bytes> Cgroupfs::memory_amount(std::string_view path, const std::string& file) {
  PODQOS_ASSIGN(const auto text, read(path, core::Controller::kMemory, file));
  const std::optional<std::int64_t> amount = parse_int(text);
  if (!amount)
    return fail(ErrorCode::kIo, cat(path, "/", file, ": unexpected \"", printable(text), "\""));
  return Bytes{*amount};
}

Result<Bytes> Cgroupfs::memory_usage(std::string_view path) {
  const bool is_v2 = layout_.memory == core::CgroupVersion::kV2;
  return memory_amount(path, is_v2 ? "memory.current" : "memory.usage_in_bytes");
}

Result<core::MemoryCharge> Cgroupfs::memory_charge(std::string_view path) {
  PODQOS_ASSIGN(const auto stat, read(path, core::Controller::kMemory, "memory.stat"));
  PODQOS_ASSIGN(const auto usage, memory_usage(path));
  const auto sum = [&](std::initializer_list<std::string_view> keys) {
    std::int64_t total = 0;
    for (const std::string_view key : keys)
      total = saturating_add(total, find_key(stat, key).value_or(0));
    return total;
  };
  core::MemoryCharge charge{.usage = usage, .counted = {}, .shmem = {}};
  std::int64_t counted = 0;
  if (layout_.memory == core::CgroupVersion::kV2) {
    counted = sum({"anon", "file", "sock", "swapcached"});
    // Linux 5.18 added the sum "kernel"; before, its parts are listed.
    const std::int64_t parts = sum({"kernel_stack", "pagetables", "percpu", "slab"});
    counted = saturating_add(counted, find_key(stat, "kernel").value_or(parts));
    charge.shmem = Bytes{sum({"shmem"})};
  } else {
    counted = sum({"total_rss", "total_cache", "total_swapcached"});
    // Without kernel memory accounting the file does not exist.
    if (const auto kernel = memory_amount(path, "memory.kmem.usage_in_bytes"))
      counted = saturating_add(counted, kernel->value());
    charge.shmem = Bytes{sum({"total_shmem"})};
  }
  charge.counted = Bytes{counted};
  return charge;
}

Result<std::optional<std::string>> Cgroupfs::attribute(std::string_view path, const char* name) {
  return primary().attribute(path, name);
}

}  // namespace podqos::cgroup
