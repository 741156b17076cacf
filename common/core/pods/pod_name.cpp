#include "common/core/pods/pod_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/base/text.h"

namespace podqos::core {

std::string_view format_engine(const std::optional<Engine>& engine) {
  return engine ? word_at(kEngineNames, static_cast<std::size_t>(*engine)) : "";
}

std::optional<Engine> parse_engine(std::string_view name) {
  return place_of_word(kEngineNames, name).transform([](std::size_t place) {
    return static_cast<Engine>(place);
  });
}

std::string_view format_source(ClassSource source) {
  constexpr std::array<std::string_view, 6> kSources = {
      "engine",       "podqos.io/pod", "podqos.io/qos-class", "podqos.io/requests, limits",
      "CRI pod sums", "inference"};
  static_assert(kSources.size() == static_cast<std::size_t>(ClassSource::kInference) + 1);
  return kSources.at(static_cast<std::size_t>(source));
}

std::string_view short_id(std::string_view id) {
  constexpr std::size_t kIdLength = 64;
  constexpr std::size_t kShown = 12;
  const bool is_id = id.size() >= kIdLength && std::ranges::all_of(id.substr(0, kIdLength), is_hex);
  return is_id ? id.substr(0, kShown) : id;
}

const std::string& engine_id(const PodRecord& pod) {
  return pod.pod_id ? *pod.pod_id : pod.sandbox_id;
}

std::string display_name(const PodNames& names) {
  if (names.name.empty()) {
    const bool engines = short_id(names.uid) != names.uid;
    return printable(short_id(engines && !names.id.empty() ? names.id : names.uid));
  }
  if (names.pod_namespace.empty()) return printable(names.name);
  return cat(printable(names.pod_namespace), "/", printable(names.name));
}

std::string display_name(const PodRecord& pod) {
  return display_name({.pod_namespace = pod.pod.pod_namespace,
                       .name = pod.pod.name,
                       .uid = pod.pod.uid,
                       .id = engine_id(pod)});
}

std::string name_of(const PodRecord& pod) {
  const std::string_view uid = short_id(pod.pod.uid);
  const std::string name = display_name(pod);
  return name == uid ? cat("pod ", uid) : cat("pod ", uid, " (", name, ")");
}

std::string name_of(const PodRecord& pod, const ContainerRecord& container) {
  const std::string id = printable(container.id);
  const std::string name =
      container.name == container.id ? id : cat(printable(container.name), " (", id, ")");
  return cat(name_of(pod), ", container ", name);
}

std::string display_name(const ContainerRecord& container) {
  return printable(short_id(container.name.empty() ? container.id : container.name));
}

}  // namespace podqos::core
