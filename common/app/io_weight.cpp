#include "common/app/io_weight.h"

#include <algorithm>

#include "common/core/pod_plan.h"
#include "common/core/value_table.h"

namespace podqos::app {

namespace {

// Values of cgroup::kIoWeightAttribute.
constexpr const char* kWritten = "1";
constexpr const char* kReset = "0";

}  // namespace

void reset_io_weight(cgroup::Machine& machine, const std::string& cgroup,
                     core::CgroupValues& values) {
  if (values.io_weight) return;
  const auto weighted = machine.attribute(cgroup, cgroup::kIoWeightAttribute);
  if (weighted && *weighted == kWritten) values.io_weight = core::kDefaultIoWeight;
}

void note_io_weight(cgroup::Machine& machine, const std::string& cgroup,
                    const core::CgroupValues& values) {
  if (!values.io_weight) return;
  const bool is_default = *values.io_weight == core::kDefaultIoWeight;
  static_cast<void>(
      machine.set_attribute(cgroup, cgroup::kIoWeightAttribute, is_default ? kReset : kWritten)
          .has_value());
}

bool takes_io_weight(cgroup::Machine& machine, const std::string& kubepods) {
  const std::string tier = core::tier_path(kubepods, core::QosClass::kBurstable);
  const auto version = machine.layout_without_hugepages().io;
  return version && std::ranges::any_of(core::value_table(), [&](const core::ValueRow& row) {
           const core::ValueFile& file = row.on(*version);
           return row.controller == core::Controller::kIo && file.number != nullptr &&
                  machine.read(tier, row.controller, std::string{file.name});
         });
}

void reset_io_weights(cgroup::Machine& machine, const std::string& kubepods,
                      core::TierValues& values) {
  using enum core::QosClass;
  reset_io_weight(machine, core::tier_path(kubepods, kBurstable), values.burstable);
  reset_io_weight(machine, core::tier_path(kubepods, kBestEffort), values.besteffort);
}

void note_io_weights(cgroup::Machine& machine, const std::string& kubepods,
                     const core::TierValues& values) {
  using enum core::QosClass;
  note_io_weight(machine, core::tier_path(kubepods, kBurstable), values.burstable);
  note_io_weight(machine, core::tier_path(kubepods, kBestEffort), values.besteffort);
}

}  // namespace podqos::app
