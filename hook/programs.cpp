#include "hook/programs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "common/sys/sandbox.h"

namespace podqos::hook {

namespace {

/// The capabilities of root that every hook keeps, each with its reason.
constexpr std::array<int, 6> kKeptCapabilities = {
    CAP_CHOWN,         // preserve the owner of config.json in a user-namespaced engine's bundle
    CAP_DAC_OVERRIDE,  // open such a bundle, and /proc/PID/oom_score_adj of the container's user
    CAP_SYS_ADMIN,     // trusted.* attributes, which mark podqos's cgroups
    CAP_SYS_PTRACE,    // see processes where /proc is mounted with hidepid
    CAP_SYS_RESOURCE,  // lower an OOM score
    CAP_SYSLOG,        // the kernel's log, which tells by whose limit a process was OOM-killed
};

/// Absolute path of the running executable; "" if /proc cannot be read.
std::string own_path() {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string path = link_text("/proc/self/exe");
  // The kernel (fs/d_path.c) appends this if an upgrade has replaced the file; a file may also have
  // that name itself.
  if (path.ends_with(kDeleted) && ::access(path.c_str(), F_OK) != 0)
    path.resize(path.size() - kDeleted.size());
  return path;
}

}  // namespace

void print_error(std::string_view program, std::string_view line) {
  const std::string text = cat(program, ": ", app::one_line(line), "\n");
  static_cast<void>(sys::write_all(STDERR_FILENO, text).has_value());
}

void report_failure(app::Log& log, std::string_view program, core::Event event,
                    std::string_view context) {
  const std::string line = cat(context, event.text);
  log.failure(std::move(event), context);
  print_error(program, line);
}

std::string link_text(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlinkat(AT_FDCWD, path.c_str(), buffer.data(), buffer.size());
  if (size <= 0 || static_cast<std::size_t>(size) == buffer.size()) return {};
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string working_directory() {
  std::array<char, PATH_MAX> buffer{};
  return ::getcwd(buffer.data(), buffer.size()) == nullptr ? "" : buffer.data();
}

codec::HookRegistration own_hooks(const std::optional<std::string>& config) {
  codec::HookRegistration hooks{.path = own_path(), .args = {}};
  if (!config) return hooks;
  const std::string directory = config->starts_with('/') ? "" : cat(working_directory(), "/");
  hooks.args = {"--config", cat(directory, *config)};
  return hooks;
}

Status enter_sandbox(const core::Settings& settings) {
  // Files are made for root alone; cgroups as runc and systemd make them, 0755.
  ::umask(S_IWGRP | S_IWOTH);
  // Without root there are no capabilities to drop, and podqos manages nothing.
  if (::geteuid() == 0) {
    std::vector<int> kept{kKeptCapabilities.begin(), kKeptCapabilities.end()};
    // The v1 cpuset controller requires it to attach a process that has more capabilities than the
    // mover.
    if (settings.charge_monitor) kept.push_back(CAP_SYS_NICE);
    PODQOS_TRY(sys::keep_capabilities(kept));
  }
#ifdef PODQOS_WITHOUT_FILTER
  // The sanitizers' own runtime needs more syscalls than the allow-list has, and valgrind knows
  // none.
  return {};
#else
  return sys::install_filter(sys::Filter::kHook);
#endif
}

}  // namespace podqos::hook
