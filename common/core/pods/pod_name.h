#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/core/record.h"

// How pods and containers are called in output for people.
namespace podqos::core {

/// "podman", "docker", "containerd", "cri-o"; "" if the engine is not known.
[[nodiscard]] std::string_view format_engine(const std::optional<Engine>& engine);
/// @return nullopt for all other text
[[nodiscard]] std::optional<Engine> parse_engine(std::string_view name);

/// What a pod's class and resources come from: "podqos.io/requests, limits", "inference".
[[nodiscard]] std::string_view format_source(ClassSource source);

/// The first 12 digits of text that begins with an engine's id, which has 64 hexadecimal digits;
/// all other text as it is.
[[nodiscard]] std::string_view short_id(std::string_view id);

/// The pod's id as its engine shows it: Podman's, or that of a CRI engine's sandbox; "" if it has
/// none.
[[nodiscard]] const std::string& engine_id(const PodRecord& pod);

/// What a pod is called by those who ask for it.
struct PodNames {
  std::string_view pod_namespace;
  std::string_view name;
  std::string_view uid;
  std::string_view id;  ///< engine_id()
};
/// "default/web", "web" without a namespace; without a name the uid, or if that is of an engine's
/// making, the first digits of the pod's id. Printable.
[[nodiscard]] std::string display_name(const PodNames& names);
[[nodiscard]] std::string display_name(const PodRecord& pod);

/// "pod <uid> (default/web)", in log lines and errors; the first digits of a uid that an engine
/// has made.
[[nodiscard]] std::string name_of(const PodRecord& pod);
/// "pod <uid> (default/web), container app (<id>)"; a container whose name is not known has its id
/// once.
[[nodiscard]] std::string name_of(const PodRecord& pod, const ContainerRecord& container);

/// "app", and the first digits of its id for a container whose name is not known; printable.
[[nodiscard]] std::string display_name(const ContainerRecord& container);

}  // namespace podqos::core
