#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/pod_json.h"
#include "common/core/cgroups/naming.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::core::Annotations;
using podqos::core::PodqosAnnotations;
using podqos::core::ResourceList;
using podqos::fuzz::require;

/// One annotation a line, "key=value".
Annotations annotations_of(std::string_view text) {
  Annotations out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    out.emplace(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  return out;
}

void check_short_form(std::string_view text) {
  const auto list = podqos::codec::parse_short_form(text);
  if (!list) return;
  require(!list->empty());
  std::string again;
  for (const auto& [name, quantity] : *list) {
    require(quantity.sign() >= 0);
    again += podqos::cat(again.empty() ? "" : ",", name, "=", quantity.format_decimal());
  }
  require(podqos::codec::parse_short_form(again) == *list);
}

/// The API's rules: a limit is the request's default and its upper bound.
void check_resources(const podqos::core::Resources& resources) {
  for (const auto& [name, limit] : resources.limits) {
    require(resources.requests.contains(name));
    require(resources.requests.at(name) <= limit);
  }
}

void check_pod(const podqos::core::Pod& pod) {
  const auto again = podqos::codec::parse_pod_spec(podqos::codec::format_pod_spec(pod));
  require(again.has_value());
  require(again->containers == pod.containers && again->init_containers == pod.init_containers);
  require(again->ephemeral_containers == pod.ephemeral_containers);
  require(again->resources == pod.resources && again->overhead == pod.overhead);
  require(again->priority == pod.priority);
  require(again->name == pod.name && again->pod_namespace == pod.pod_namespace);
  require(again->priority_class_name == pod.priority_class_name);
}

void check_podqos(const Annotations& annotations) {
  const auto parsed = podqos::codec::parse_podqos_annotations(annotations);
  if (!parsed) {
    require(parsed.error().code == podqos::ErrorCode::kInvalidArgument ||
            parsed.error().code == podqos::ErrorCode::kTooLarge);
    return;
  }
  if (parsed->pod_uid) require(podqos::core::check_pod_uid(*parsed->pod_uid).has_value());
  if (parsed->container) require(!parsed->container->empty() && !parsed->container->contains('/'));
  for (const auto& [name, resources] : parsed->containers)
    check_resources(resources);
  if (parsed->pod) check_pod(*parsed->pod);
}

void check_engine(const Annotations& annotations) {
  const auto parsed = podqos::codec::parse_engine_annotations(annotations);
  Annotations known = annotations;
  std::erase_if(
      known, [](const auto& entry) { return !podqos::codec::is_engine_annotation(entry.first); });
  const auto of_known = podqos::codec::parse_engine_annotations(known);
  require(parsed.has_value() == of_known.has_value());
  if (!parsed) return;
  require(*parsed == *of_known);
  for (const auto& text :
       {parsed->sandbox_id, parsed->pod_name, parsed->pod_namespace, parsed->container_name}) {
    if (text) require(podqos::core::check_cgroup_component(*text).has_value());
  }
  if (parsed->pod_uid) require(podqos::core::check_pod_uid(*parsed->pod_uid).has_value());
  // containerd writes its keys after what a pod's author wrote, which may be the manager.
  const auto is_containerds = [](const auto& entry) {
    return entry.first == "io.kubernetes.cri.container-type" ||
           entry.first == "io.kubernetes.cri.sandbox-id" ||
           entry.first == "io.kubernetes.cri.sandbox-uid";
  };
  if (std::ranges::any_of(annotations, is_containerds)) return require(parsed->cri);
  const auto manager = annotations.find("io.container.manager");
  if (manager == annotations.end() || manager->second != "libpod") return;
  require(!parsed->pod_uid && !parsed->pod_sums && !parsed->is_sandbox);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const Annotations annotations = annotations_of(podqos::fuzz::text_of(bytes, size));
  for (const auto& [key, value] : annotations)
    check_short_form(value);
  check_podqos(annotations);
  check_engine(annotations);
  return 0;
}
