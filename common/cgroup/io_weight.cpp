#include "common/cgroup/io_weight.h"

#include <algorithm>
#include <string_view>

#include "common/base/text.h"
#include "common/cgroup/value.h"
#include "common/core/layout.h"
#include "common/core/value_table.h"

namespace podqos::cgroup {

namespace {

/// The weight of a file's first line: "default 100" or "100". The others are of single devices.
std::string_view weight_in(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  return line.substr(line.rfind(' ') + 1);  // npos + 1 is 0
}

}  // namespace

bool has_io_weight(Machine& machine, const std::string& cgroup) {
  const auto weighted = machine.attribute(cgroup, core::kIoWeightAttribute);
  return weighted && *weighted == core::kIoWeightSet;
}

std::vector<std::string> io_weight_differences(Machine& machine, const std::string& cgroup,
                                               core::CgroupValues rule) {
  const auto version = machine.layout_without_hugepages().io;
  if (!version) return {};
  if (!rule.io_weight && has_io_weight(machine, cgroup)) rule.io_weight = core::kDefaultIoWeight;
  std::vector<std::string> found;
  for (const core::ValueRow& row : core::value_table()) {
    if (row.controller != core::Controller::kIo) continue;
    const core::ValueFile& file = row.on(*version);
    // Weights are the same by both formulas, which are of CPU shares.
    const std::string wanted = core::content_for(file, rule, core::WeightFormula::kLinear);
    if (wanted.empty()) continue;
    const auto held = machine.read(cgroup, row.controller, std::string{file.name});
    if (held && !holds_value(file.name, *held, wanted))
      found.push_back(
          cat(file.name, " is ", printable(weight_in(*held)), ", the rule says ", wanted));
  }
  return found;
}

bool takes_io_weight(Machine& machine, const std::string& cgroup) {
  const auto version = machine.layout_without_hugepages().io;
  return version && std::ranges::any_of(core::value_table(), [&](const core::ValueRow& row) {
           const core::ValueFile& file = row.on(*version);
           return row.controller == core::Controller::kIo && file.number != nullptr &&
                  machine.read(cgroup, row.controller, std::string{file.name});
         });
}

}  // namespace podqos::cgroup
