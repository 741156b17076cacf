#pragma once

#include <string>

namespace podqos::ctl {

/// A daemon.json with podqos's runtime and nothing else; examples/docker/daemon.json.
[[nodiscard]] std::string format_docker();

}  // namespace podqos::ctl
