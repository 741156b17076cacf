#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "common/base/text.h"
#include "ctl/node/finding.h"

namespace podqos::ctl {

/// "NAME OUTCOME: TEXT → REMEDY", a line each.
[[nodiscard]] inline std::string shown(const Findings& checks) {
  constexpr std::array kOutcomes = {"ok", "warning", "problem", "skipped"};
  std::string out;
  for (const Finding& each : checks)
    out += cat(each.name, " ", kOutcomes.at(static_cast<std::size_t>(each.outcome)), ": ",
               each.text, each.remedy.empty() ? "" : " → ", each.remedy, "\n");
  return out;
}

}  // namespace podqos::ctl
