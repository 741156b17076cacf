#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/pods/request.h"
#include "common/core/pods/resize_request.h"
#include "common/core/record.h"

namespace podqos::app {

/// Saves a pod with other resources, and writes its cgroup.
/// Transaction::finish() writes the tiers' values. A kubelet writes those of its pods itself.
/// @param record  gets what of its requests counts
/// @param before  the stored record
/// @return what the machine has refused of the pod's values: postpone(), or another resize, is up
/// to
///         the caller; as an error what keeps the pod from having these resources
[[nodiscard]] Result<std::optional<Error>> save_resized(Transaction& transaction,
                                                        core::PodRecord& record,
                                                        const core::PodRecord& before);

/// The file in the state directory whose lock who resizes pods has, and its runtimes inherit.
constexpr const char* kResizeLock = "resize.lock";

/// Settles a resize whose process has gone, and the runtime that it has called:
/// core::settle_resize().
/// @return the record to save; nullopt if the pod is not being resized, or is still
[[nodiscard]] std::optional<core::PodRecord> settle_resize(Transaction& transaction,
                                                           const core::PodRecord& record);

/// Has a container's runtime change its values, whose state so agrees with the cgroup.
using UpdateContainer = std::function<Status(const core::EngineResources& values)>;
/// Finds the runtime that has a container, without changing anything.
using FindRuntime = std::function<Result<UpdateContainer>(const core::ContainerRecord& container)>;

/// Begins a transaction.
using Begin = std::function<Result<Transaction>()>;

/// A resize that the node's operator asks for.
struct PodResize {
  std::string uid;  ///< of the pod
  core::ResizeRequest request;
};

/// Resizes a running pod, with the lock of kResizeLock: tells its containers' runtimes, each memory
/// first and then CPU, while pod and tiers have what both the old and the new values need; see
/// core::RequestedResize. The lock is held before and after that, not while runtimes work. What is
/// in the way is found before anything is written. If a step fails, what was done is taken back,
/// and the error says so. Until the end the record says that it is being resized, for the case that
/// this process is killed.
/// @return the pod before and after; equal if nothing was to be changed. The errors of
///         core::decide_resize(); kNotFound for a pod that is not known or has ended; kRefused for
///         a memory limit below what is in use, and by admission (core/pods/node_fit.h); kBusy if a
///         container is being created, or the pod has changed meanwhile.
/// @note KEP-1287; pkg/kubelet/kuberuntime/kuberuntime_manager.go doPodResizeAction.
[[nodiscard]] Result<core::RequestedResize> resize_pod(const Begin& begin, const PodResize& wanted,
                                                       const FindRuntime& find);

}  // namespace podqos::app
