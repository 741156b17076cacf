#pragma once

#include <optional>
#include <string>

namespace podqos::cgroup {

/// Looks for a kubelet on this machine: checks a dozen paths, then the names of all processes.
/// Expensive, so call it for rare decisions only.
/// @param root  prefix of all paths; "" on a real machine
/// @return the path of one of its files, or "process 42 (kubelet)"; nullopt if none is found.
/// @note kubeadm cmd/kubeadm/app/constants; k3s pkg/daemons/agent, pkg/agent/config; k0s
///         pkg/component/worker/kubelet.go; microk8s microk8s-resources/default-args; Amazon EKS
///         AMI templates/al2 and nodeadm/internal/kubelet; kubelet pkg/kubelet/cm/cpumanager.
[[nodiscard]] std::optional<std::string> find_kubelet(const std::string& root = "");

}  // namespace podqos::cgroup
