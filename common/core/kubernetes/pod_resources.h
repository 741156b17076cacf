#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/quantity.h"

namespace podqos::core {

/// Quantities by resource name: "cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu".
using ResourceList = std::map<std::string, Quantity, std::less<>>;

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kMemory = "memory";
constexpr std::string_view kHugePagesPrefix = "hugepages-";

/// The quantity of a resource; nullopt if absent.
[[nodiscard]] std::optional<Quantity> find(const ResourceList& list, std::string_view name);
/// The quantity of memory in bytes; 0 if absent.
[[nodiscard]] Quantity memory_of(const ResourceList& list);
/// The quantity of CPU, rounded up; 0 if absent.
[[nodiscard]] MilliCpu cpu_of(const ResourceList& list);

/// Lowest priority of a pod that is critical to its node or cluster.
/// @note pkg/apis/scheduling/types.go SystemCriticalPriority.
constexpr std::int64_t kSystemCriticalPriority = 2'000'000'000;

/// Requests and limits of a container or pod.
struct Resources {
  ResourceList requests;
  ResourceList limits;
  friend bool operator==(const Resources&, const Resources&) = default;
};

/// Kind of a container in a pod spec.
enum class ContainerKind : std::uint8_t {
  kApp,
  kInit,       ///< ordinary init container: ends before the next one starts
  kSidecar,    ///< init container with restartPolicy Always
  kEphemeral,  ///< debug container; its resources never count
};

/// A container of a pod spec.
struct Container {
  std::string name;
  ContainerKind kind = ContainerKind::kApp;
  Resources resources;
  friend bool operator==(const Container&, const Container&) = default;
};

/// QoS class of a pod, best protected first.
enum class QosClass : std::uint8_t { kGuaranteed, kBurstable, kBestEffort };
/// Their names, in the order of the enumerators.
constexpr std::string_view kQosClassNames = "Guaranteed Burstable BestEffort";

/// Returns "Guaranteed", "Burstable" or "BestEffort".
[[nodiscard]] std::string_view format_qos_class(QosClass qos_class);
/// Parses exactly those three words.
[[nodiscard]] std::optional<QosClass> parse_qos_class(std::string_view text);

/// What there is of each class.
template <class T>
struct ByClass {
  T guaranteed = {};
  T burstable = {};
  T besteffort = {};

  [[nodiscard]] const T& of(QosClass qos_class) const {
    if (qos_class == QosClass::kGuaranteed) return guaranteed;
    return qos_class == QosClass::kBurstable ? burstable : besteffort;
  }
  [[nodiscard]] T& of(QosClass qos_class) {
    return const_cast<T&>(std::as_const(*this).of(qos_class));
  }
  friend bool operator==(const ByClass&, const ByClass&) = default;
};

/// The fields of a Kubernetes Pod that resource isolation depends on.
struct Pod {
  std::string uid;                         ///< metadata.uid
  std::string name;                        ///< metadata.name
  std::string pod_namespace;               ///< metadata.namespace
  std::vector<Container> containers;       ///< spec.containers (kApp)
  std::vector<Container> init_containers;  ///< spec.initContainers in order (kInit, kSidecar)
  std::vector<Container> ephemeral_containers;
  std::optional<Resources> resources;  ///< spec.resources; empty differs from absent
  ResourceList overhead;               ///< spec.overhead
  std::optional<std::int64_t> priority;
  std::string priority_class_name;
  std::optional<QosClass> status_qos_class;  ///< status.qosClass; overrides the spec
  bool is_static =
      false;  ///< annotation kubernetes.io/config.source other than "api", or config.mirror present

  friend bool operator==(const Pod&, const Pod&) = default;
};

/// The container of any kind with this name; nullptr if there is none.
/// @param pod  constant or changeable, as the container is then
template <class AnyPod>
[[nodiscard]] auto find_container(AnyPod& pod, std::string_view name)
    -> decltype(pod.containers.data()) {
  for (auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    const auto found = std::ranges::find(*list, name, &Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

/// Sums of the containers, per resource: the maximum of what init containers need while they run
/// and what containers and sidecars need together. Exact, without rounding.
[[nodiscard]] Resources sum_of_containers(const Pod& pod);
/// Requests of the whole pod: those of the containers, in place of which the pod-level ones count,
/// and the overhead.
/// @note staging/src/k8s.io/component-helpers/resource/helpers.go PodRequests.
[[nodiscard]] ResourceList pod_requests(const Pod& pod);
/// Limits of the whole pod by the same rule. Overhead is added only to resources whose limit is
/// present and non-zero.
/// @note staging/src/k8s.io/component-helpers/resource/helpers.go PodLimits.
[[nodiscard]] ResourceList pod_limits(const Pod& pod);

/// Whether a pod is critical to its node or cluster: by its priority, or since it is static.
/// @note pkg/kubelet/types/pod_update.go IsCriticalPod
[[nodiscard]] bool is_critical(const Pod& pod);

/// Replaces one resource, or removes it if the other list lacks it.
void take(ResourceList& list, const ResourceList& other, std::string_view name);

/// Lowers requests to the limits that are below them.
void cap_requests(Resources& resources);

/// Whether the pod as a whole has a limit for `resource`: a non-zero pod-level limit, or a non-zero
/// limit in every container. For init containers the limits of sidecars already running count.
/// @note pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod.
[[nodiscard]] bool limit_declared(const Pod& pod, std::string_view resource);

/// Applies the API server's defaults for resources: missing requests of containers and init
/// containers become their limits, pod-level requests and huge page limits are filled in, and every
/// quantity is rounded up to thousandths.
/// @note pkg/apis/core/v1/defaults.go SetDefaults_Pod.
[[nodiscard]] Pod with_api_defaults(Pod pod);

/// Fills in a missing priority for system-cluster-critical and system-node-critical, the classes
/// that every cluster has. The priorities of other classes are known to the cluster only.
/// @note plugin/pkg/admission/priority; pkg/apis/scheduling/types.go SystemCriticalPriority.
[[nodiscard]] Pod with_priority_of_class(Pod pod);

}  // namespace podqos::core
