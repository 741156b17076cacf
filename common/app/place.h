#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/admission.h"
#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/core/cgroups/naming.h"
#include "common/core/events/decide_admission.h"
#include "common/core/pods/request.h"
#include "common/core/settings.h"

namespace podqos::app {

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
/// CreateContainer). For a container of a kubelet's pod cgroups_path is absent.
/// @param creator  the process that asks, see PlacementRequest::creator
/// @return nullopt if podqos does not manage the container: nothing was written.
[[nodiscard]] Result<std::optional<core::ConfigEdit>> adjust(const core::Settings& settings,
                                                             Log& log, core::ContainerFacts facts,
                                                             const core::Process& creator,
                                                             const Timeouts& timeouts = {});

/// The steps of place(), without the lock and the answer, for previews.
/// @return nullopt if podqos does not manage the container
[[nodiscard]] Result<std::optional<AdmissionRequest>> request_of(const core::Settings& settings,
                                                                 Log& log,
                                                                 const PlacementRequest& call,
                                                                 const codec::OciConfig& config);
/// @return nullopt for a sandbox whose pod is unknown
[[nodiscard]] Result<std::optional<Admission>> admit_created(Transaction& transaction,
                                                             AdmissionRequest request);

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

}  // namespace podqos::app
