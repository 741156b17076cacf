#pragma once

#include <cstdint>
#include <string>

#include "ctl/configure/plan.h"
#include "ctl/configure/service.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// What was done beside the files.
struct ConfigureOutcome {
  bool checked = false;           ///< the engine has accepted the configuration
  bool plugin_enabled = false;    ///< podqos-nri.service was enabled and started
  bool plugin_ready = false;      ///< it was enabled and running before
  bool plugin_connected = false;  ///< the engine sends it its events
  bool plugin_disabled = false;   ///< it was stopped and disabled
  ServiceOutcome service = {};    ///< the engine's
};

/// Everything that a report is made of.
struct ConfigureReport {
  ConfigureRequest request;
  bool undo = false;
  std::string root;  ///< of --root; "" for the machine itself
  ConfigurePlan plan = {};
  std::string last_changed = {};  ///< the file or directory of the plan's that changed last
  ConfigureOutcome outcome = {};
};

/// A line for each change with how to undo it, the notes, and what is left to the operator.
[[nodiscard]] std::string format_text(const ConfigureReport& report);

/// The change as diff(1) prints it, to be given to patch(1). A symlink shows its target as "->
/// TARGET".
/// @param root  in front of the path in the head lines
/// @return an error if diff cannot be run.
[[nodiscard]] Result<std::string> format_diff(const FileChange& change, const std::string& root,
                                              ColourMode mode);

/// The diffs of all changes, and the notes in lines that begin with "#".
[[nodiscard]] Result<std::string> format_dry_run(const ConfigureReport& report, ColourMode mode);

/// Whether each change in JSON has its "diff", as for --dry-run.
enum class WithDiff : std::uint8_t { kNo, kYes };

/// For programs: engine, version, method, undo, changes (path, action, what, backup), notes, next,
/// checked, reloaded, restarted, stale, pluginEnabled, pluginConnected,
/// pluginDisabled.
[[nodiscard]] Result<std::string> format_json(const ConfigureReport& report, WithDiff diffs);

}  // namespace podqos::ctl
