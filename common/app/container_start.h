#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/decide_admission.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/store/store.h"

namespace podqos::app {

using core::Admission;
using core::AdmissionRequest;
using core::Init;

/// Which interface reports a start, and so what it leaves to podqos.
enum class Reporter : std::uint8_t {
  /// createRuntime. The OOM score of a placed container is in its config.json.
  kHook,
  /// NRI. The score is written once it has started.
  kPlugin,
};

/// Sets node().weight_formula, if it is not known, where the container's weight tells which
/// formula its runtime uses to convert shares.
/// @param told  the engine's resources; nothing is detected if their shares differ from those of
///              the record
void detect_formula(Transaction& transaction, const core::PodRecord& record,
                    const core::ContainerRecord& container, const core::EngineResources& told);

/// Handles the start of a container that was placed: confirms it and finishes the transaction.
/// @param facts  its id, its bundle, and its resources as far as they are known
/// @return false if podqos did not place it; kNotFound if its init has ended since the plugin was
///         told of it
[[nodiscard]] Result<bool> confirm_started(Transaction& transaction,
                                           const core::ContainerFacts& facts, const Init& init,
                                           Reporter reporter);

/// Handles the start of a container that was not placed: registers it, writes its values where it
/// runs (placement.onMisplaced), and finishes the transaction.
/// @param request  of admission_request()
/// @param registered  called with its admission once its values are written
/// @return kRefused if placement.onMisplaced is "fail" and the container runs outside its pod;
///         kConflict if it shares its runtime's cgroup, where no limit may be written.
[[nodiscard]] Status register_started(
    Transaction& transaction, AdmissionRequest request, const Init& init, Reporter reporter,
    const std::function<Status(const Admission&)>& registered = {});

/// Confirms a container that was placed. Part of a transaction.
/// @param facts  its bundle, and its resources as far as they are known
[[nodiscard]] Status confirm(Transaction& transaction, const store::KnownContainer& found,
                             const core::ContainerFacts& facts, const Init& init,
                             Reporter reporter);

/// Writes the burst of a running container: cpuBurst's part of the quota that its runtime has set,
/// in whichever cgroups have one. Not in config.json, where few runtimes know it. A kernel without
/// the file is left as it is.
/// @param next  the quota that the runtime sets right after this, as it refuses one below the
///              burst; nullopt: the present one stays
void write_burst(Transaction& transaction, const core::PodRecord& record,
                 const core::ContainerRecord& container, std::optional<Micros> next = {});

/// Registers a running container that podqos was not told about, and changes nothing of it. Part of
/// a transaction.
[[nodiscard]] Status count_running(Transaction& transaction, AdmissionRequest request,
                                   const Init& init);

/// Tells systemd-oomd whether to take a running container last: of its scope, and of the cgroup
/// that crun makes below it, which is the one that systemd-oomd would take. Empty for the cgroupfs
/// driver.
/// @param values  with `oomd_avoid` alone
[[nodiscard]] core::Plan plan_preference(cgroup::Machine& machine,
                                         const core::ContainerRecord& container,
                                         const core::CgroupValues& values);

}  // namespace podqos::app
