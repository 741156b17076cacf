#pragma once

#include <string>

#include "common/cgroup/machine.h"
#include "common/core/pod_config.h"
#include "common/core/tier.h"

// ioWeight: the weights of cgroups are constant, and reset when the setting has gone.
namespace podqos::app {

/// Makes `values` reset the weight of a cgroup that has one of podqos's although the setting has
/// gone. Another weight is the administrator's and stays.
void reset_io_weight(cgroup::Machine& machine, const std::string& cgroup,
                     core::CgroupValues& values);
/// Marks a cgroup whose weight was written. Without support for the attribute it is never reset.
void note_io_weight(cgroup::Machine& machine, const std::string& cgroup,
                    const core::CgroupValues& values);

/// The same for the tiers below `kubepods`.
void reset_io_weights(cgroup::Machine& machine, const std::string& kubepods,
                      core::TierValues& values);
void note_io_weights(cgroup::Machine& machine, const std::string& kubepods,
                     const core::TierValues& values);

/// Whether the kernel has a file for the weight of the tiers below `kubepods`, where the io
/// controller is enabled.
[[nodiscard]] bool takes_io_weight(cgroup::Machine& machine, const std::string& kubepods);

}  // namespace podqos::app
