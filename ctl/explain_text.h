#pragma once

#include <string>

#include "common/core/settings.h"
#include "ctl/explanation.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The cgroup driver whose writes are shown.
enum class Driver : std::uint8_t { kCgroupfs, kSystemd };

/// The driver and the cgroup layout for which `explain` shows writes.
struct Target {
  Driver driver = Driver::kCgroupfs;
  core::CgroupLayout layout;

  [[nodiscard]] bool is_v1() const { return layout.cpu == core::CgroupVersion::kV1; }
};

/// A layout with all controllers in one cgroup version.
/// @param hugepage_labels  page sizes of the machine, as in file names: "2MB"
[[nodiscard]] core::CgroupLayout layout_of(core::CgroupVersion version,
                                           const std::vector<std::string>& hugepage_labels);

/// Control file → value, as the cgroupfs driver writes them to a pod's cgroup on `layout`.
[[nodiscard]] std::map<std::string, std::string, std::less<>> files_on(
    const Explanation& explanation, const core::CgroupLayout& layout, core::WeightFormula formula);

/// The text form of `explain`: the class with its reason, each value with its rule and the upstream
/// file of that rule, the cgroup names, and the writes.
[[nodiscard]] std::string explain_text(const Explanation& explanation, const ExplainParams& params,
                                       const Target& target, ColourMode mode);

/// The writes alone, one a line: for the cgroupfs driver the rendered plan, for the systemd driver
/// unit properties followed by files.
[[nodiscard]] std::string explain_writes(const Explanation& explanation,
                                         const ExplainParams& params, const Target& target);

}  // namespace podqos::ctl
