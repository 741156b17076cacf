#pragma once

#include <optional>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/cgroupfs.h"
#include "ctl/node/engines.h"
#include "ctl/node/finding.h"
#include "ctl/node/node_model.h"
#include "ctl/node/systemd_units.h"

namespace podqos::ctl {

/// What systemd and the engines' own programs say.
struct ProgramAnswers {
  Result<Units> units;
  std::vector<EngineFacts> engines;
};
/// Executes these programs: to be called before narrow(), which forbids that.
[[nodiscard]] ProgramAnswers ask_programs(const std::string& state_dir);

/// What was found on this machine.
struct Diagnosis {
  Findings checks;                          ///< group by group
  std::optional<Node> node = std::nullopt;  ///< nullopt if it could not be read
};
/// Makes all checks of `podqosctl doctor`. Changes nothing.
/// @param cgroups  have to outlive the node
[[nodiscard]] Diagnosis diagnose(const app::ConfigurationReport& configuration,
                                 Result<cgroup::Cgroupfs>& cgroups, ProgramAnswers answers);

}  // namespace podqos::ctl
