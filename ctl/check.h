#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace podqos::ctl {

/// What came of a check.
enum class Outcome : std::uint8_t {
  kOk,
  kWarning,  ///< works, but perhaps not as meant
  kProblem,  ///< does not work
  /// Does not concern this machine, cannot be found out, or is mere advice.
  kSkipped,
};

/// One thing that `podqosctl doctor` has looked at.
struct Check {
  std::string group;  ///< "kernel", or the name of an engine
  std::string name;   ///< within the group, "controllers"; docs/troubleshooting.md has each
  Outcome outcome = Outcome::kOk;
  std::string text;         ///< what was found, one line
  std::string remedy = {};  ///< a command or what else to do; "" if there is nothing to do
};

using Checks = std::vector<Check>;

}  // namespace podqos::ctl
