#include "common/core/record_size.h"

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

std::size_t size_of(std::string_view text) {
  constexpr std::size_t kEscape = 6;  // \u0000
  std::size_t size = 0;
  while (true) {
    const std::size_t plain = plain_length(text);
    size += plain;
    if (plain == text.size()) return size;
    size += kEscape;
    text.remove_prefix(plain + 1);
  }
}

std::size_t size_of(const ResourceList& list) {
  std::size_t size = 0;
  for (const auto& [name, quantity] : list)
    size += kQuantity + size_of(name);
  return size;
}

std::size_t size_of(const Resources& resources) {
  return kResourcesFrame + size_of(resources.requests) + size_of(resources.limits);
}

std::size_t size_of(const Pod& pod) {
  std::size_t size = size_of(pod.uid) + size_of(pod.name) + size_of(pod.pod_namespace) +
                     size_of(pod.priority_class_name) + size_of(pod.overhead);
  if (pod.resources) size += size_of(*pod.resources);
  for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
    for (const Container& container : *list)
      size += kPodContainerFrame + size_of(container.name) + size_of(container.resources);
  }
  return size;
}

}  // namespace

std::size_t record_size(const PodRecord& record) {
  std::size_t size =
      kRecordFrame + size_of(record.pod) + size_of(record.sandbox_id) + size_of(record.cgroup);
  if (record.sums) size += size_of(record.sums->resources);
  for (const ContainerRecord& container : record.containers) {
    size += kContainerFrame + size_of(container.id) + size_of(container.bundle) +
            size_of(container.name) + size_of(container.cgroup);
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
