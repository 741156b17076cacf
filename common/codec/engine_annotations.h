#pragma once

#include <string_view>

namespace podqos::codec {

/// Whether parse_engine_annotations() (annotations.h) reads `key`.
[[nodiscard]] bool is_engine_annotation(std::string_view key);

/// The container id in the name of Podman's cgroup of a container: libpod-ID, and libpod-payload-ID
/// under `--cgroups=split`, Quadlet's default; systemd adds ".scope".
/// @param cgroup  a path, or its last component
/// @return "" if the name has no such form.
/// @note Podman libpod/container_internal_linux.go, getOCICgroupPath().
[[nodiscard]] std::string_view podman_container_id(std::string_view cgroup);

}  // namespace podqos::codec
