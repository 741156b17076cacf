#pragma once

#include <optional>
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

/// One thing that is known of a pod or container.
struct Fact {
  Json json;         ///< {"fact": …, …}; see podqosctl(1)
  std::string text;  ///< the same in a sentence
};

/// What made a pod or container what it is.
struct Why {
  std::string pod;
  std::optional<std::string> container;  ///< nullopt: it is about a whole pod
  /// "managed", "counted", "not managed", "ended", "not started" or "unknown".
  std::string_view state;
  std::vector<Fact> facts;
};

/// Of many events the first and the last ones are told.
/// @param selector  see select(): of a pod or container with a record, in the journal or missed
/// @return the errors of select() and describe()
[[nodiscard]] Result<Why> explain_why(const NodeStory& story, cgroup::Machine& cgroups,
                                      std::string_view selector);

/// As `why -o json` prints it: {"pod", "container", "state", "facts"}.
[[nodiscard]] Json why_json(const Why& why);

/// For people: a sentence for each fact.
[[nodiscard]] std::string why_text(const Why& why, const Screen& screen);

}  // namespace podqos::ctl
