#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "ctl/configure/program.h"

// What a running daemon knows of its files.
namespace podqos::ctl {

using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

/// When the process was started, by today's clock; suspensions of the machine count. nullopt if it
/// has ended.
[[nodiscard]] std::optional<Time> start_of(Pid pid);

/// The file that changed last, if it did after the process was started, which then has not read it.
/// nullopt also where the clock was set back beyond that, and nothing can be said.
[[nodiscard]] std::optional<std::string> unread_file(const std::vector<std::string>& files,
                                                     Pid pid);

/// What Docker's daemon says of itself.
struct DockerAnswer {
  bool knows_podqos = false;         ///< has the runtime "podqos"
  std::int64_t containers = 0;       ///< that a restart stops: 0 with live-restore
  std::string driver = {};           ///< "systemd" or "cgroupfs"
  std::string default_runtime = {};  ///< "runc"
};
/// Asks Docker's daemon by its client.
/// @return kNotFound without a client, or the error of the last one
[[nodiscard]] Result<DockerAnswer> ask_docker(const Run& run);

/// The process that the plugin serves by its STATUS= (nri/service.cpp): a runtime that may have
/// ended a moment ago. nullopt if it serves none.
[[nodiscard]] std::optional<Pid> served_process(std::string_view status);

}  // namespace podqos::ctl
