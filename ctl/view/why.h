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
#include "ctl/node/not_managed.h"
#include "ctl/node/records.h"

namespace podqos::ctl {

/// All that is known of the node's pods.
struct NodeStory {
  app::ConfigurationReport configuration;
  NodeRecords records;
  std::vector<core::Event> events;  ///< the journal
  MissedContainers missed;
};

/// What made a pod or container what it is.
struct Why {
  /// As `why -o json` prints it: {"pod", "container": null or its name, "state": "managed",
  /// "counted", "not managed", "ended", "not started" or "unknown", "facts": [{"fact": …, …}]}
  /// without values, which describe_json() has; see podqosctl(1).
  Json json;
  std::vector<std::string> sentences = {};  ///< for each fact and value
};
/// Of many events the first and the last ones are told.
/// @param selector  see select(): of a pod or container with a record, in the journal or missed
/// @return the errors of select() and describe()
[[nodiscard]] Result<Why> explain_why(const NodeStory& story, cgroup::Machine& cgroups,
                                      std::string_view selector);

/// For people.
[[nodiscard]] std::string why_text(const Why& why, const Screen& screen);

}  // namespace podqos::ctl
