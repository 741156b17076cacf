#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/log.h"
#include "common/app/placement_cache.h"
#include "common/app/timeouts.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/codec/oci_edit.h"
#include "common/core/container_facts.h"
#include "common/core/driver.h"
#include "common/core/settings.h"

namespace podqos::app {

/// A container that an engine is about to create.
struct PlacementRequest {
  std::string id;
  std::string bundle;       ///< canonical; "" when the way in does not know it
  std::string_view config;  ///< bytes of config.json
  Pid creator;              ///< the process that creates it, and is gone once that is done
  std::optional<core::Driver> driver = std::nullopt;  ///< as the runtime's own flags tell it
  codec::HookRegistration hooks;
};

/// The same where the engine tells the facts themselves.
struct AdjustmentRequest {
  core::ContainerFacts facts;
  Pid creator;
  Timeouts timeouts = {};
};

/// How config.json must change so that the runtime puts the container where it belongs.
struct ConfigChange {
  std::string cgroups_path;
  std::vector<codec::Splice> splices;
};

/// The whole job before the runtime acts: record (pending), pod cgroup with its values, tiers; then
/// the edit.
/// @return nullopt for a container that podqos is not asked to manage: nothing has been written.
[[nodiscard]] Result<std::optional<ConfigChange>> place(const core::Settings& settings, Log& log,
                                                        const PlacementRequest& call);

/// The same job for an engine that asks for the values to change; for an adopted container
/// cgroups_path is absent.
/// @param placement_cache  a container that it foresees is not written down before it has started
/// @return nullopt for a container that podqos is not asked to manage: nothing has been written.
[[nodiscard]] Result<std::optional<core::ConfigEdit>> adjust(const core::Settings& settings,
                                                             Log& log, AdjustmentRequest call,
                                                             PlacementCache& placement_cache);

/// Where a container starts that stays unmanaged because podqos has failed, and that its runtime
/// would refuse as the engine has described it: in a scope of its own, as by runc's default.
[[nodiscard]] std::string unmanaged_cgroups_path(std::string_view id);

/// The edit of config.json by which the runtime takes such a container: runc with --systemd-cgroup
/// refuses a cgroupsPath that is not "slice:prefix:name" (libcontainer/specconv,
/// CreateCgroupConfig, runc 1.1 to 1.3), and engines name another one for pods without a cgroup
/// parent. Nothing but cgroupsPath is changed.
/// @return nullopt where the runtime takes it as it is.
[[nodiscard]] Result<std::optional<ConfigChange>> make_startable(const PlacementRequest& call);

/// A look at the bytes of a config.json: can podqos have anything to do with it? False for an
/// ordinary container, which then costs no parsing. Engines write these names unescaped.
[[nodiscard]] bool may_concern(std::string_view config, const core::Settings& settings);

}  // namespace podqos::app
