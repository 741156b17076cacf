#pragma once

#include <cstdint>
#include <string>

namespace podqos::ctl {

/// What a handler of containerd depends on.
struct ContainerdHandler {
  std::int64_t format = 2;     ///< "version" of the configuration: 2 or 3
  bool with_runc = false;      ///< containerd's own handler is to be named beside it
  bool systemd_driver = true;  ///< SystemdCgroup
};

/// The tables of the handler podqos; those of examples/containerd.
[[nodiscard]] std::string format_containerd_handler(const ContainerdHandler& handler);

/// The table that switches on NRI in containerd 1.7; that of examples/containerd/nri.toml.
[[nodiscard]] std::string format_containerd_nri();

}  // namespace podqos::ctl
