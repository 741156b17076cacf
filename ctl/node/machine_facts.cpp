#include "ctl/node/machine_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "common/base/text.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kMaxProcFile = std::size_t{4} << 20U;

/// A file of /proc; "" if it cannot be read.
std::string read_proc(const std::string& name) {
  const auto proc = sys::Directory::open("/proc");
  return proc ? proc->read_file(name, kMaxProcFile).value_or("") : "";
}

/// A cgroup other than the root, which lacks most files: that of this process, or another one.
std::string some_cgroup(cgroup::Machine& cgroups) {
  const auto own = cgroups.cgroup_of(Pid{::getpid()});
  if (own && *own != "/") return *own;
  const auto children = cgroups.children("/");
  return children && !children->empty() ? cat("/", children->front()) : "/";
}

}  // namespace

FileLockers parse_locks(std::string_view text, dev_t device, ino_t inode) {
  std::array<char, 64> wanted{};
  std::string file;
  const auto add_hex = [&](unsigned number) {
    const auto end = std::to_chars(wanted.begin(), wanted.end(), number, 16).ptr;
    const std::string_view digits{wanted.begin(), end};
    file += cat(digits.size() < 2 ? "0" : "", digits, ":");
  };
  add_hex(major(device));
  add_hex(minor(device));
  file += std::to_string(inode);
  FileLockers found;
  while (!text.empty()) {
    // "1: FLOCK  ADVISORY  WRITE 12 00:1a:34 0 EOF"; of a waiter "1: -> FLOCK  …".
    const auto words = parts_of(read_until(text, '\n'), ' ');
    const bool waits = words.size() > 1 && words[1] == "->";
    const std::size_t at = waits ? 2 : 1;
    if (words.size() < at + 5 || words[at] != "FLOCK" || words[at + 4] != file) continue;
    const auto pid = parse_int(words[at + 3]);
    if (waits)
      ++found.waiters;
    else if (pid)
      found.holder = Pid{*pid};
  }
  return found;
}

KernelFacts read_kernel(cgroup::Machine& cgroups) {
  KernelFacts facts{.layout = cgroups.layout_without_hugepages()};
  const std::string some = some_cgroup(cgroups);
  const auto has = [&](const char* file) {
    const auto read = cgroups.read(some, core::Controller::kMemory, file);
    return read || read.error().code != ErrorCode::kNotFound;
  };
  const bool v2 = facts.layout.memory == core::CgroupVersion::kV2;
  facts.has_pressure = !read_proc("pressure/memory").empty();
  if (const auto installed = sys::installed_memory()) {
    facts.has_swap = installed->swap > Bytes{0};
    facts.hugepages = installed->hugepages;
  }
  facts.limits_swap = facts.layout.memory.has_value() &&
                      has(v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
  facts.reclaims = v2 && has("memory.reclaim");
  return facts;
}

DirectoryFacts read_directory(const std::string& path) {
  DirectoryFacts facts{.path = path};
  struct stat found{};
  struct statvfs system{};
  if (::lstat(path.c_str(), &found) != 0 || ::statvfs(path.c_str(), &system) != 0) {
    facts.error = Error::from_errno(errno, path);
    return facts;
  }
  facts.owner = found.st_uid;
  facts.mode = found.st_mode;
  facts.read_only = (system.f_flag & ST_RDONLY) != 0;
  facts.free_bytes = static_cast<std::int64_t>(system.f_bavail * system.f_frsize);
  facts.free_files = static_cast<std::int64_t>(system.f_favail);
  return facts;
}

LockFacts read_lock(const std::string& path) {
  LockFacts facts;
  struct stat found{};
  timespec now{};
  if (::lstat(path.c_str(), &found) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0)
    return facts;
  const FileLockers lockers = parse_locks(read_proc("locks"), found.st_dev, found.st_ino);
  facts.holder = lockers.holder;
  facts.waiters = lockers.waiters;
  if (!facts.holder) return facts;
  // Each holder sets the file's time.
  facts.held = std::chrono::seconds{std::max<time_t>(now.tv_sec - found.st_mtim.tv_sec, 0)};
  if (const auto stat = sys::stat_of(*facts.holder); stat && *stat)
    facts.program = printable((*stat)->name);
  return facts;
}

}  // namespace podqos::ctl
