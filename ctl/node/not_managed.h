#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/event.h"
#include "common/core/record.h"
#include "ctl/cli/table.h"
#include "ctl/node/finding.h"
#include "ctl/node/records.h"

namespace podqos::ctl {

/// A container that asks for podqos by an annotation, or is of a pod that podqos manages, and that
/// podqos does not manage.
struct NotManaged {
  core::Event container = {};  ///< engine, pod, names, ids and cgroup
  Pid pid = {};                ///< of its init
  std::string why = {};        ///< one sentence
  std::string remedy = {};
};

/// What was found of such containers.
struct MissedContainers {
  std::vector<NotManaged> containers = {};
  Findings findings = {};  ///< why there may be more
};

/// What tells why a container that runs is not managed.
struct MissedFacts {
  const app::ConfigurationReport& configuration;
  /// The last that was recorded of it, if that was a failure.
  const core::Event* failure = nullptr;
  std::optional<Error> refusal = std::nullopt;  ///< of its annotations
  /// The one of podqos's programs that its bundle names: podqos-hook, podqos-runtime, or ""
  std::string_view program = "";
  std::optional<core::Engine> engine = std::nullopt;
  bool had_plugin = false;  ///< podqos-nri has run since the node was booted
};

/// Sets why and remedy, by what is the surest: a failure that was recorded, then its annotations,
/// then the configuration.
void explain(NotManaged& missed, const MissedFacts& facts);

/// The containers that runtimes have noted (read_runtime_states(), at most 2,000) and that run
/// outside all pod cgroups and are in no record. A container without an annotation of podqos's, of
/// no pod of podqos's or with podqos.io/ignore is nothing to podqos; where podqos-nri has ended,
/// each container of CRI's may be something. The config.json is read of those only that are in no
/// record. Of those that cannot be read, at most 20 are warned of one by one.
/// @param events  of the journal, in its order
[[nodiscard]] MissedContainers find_not_managed(const app::ConfigurationReport& configuration,
                                                const NodeRecords& records,
                                                const std::vector<core::Event>& events,
                                                cgroup::Machine& cgroups);

/// For people: a table beneath a blank line, "" if it is empty.
[[nodiscard]] std::string not_managed_text(const std::vector<NotManaged>& missed,
                                           const Screen& screen);

}  // namespace podqos::ctl
