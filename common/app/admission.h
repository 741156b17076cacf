#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/core/events/decide_admission.h"
#include "common/core/events/event.h"
#include "common/core/pods/node_fit.h"
#include "common/core/pods/request.h"
#include "common/core/settings.h"

namespace podqos::app {

using core::Admission;
using core::AdmissionRequest;

/// Adds the container's id to an error.
template <class Outcome>
[[nodiscard]] Outcome with_container_id(Outcome done, const std::string& id) {
  if (done) return done;
  return fail(std::move(done).error().with_context(cat("container ", printable(id))));
}

/// Parses the annotations and checks whether podqos manages the container.
/// @param placed_at  see AdmissionRequest::placed_at
/// @return nullopt if podqos does not manage it; kInvalidArgument for annotations that cannot be
///         parsed, except with trustAnnotations "none" under a CRI engine, where they are ignored.
[[nodiscard]] Result<std::optional<AdmissionRequest>> admission_request(
    core::ContainerFacts facts, const core::Settings& settings,
    std::optional<std::string> placed_at);

/// What is known of a container before it is admitted, for a failure: what its engine and its
/// annotations say, as far as they can be parsed.
/// @param placed_at  see AdmissionRequest::placed_at
[[nodiscard]] core::Event subject_of(const core::ContainerFacts& facts, std::string_view placed_at);

/// core::check_node_fit(), whose error names the pods that have most of what is lacking.
[[nodiscard]] Status check_fit(Transaction& transaction, core::NodeFit fit);

/// Adds the container to its pod: writes the record, and creates the pod's cgroup with its values.
/// Transaction::finish() writes the tiers' values. If the kernel or systemd refuses a write, the
/// container is removed from the record again.
/// @return nullopt for a sandbox whose pod is unknown: it stays where the engine puts it. kConflict
///         if the pod's cgroup or the root is not podqos's; kRefused for a running container
///         outside its pod if placement.onMisplaced is "fail", and for one whose pod does not fit
///         the node if that is enforced (core/pods/node_fit.h); kInvalidArgument for one that the
///         kernel gives no realtime time in its pod (core/pods/pod_values.h).
[[nodiscard]] Result<std::optional<Admission>> admit(Transaction& transaction,
                                                     AdmissionRequest request);

}  // namespace podqos::app
