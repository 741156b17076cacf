#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/core/record.h"

// How pods and containers are called in output for people.
namespace podqos::core {

/// "podman", "docker", "containerd", "cri-o"; "" if the engine is not known.
[[nodiscard]] std::string_view format_engine(const std::optional<Engine>& engine);

/// The first 12 digits of text that begins with an engine's id, which has 64 hexadecimal digits;
/// all other text as it is.
[[nodiscard]] std::string_view short_id(std::string_view id);

/// "default/web", "web" without a namespace, and the uid, shortened as an id, without a name;
/// printable.
[[nodiscard]] std::string display_name(const Pod& pod);

/// "app", and the first digits of its id for a container whose name is not known; printable.
[[nodiscard]] std::string display_name(const ContainerRecord& container);

}  // namespace podqos::core
