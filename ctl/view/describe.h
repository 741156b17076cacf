#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/event.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/node/node_model.h"
#include "ctl/node/records.h"
#include "ctl/node/selector.h"

namespace podqos::ctl {

/// One pod in full.
struct Description {
  PodEntry pod;
  Findings findings;                ///< about the pod
  std::vector<core::Event> events;  ///< the last ones
};

/// Changes nothing.
/// @param selected  of `records`: the pod, or a container: then it has no other
/// @param events  of the journal
/// @return the errors of read_node()
[[nodiscard]] Result<Description> describe(const app::ConfigurationReport& configuration,
                                           const NodeRecords& records, cgroup::Machine& cgroups,
                                           const Selection& selected,
                                           std::vector<core::Event> events);

/// One thing that is told of a pod's or container's cgroup.
struct Value {
  std::string_view name;      ///< "CPU limit"
  std::string text;           ///< "500m (rule 1)"; "-" for none
  std::string sentence = {};  ///< behind "Its", for `why`; "": that leaves it out
};
/// Values of the kernel, with those of the rule where they differ, usage, and what was counted.
/// @param container  of the pod; nullptr: of the pod itself
[[nodiscard]] std::vector<Value> values_of(const PodEntry& pod, const ContainerEntry* container);

/// Why a pod has its class: "no cpu or memory is requested …".
[[nodiscard]] std::string reason_of(const core::PodRecord& record);

/// As `describe -o json` prints it: the pod of node_json(), for it and its containers what the
/// kernel has counted ("cpuUsageNs", "cpuPeriods", "cpuThrottledPeriods"), and its "events".
[[nodiscard]] Json describe_json(const Description& description);

/// The same for people, without what is wrong.
[[nodiscard]] std::string describe_text(const Description& description, const Screen& screen);

}  // namespace podqos::ctl
