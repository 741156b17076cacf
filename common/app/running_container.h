#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/app/admission.h"
#include "common/app/known_container.h"
#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Adds the container's id to an error.
template <class Outcome>
[[nodiscard]] Outcome with_container_id(Outcome done, const std::string& id) {
  if (done) return done;
  return fail(std::move(done).error().with_context(cat("container ", printable(id))));
}

/// A container's init process, the runtime that started it, and the init's current cgroup.
struct Init {
  Pid pid;
  Pid runtime;
  std::string cgroup;
};

/// Builds the request of a container that an engine has reported as started.
/// @param cgroup  cgroup of its init
/// @return nullopt if podqos does not manage it: it has no podqos.io annotation and no pod, or this
///         process is not root on the host.
[[nodiscard]] Result<std::optional<AdmissionRequest>> request_of_started(
    const core::Settings& settings, Log& log, core::ContainerFacts facts,
    const std::string& cgroup);

/// Finds the container's record, after recovering from an interrupted transaction.
[[nodiscard]] Result<std::optional<KnownContainer>> find_known(Transaction& transaction,
                                                               const core::ContainerFacts& facts);

/// Confirms a placed container after its runtime created it: it becomes live.
/// @param told  its bundle, and its resources as far as they are known
[[nodiscard]] Status confirm(Transaction& transaction, KnownContainer found,
                             const core::ContainerFacts& told, const Init& init);
/// Detects which formula the node's runtime uses to convert shares to a weight, from the weight of
/// a container whose shares it converted. From then on podqos uses the same formula for all
/// weights, and recomputes those already written.
/// @param told  the engine's resources; ignored if their shares differ from the record's
[[nodiscard]] Status learn_formula(Transaction& transaction, const core::PodRecord& record,
                                   const core::ContainerRecord& container,
                                   const core::EngineResources& told);
/// Finishes a transaction that only confirmed containers.
[[nodiscard]] Status finish_confirmed(Transaction& transaction);

/// Registers a running container that podqos did not place. Unit properties are sent to systemd
/// when the transaction finishes.
/// @return nullopt for the sandbox of an unknown pod.
[[nodiscard]] Result<std::optional<Admission>> admit_running(Transaction& transaction,
                                                             AdmissionRequest request,
                                                             const Init& init);

/// Moves the container's monitor (conmon or a containerd shim), which is the parent of the runtime,
/// into the pod's cgroup, so that its usage is charged to the pod. Does nothing unless
/// chargeMonitor is set, and for adopted pods. An error is logged: the container runs without it,
/// and the monitor's usage is charged elsewhere.
/// @param runtime  the process that runs the hook
void try_charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime);

}  // namespace podqos::app
