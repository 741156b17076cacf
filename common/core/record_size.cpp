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

constexpr std::size_t kEscape = 6;  // \u0000

/// Bytes of a text with its escapes.
std::size_t escaped_size(std::string_view text) {
  std::size_t size = 0;
  while (true) {
    const std::size_t plain = plain_length(text);
    size += plain;
    if (plain == text.size()) return size;
    size += kEscape;
    text.remove_prefix(plain + 1);
  }
}

/// Adds up a record.
class Measure {
 public:
  /// @param text_size  bytes of a text in the record
  explicit Measure(std::size_t (*text_size)(std::string_view)) : text_size_(text_size) {}

  [[nodiscard]] std::size_t of(const PodRecord& record) const {
    std::size_t size = kRecordFrame + of(record.pod) + of(record.sandbox_id) + of(record.cgroup);
    if (record.sums) size += of(record.sums->resources);
    for (const ContainerRecord& container : record.containers) {
      size += kContainerFrame + of(container.id) + of(container.bundle) + of(container.name) +
              of(container.cgroup);
    }
    return size;
  }

 private:
  [[nodiscard]] std::size_t of(std::string_view text) const { return text_size_(text); }
  [[nodiscard]] std::size_t of(const ResourceList& list) const {
    std::size_t size = 0;
    for (const auto& [name, quantity] : list)
      size += kQuantity + of(name);
    return size;
  }
  [[nodiscard]] std::size_t of(const Resources& resources) const {
    return kResourcesFrame + of(resources.requests) + of(resources.limits);
  }
  [[nodiscard]] std::size_t of(const Pod& pod) const {
    std::size_t size = of(pod.uid) + of(pod.name) + of(pod.pod_namespace) +
                       of(pod.priority_class_name) + of(pod.overhead);
    if (pod.resources) size += of(*pod.resources);
    for (const auto* list : {&pod.containers, &pod.init_containers, &pod.ephemeral_containers}) {
      for (const Container& container : *list)
        size += kPodContainerFrame + of(container.name) + of(container.resources);
    }
    return size;
  }

  std::size_t (*text_size_)(std::string_view);
};

/// At least record_size(), without a look at each byte.
std::size_t most_record_size(const PodRecord& record) {
  return Measure{[](std::string_view text) { return kEscape * text.size(); }}.of(record);
}

}  // namespace

std::size_t record_size(const PodRecord& record) {
  return Measure{escaped_size}.of(record);
}

Status check_record_size(const PodRecord& record) {
  const std::size_t described = record.pod.containers.size();
  if (!record.complete && described > kMaxPartialContainers) {
    return fail(ErrorCode::kTooLarge,
                cat("the pod has ", described, " containers without podqos.io/pod, at most ",
                    kMaxPartialContainers,
                    " are allowed: describe the pod once with podqos.io/pod (podqosctl annotate)"));
  }
  if (most_record_size(record) <= kMaxPodRecordSize - kRecordRoom) return {};
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
