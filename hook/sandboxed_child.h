#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/sys/fd.h"

namespace podqos::hook {

/// The sandbox of a child process.
struct Sandbox {
  const core::Settings& settings;  ///< for enter_sandbox()
  app::Log& log;
  /// Open files and directories beneath which the child may change files, and nowhere else: where
  /// the kernel has Landlock, and /proc is not mounted with hidepid, which would hide all other
  /// processes from such a child.
  std::span<const int> places;
};

/// Opens files and directories that a child may change; in place of what is yet to be made, its
/// directory.
[[nodiscard]] Result<std::vector<sys::UniqueFd>> open_places(std::vector<std::string> paths);

/// Decides in a child process, which enters the sandbox before: the caller becomes a runtime, which
/// must not inherit it.
/// @param deadline  the child is killed then
/// @param decide  is told whether the sandbox was entered: otherwise it must not parse anything
/// @return what `decide` returned; kTimeout, kCorrupt (the child was killed), or the error of
///         starting it.
[[nodiscard]] Result<bool> run_in_sandbox(const Sandbox& sandbox,
                                          app::Timeouts::Clock::time_point deadline,
                                          const std::function<bool(const Status&)>& decide);

}  // namespace podqos::hook
