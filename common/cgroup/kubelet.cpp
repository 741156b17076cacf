#include "common/cgroup/kubelet.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "common/base/text.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

namespace {

/// Files of kubelets; sources in kubelet.h.
constexpr std::array kFiles = {
    "/var/lib/kubelet/config.yaml",         // kubeadm
    "/etc/kubernetes/kubelet.conf",         // kubeadm
    "/var/lib/kubelet/kubeconfig",          // Amazon EKS, Azure, GKE
    "/var/lib/kubelet/cpu_manager_state",   // every kubelet with this root directory, k3s's too
    "/etc/kubernetes/kubelet/config.json",  // Amazon EKS, Amazon Linux 2023
    "/etc/kubernetes/kubelet/kubelet-config.json",  // Amazon EKS, Amazon Linux 2
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/lib/k0s/kubelet-config.yaml",
    "/var/lib/k0s/kubelet.conf",
    "/var/lib/k0s/kubelet/cpu_manager_state",
    "/var/snap/microk8s/current/args/kubelet",
    "/home/kubernetes/kubelet-config.yaml",  // GKE
};

/// Names in /proc/PID/comm, at most 15 bytes long (TASK_COMM_LEN).
constexpr std::array<std::string_view, 9> kProcesses = {"kubelet",   "k3s",       "k3s-server",
                                                        "k3s-agent", "rke2",      "k0s",
                                                        "kubelite",  "hyperkube", "microshift"};

bool is_pid(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

/// Any user, and root in a container, may give a process such a name.
bool is_of_host(const sys::Directory& proc, const std::string& pid) {
  struct stat root{};
  struct stat process{};
  return ::fstat(proc.fd(), &root) == 0 &&
         ::fstatat(proc.fd(), pid.c_str(), &process, AT_SYMLINK_NOFOLLOW) == 0 &&
         process.st_uid == root.st_uid &&
         sys::shares_pid_namespace(Pid{parse_int(pid).value_or(0)});
}

/// Looks for a process of the host's root with one of these names.
std::optional<std::string> find_process(const std::string& root) {
  constexpr std::size_t kMaxNameSize = 64;
  const auto proc = sys::Directory::open(cat(root, "/proc"));
  if (!proc) return std::nullopt;
  const auto entries = proc->entries();
  if (!entries) return std::nullopt;
  for (const std::string& entry : *entries) {
    if (!is_pid(entry)) continue;
    auto name = proc->read_file(cat(entry, "/comm"), kMaxNameSize);
    if (!name) continue;
    if (name->ends_with('\n')) name->pop_back();
    if (std::ranges::find(kProcesses, *name) != kProcesses.end() && is_of_host(*proc, entry))
      return cat("process ", entry, " (", *name, ")");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_kubelet(const std::string& root) {
  for (const char* file : kFiles) {
    std::string path = cat(root, file);
    if (::faccessat(AT_FDCWD, path.c_str(), F_OK, 0) == 0) return path;
  }
  return find_process(root);
}

}  // namespace podqos::cgroup
