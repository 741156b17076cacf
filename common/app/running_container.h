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

/// What fails is said of the container.
template <class Outcome>
[[nodiscard]] Outcome about(Outcome done, const std::string& id) {
  if (done) return done;
  return fail(std::move(done).error().with_context(cat("container ", printable(id))));
}

/// A container's init, in the cgroup where it really is, and the runtime that has started it.
struct Init {
  Pid pid;
  Pid runtime;
  std::string cgroup;
};

/// What is told of a container, as far as it concerns podqos: it has a podqos.io annotation, a pod,
/// or a place in one, and is root's on the host.
[[nodiscard]] Result<std::optional<AdmissionRequest>> announce(const core::Settings& settings,
                                                               Log& log, core::ContainerFacts facts,
                                                               const std::string& cgroup);

/// The container, if podqos knows it, after what an interrupted event has left is made good.
[[nodiscard]] Result<std::optional<KnownContainer>> find_known(Transaction& transaction,
                                                               const core::ContainerFacts& facts);

/// The runtime has made a container that was placed before: from now on it is live.
/// @param told  its bundle, and its resources as far as they are known
[[nodiscard]] Status confirm(Transaction& transaction, KnownContainer found,
                             const core::ContainerFacts& told, const Init& init);
/// Which formula the node's runtime uses, if the weight that it has given the container tells: from
/// then on all weights follow it. For a container whose shares the runtime itself has converted.
/// @param told  what the engine says of it; other shares than those of the record tell nothing
[[nodiscard]] Status learn_formula(Transaction& transaction, const core::PodRecord& record,
                                   const core::ContainerRecord& container,
                                   const core::EngineResources& told);
/// For an event that has confirmed containers and does nothing else.
[[nodiscard]] Status finish_confirmed(Transaction& transaction);

/// Lets a container that nobody has placed join its pod. What it costs is told to systemd when the
/// event finishes.
/// @return nullopt for the sandbox of a pod of which nothing is known.
[[nodiscard]] Result<std::optional<Admission>> admit_running(Transaction& transaction,
                                                             AdmissionRequest request,
                                                             const Init& init);

/// The monitor of a container, if the operator wants it in the pod. Failure is logged: the
/// container can do without, and what the monitor needs is charged elsewhere then.
void try_charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime);

}  // namespace podqos::app
