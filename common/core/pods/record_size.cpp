#include "common/core/pods/record_size.h"

#include <string_view>

#include "common/base/text.h"

namespace podqos::core {

namespace {

// Maximum bytes of member names, punctuation, keywords and numbers.
constexpr std::size_t kRecordFrame = 2048;
constexpr std::size_t kResourcesFrame = 40;
constexpr std::size_t kPodContainerFrame = 40;
constexpr std::size_t kContainerFrame = 256;
// At most 41 characters, quotes and separators. Measuring one would be as slow as formatting it.
constexpr std::size_t kQuantity = 48;

constexpr std::size_t kEscape = 6;  // \u0000

/// Bytes of a text with its escapes.
std::size_t json_size(std::string_view text) {
  std::size_t size = 0;
  while (true) {
    const std::size_t plain = plain_length(text);
    size += plain;
    if (plain == text.size()) return size;
    size += kEscape;
    text.remove_prefix(plain + 1);
  }
}

std::size_t json_size(const ResourceList& list) {
  std::size_t size = 0;
  for (const auto& [name, quantity] : list)
    size += kQuantity + json_size(name);
  return size;
}

std::size_t json_size(const Resources& resources) {
  return kResourcesFrame + json_size(resources.requests) + json_size(resources.limits);
}

std::size_t json_size(const Pod& pod) {
  std::size_t size = json_size(pod.uid) + json_size(pod.name) + json_size(pod.pod_namespace) +
                     json_size(pod.priority_class_name) + json_size(pod.overhead);
  if (pod.resources) size += json_size(*pod.resources);
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    for (const Container& container : *list)
      size += kPodContainerFrame + json_size(container.name) + json_size(container.resources);
  }
  return size;
}

}  // namespace

std::size_t record_size(const PodRecord& record) {
  std::size_t size = kRecordFrame + json_size(record.pod) + json_size(record.sandbox_id) +
                     json_size(record.cgroup);
  if (record.sums) size += json_size(record.sums->resources);
  for (const ContainerRecord& container : record.containers) {
    size += kContainerFrame + json_size(container.id) + json_size(container.bundle) +
            json_size(container.name) + json_size(container.cgroup);
  }
  return size;
}

Status check_record_size(const PodRecord& record) {
  const std::size_t described = record.pod.containers.size();
  if (!record.complete && described > kMaxPartialContainers) {
    return fail(ErrorCode::kTooLarge,
                cat("the pod has ", described, " containers without podqos.io/pod, at most ",
                    kMaxPartialContainers,
                    " are allowed: describe the pod once with podqos.io/pod (podqosctl annotate)"));
  }
  const std::size_t size = record_size(record);
  if (size > kMaxPodRecordSize - kRecordRoom) {
    return fail(
        ErrorCode::kTooLarge,
        cat("the pod's record needs ", size, " bytes, at most ", kMaxPodRecordSize - kRecordRoom,
            " are allowed: give it fewer containers, or fewer resources in its "
            "podqos.io annotations"));
  }
  return {};
}

}  // namespace podqos::core
