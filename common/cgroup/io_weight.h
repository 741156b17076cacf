#pragma once

#include <string>
#include <vector>

#include "common/cgroup/machine.h"
#include "common/core/cgroup_values.h"

namespace podqos::cgroup {

/// Whether podqos has written the weight of `cgroup`. If the setting is gone, the cgroup must get
/// the kernel's default once more.
[[nodiscard]] bool has_io_weight(Machine& machine, const std::string& cgroup);

/// Compares the weights of `cgroup` with those that the rules require, and returns one clause per
/// difference ("io.weight is 100, the rule says 500"). A weight that podqos has written although
/// the setting has gone is to be the default. Compares what the kernel has files for; changes
/// nothing.
[[nodiscard]] std::vector<std::string> io_weight_differences(Machine& machine,
                                                             const std::string& cgroup,
                                                             core::CgroupValues rule);

/// Whether the kernel has a file for the weight of `cgroup`, whose parent enables the io
/// controller.
[[nodiscard]] bool takes_io_weight(Machine& machine, const std::string& cgroup);

}  // namespace podqos::cgroup
