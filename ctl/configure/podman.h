#pragma once

#include <string>
#include <vector>

namespace podqos::ctl {

/// The lines for Podman before 4.8; those of examples/podman/50-podqos.conf.
/// @param directories  hooks_dir; empty leaves it as it is, for the wrapper alone
[[nodiscard]] std::string format_podman(const std::vector<std::string>& directories);

}  // namespace podqos::ctl
