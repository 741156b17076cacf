#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// What podqos.io/* annotations say, checked and bounded.
struct PodqosAnnotations {
  bool ignore = false;                   ///< podqos.io/ignore: "true"
  std::optional<std::string> pod_uid;    ///< podqos.io/pod-uid
  std::optional<std::string> container;  ///< podqos.io/container
  std::optional<QosClass> qos_class;     ///< podqos.io/qos-class
  std::optional<Pod> pod;                ///< podqos.io/pod, defaulted
  std::optional<Resources> pod_level;    ///< podqos.io/requests, podqos.io/limits
  std::map<std::string, Resources, std::less<>>
      containers;  ///< podqos.io/requests.<name>, limits.<name>

  [[nodiscard]] bool any_identity_or_resource() const {
    return pod_uid || container || qos_class || pod || pod_level || !containers.empty();
  }
};

/// Identity and sums that the engine itself put into the annotations.
struct EngineAnnotations {
  std::optional<std::string>
      pod_uid;  ///< CRI sandbox-uid; CRI-O label io.kubernetes.pod.uid (also in its Labels)
  std::optional<std::string> sandbox_id;  ///< CRI sandbox-id, CRI-O's and Podman's SandboxID
  std::optional<std::string> pod_name;
  std::optional<std::string> pod_namespace;
  std::optional<std::string> container_name;
  bool is_sandbox = false;  ///< container-type "sandbox"
  /// Pod sums on the sandbox (containerd sandbox-cpu-shares/-quota/-period/-memory; CRI-O
  /// PodLinuxResources), or the limits of the cgroup that Podman has made for the pod.
  std::optional<EngineResources> pod_sums;
};

}  // namespace podqos::core
