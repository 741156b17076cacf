#include "common/core/pods/pod_name.h"

#include <algorithm>
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

std::string_view short_id(std::string_view id) {
  constexpr std::size_t kIdLength = 64;
  constexpr std::size_t kShown = 12;
  const bool is_id = id.size() >= kIdLength && std::ranges::all_of(id.substr(0, kIdLength), is_hex);
  return is_id ? id.substr(0, kShown) : id;
}

const std::string& engine_id(const PodRecord& pod) {
  return pod.pod_id ? *pod.pod_id : pod.sandbox_id;
}

std::string display_name(const PodRecord& record) {
  const Pod& pod = record.pod;
  if (pod.name.empty()) {
    const bool engines = short_id(pod.uid) != pod.uid;
    return printable(short_id(engines && record.pod_id ? *record.pod_id : pod.uid));
  }
  if (pod.pod_namespace.empty()) return printable(pod.name);
  return cat(printable(pod.pod_namespace), "/", printable(pod.name));
}

std::string display_name(const ContainerRecord& container) {
  return printable(short_id(container.name.empty() ? container.id : container.name));
}

}  // namespace podqos::core
