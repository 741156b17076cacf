#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"

namespace podqos::ctl {

/// That of the runtime which `configure` gives CRI-O.
constexpr const char* kCrioRuntimeRoot = "/run/podqos-runc";
/// The directories, --root of a runtime, in which each container has one of its name: where
/// runtimes, containerd, CRI-O and Docker have them for root. Engines that choose others are not
/// seen.
[[nodiscard]] std::vector<std::string> runtime_roots();
/// Whether a runtime has the container in one of these, as it does until it is deleted.
[[nodiscard]] bool is_noted(const std::string& id, const std::vector<std::string>& roots);

/// A container as its OCI runtime has noted it.
struct RuntimeContainer {
  std::string id = {};
  std::string bundle = {};
  Pid pid = {};  ///< of its init, which may have ended
  std::optional<StartTime> start_time = std::nullopt;
  friend bool operator==(const RuntimeContainer&, const RuntimeContainer&) = default;
};

/// Parses what a runtime has noted of a container: state.json of runc and youki, status of crun.
/// @param id  the name of its directory
/// @return nullopt if it has no process; kInvalidArgument if it is damaged, or tells no bundle
/// @note runc libcontainer/container.go, State; crun src/libcrun/status.c; youki
///       crates/libcontainer/src/container/state.rs
[[nodiscard]] Result<std::optional<RuntimeContainer>> parse_runtime_state(std::string id,
                                                                          std::string_view text);

/// What runtimes have noted.
struct RuntimeStates {
  std::vector<RuntimeContainer> containers = {};
  std::vector<std::pair<std::string, Error>> unread = {};  ///< id, and why it cannot be read
  bool complete = true;                                    ///< false: there may be more containers
};

/// The containers that runtimes have noted in runtime_roots().
/// @param known  ids that are left out, so that their files are not read
/// @param most  at which the search ends
[[nodiscard]] RuntimeStates read_runtime_states(const std::set<std::string, std::less<>>& known,
                                                std::size_t most);

}  // namespace podqos::ctl
