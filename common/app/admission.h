#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/codec/oci_edit.h"
#include "common/core/cgroups/naming.h"
#include "common/core/events/admission.h"
#include "common/core/pods/request.h"
#include "common/core/settings.h"
#include "common/store/store.h"

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
/// Adds the container to its pod: writes the record, and creates the pod's cgroup with its values.
/// Transaction::finish() writes the tiers' values. If the kernel or systemd refuses a write, the
/// container is removed from the record again.
/// @return nullopt for a sandbox whose pod is unknown: it stays where the engine puts it. kConflict
///         if the pod's cgroup or the root is not podqos's; kRefused for a running container
///         outside its pod if placement.onMisplaced is "fail", and for one whose pod does not fit
///         the node if that is enforced (core/pods/grants.h); kInvalidArgument for one that the
///         kernel gives no realtime time in its pod (core/pods/pod_values.h).
[[nodiscard]] Result<std::optional<Admission>> admit(Transaction& transaction,
                                                     AdmissionRequest request);

// Before a container exists (place.cpp).

/// A container that an engine is about to create.
struct PlacementRequest {
  std::string id;
  std::string bundle;       ///< canonical; empty if the caller does not know it
  std::string_view config;  ///< content of config.json
  Pid creator;              ///< the process that creates the container and then ends
  std::optional<core::Driver> driver = std::nullopt;        ///< from the runtime's own flags
  codec::HookRegistration hooks;                            ///< the hooks to add to config.json
  codec::MemberNames names = codec::MemberNames::kAnyCase;  ///< as the runtime compares them
  Timeouts timeouts = {};
};

/// Places a container before its runtime creates it: writes the record (pending), creates the pod's
/// cgroup with its values, and updates the tiers.
/// @return the config.json that makes the runtime use the container's cgroup; nullopt if podqos
///         does not manage the container: nothing was written.
[[nodiscard]] Result<std::optional<std::string>> place(const core::Settings& settings, Log& log,
                                                       const PlacementRequest& call);

/// As place(), for an engine that describes the container itself and asks for the values (NRI
/// CreateContainer). For an adopted container cgroups_path is absent.
/// @return nullopt if podqos does not manage the container: nothing was written.
[[nodiscard]] Result<std::optional<core::ConfigEdit>> adjust(const core::Settings& settings,
                                                             Log& log, core::ContainerFacts facts,
                                                             Pid creator,
                                                             const Timeouts& timeouts = {});

/// The edit of config.json with which a container is created in its pod.
[[nodiscard]] core::ConfigEdit edit_for(const core::Admission& admission);

/// The cgroupsPath of a container that starts unmanaged because podqos failed, if its runtime would
/// reject the engine's cgroupsPath: a scope of its own in system.slice, runc's default.
[[nodiscard]] std::string unmanaged_cgroups_path(std::string_view id);

/// The config.json with which the runtime accepts an unmanaged container. runc with
/// --systemd-cgroup rejects a cgroupsPath that is not "slice:prefix:name" (libcontainer/specconv,
/// CreateCgroupConfig, runc 1.1 to 1.3), and engines write another form for pods without a cgroup
/// parent. Changes nothing but cgroupsPath, to unmanaged_cgroups_path().
/// @return nullopt if the runtime accepts config.json unchanged.
[[nodiscard]] Result<std::optional<std::string>> make_startable(const PlacementRequest& call);

/// Searches the bytes of config.json for names that podqos acts on. False for an ordinary
/// container, which is then not parsed. Engines write these names unescaped.
[[nodiscard]] bool may_concern(std::string_view config, const core::Settings& settings);

// Once it has started (container_start.cpp).

using core::Init;

/// Which interface reports a start, and so what it leaves to podqos.
enum class Reporter : std::uint8_t {
  /// createRuntime. The OOM score of a placed container is in its config.json.
  kHook,
  /// NRI. The score is written once it has started.
  kPlugin,
};

/// Sets tiers().weight_formula, if it is not known, where the container's weight tells which
/// formula its runtime uses to convert shares.
/// @param told  the engine's resources; nothing is detected if their shares differ from the
/// record's
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

/// Registers a running container that podqos was not told about, and changes nothing of it. Part of
/// a transaction.
[[nodiscard]] Status count_running(Transaction& transaction, AdmissionRequest request,
                                   const Init& init);

}  // namespace podqos::app
