#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "ctl/cli/command.h"
#include "ctl/cli/table.h"
#include "ctl/explain/explanation.h"

// What is explained of this node: pods that run, and containers about to be created.
namespace podqos::ctl {

/// A container that is about to be created.
struct BundleOptions {
  std::string directory;
  std::string id;  ///< "": taken from cgroupsPath, else the directory's name
};

/// A recorded pod, or one container of it: its record, each value with its rule and, of its
/// cgroups, what the rule says and the kernel has. As JSON, or as text for the screen.
/// @param params  of this node; driver is taken from the record
/// @return the errors of read_records() and select()
[[nodiscard]] Result<std::string> explain_running(std::string_view selector, ExplainParams params,
                                                  const OutputOptions& output,
                                                  const Screen& screen);

/// What would become of the container of an OCI bundle if it were created now: whether podqos
/// manages it, its pod, its values, its cgroup, what is changed in config.json and on the node.
/// Changes nothing.
/// @return the errors of app::preview_place(), and of reading config.json
[[nodiscard]] Result<std::string> explain_bundle(const BundleOptions& bundle, ExplainParams params,
                                                 const OutputOptions& output, const Screen& screen);

}  // namespace podqos::ctl
