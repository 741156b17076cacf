#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace podqos::ctl {

/// What came of looking at something.
enum class Outcome : std::uint8_t {
  kOk,
  kWarning,  ///< works, but perhaps not as meant
  kProblem,  ///< does not work
  /// Does not concern this machine, cannot be found out, or is mere advice.
  kSkipped,
};

/// What was found when one thing was looked at.
struct Finding {
  std::string group;  ///< "kernel", or the name of an engine
  std::string name;  ///< the kind within the group, "controllers"; docs/troubleshooting.md has each
  Outcome outcome = Outcome::kOk;
  std::string text;          ///< what was found, one line
  std::string remedy = {};   ///< a command or what else to do; "" if there is nothing to do
  std::string subject = {};  ///< uid of the pod that it is about; "" for anything else
};

using Findings = std::vector<Finding>;

}  // namespace podqos::ctl
