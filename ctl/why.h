#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/event.h"
#include "ctl/json.h"
#include "ctl/not_managed.h"
#include "ctl/records.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// All that is known of the node's pods.
struct NodeStory {
  app::ConfigurationReport configuration;
  NodeRecords records;
  std::vector<core::Event> events;  ///< the journal
  MissedContainers missed;
};

/// What made a pod or container what it is, as `why -o json` prints it: {"pod", "container": null
/// or its name, "state": "managed", "not managed", "ended", "not started" or "unknown", "facts":
/// [{"fact": …, …}]}. The members of a fact are what its sentence says; see podqosctl(1). Of many
/// events the first and the last ones are told.
/// @param selector  see select(): of a pod or container with a record, in the journal or missed
/// @return the errors of select() and describe_json()
[[nodiscard]] Result<Json> why_json(const NodeStory& story, cgroup::Machine& cgroups,
                                    std::string_view selector);

/// For people: a sentence for each fact.
[[nodiscard]] std::string why_text(const Json& why, const Screen& screen);

}  // namespace podqos::ctl
