#pragma once

#include <string>

#include "common/core/settings.h"
#include "ctl/explanation.h"
#include "ctl/table.h"

namespace podqos::ctl {

enum class Driver : std::uint8_t { kCgroupfs, kSystemd };

/// Whose writes are shown.
struct Target {
  Driver driver = Driver::kCgroupfs;
  core::CgroupLayout layout;

  [[nodiscard]] bool is_v1() const { return layout.cpu == core::CgroupVersion::kV1; }
};

/// A machine all of whose controllers are of one version.
[[nodiscard]] core::CgroupLayout layout_of(core::CgroupVersion version,
                                           const std::vector<std::string>& hugepage_labels);

/// File → value as the cgroupfs driver writes them on `layout`.
[[nodiscard]] std::map<std::string, std::string, std::less<>> files_on(
    const Explanation& explanation, const core::CgroupLayout& layout, core::WeightFormula formula);

/// An explanation for people: the class and why, each value with its rule and the place upstream
/// where the rule stands, the writes.
[[nodiscard]] std::string explain_text(const Explanation& explanation, const ExplainParams& params,
                                       const Target& target, ColourMode mode);

/// The writes alone: those of the cgroupfs driver by a rendered plan, those of systemd as
/// properties and the files beneath them.
[[nodiscard]] std::string explain_writes(const Explanation& explanation,
                                         const ExplainParams& params, const Target& target);

}  // namespace podqos::ctl
