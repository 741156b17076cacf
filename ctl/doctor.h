#pragma once

#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "ctl/check.h"
#include "ctl/engines.h"
#include "ctl/json.h"
#include "ctl/systemd_units.h"

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
  Checks checks;             ///< group by group
  Json inventory = nullptr;  ///< see inventory_json(), with "notManaged"; null if not read
};
/// Makes all checks of `podqosctl doctor`. Changes nothing.
[[nodiscard]] Diagnosis diagnose(const app::ConfigurationReport& configuration,
                                 ProgramAnswers answers);

}  // namespace podqos::ctl
