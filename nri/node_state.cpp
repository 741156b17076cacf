#include "nri/node_state.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/repeated_field.h>
#include <google/protobuf/wire_format_lite.h>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

using google::protobuf::internal::WireFormatLite;

/// Prefix of the annotations that podqos reads.
constexpr std::string_view kOwnPrefix = "podqos.io/";
constexpr const char* kUnreadable = "not a SynchronizeRequest";

/// Contents of a part, counted before it is parsed.
struct Outline {
  std::size_t pods = 0;
  std::size_t containers = 0;
  bool more = false;
};

/// Counts pods and containers of a part without creating messages: an empty pod takes two bytes in
/// the payload, but hundreds in memory.
/// @return nullopt: the payload is not a sequence of protobuf fields.
std::optional<Outline> outline_of(std::string_view payload) {
  Outline outline;
  google::protobuf::io::CodedInputStream input{
      reinterpret_cast<const std::uint8_t*>(payload.data()), static_cast<int>(payload.size())};
  for (std::uint32_t tag = input.ReadTag(); tag != 0; tag = input.ReadTag()) {
    if (tag == WireFormatLite::MakeTag(api::SynchronizeRequest::kMoreFieldNumber,
                                       WireFormatLite::WIRETYPE_VARINT)) {
      std::uint64_t more = 0;
      if (!input.ReadVarint64(&more)) return std::nullopt;
      outline.more = more != 0;
      continue;
    }
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field == api::SynchronizeRequest::kPodsFieldNumber) ++outline.pods;
    if (field == api::SynchronizeRequest::kContainersFieldNumber) ++outline.containers;
    if (!WireFormatLite::SkipField(&input, tag)) return std::nullopt;
  }
  if (!input.ConsumedEntireMessage()) return std::nullopt;
  return outline;
}

/// kTooLarge if there are more than `limit` of something.
Status check_limit(std::string_view what, std::size_t number, std::size_t limit) {
  if (number <= limit) return {};
  return fail(ErrorCode::kTooLarge, cat("Synchronize: ", number, " ", what, ", at most ", limit));
}

// The functions below move the fields that podqos reads to new messages. protobuf keeps unknown
// fields in a message and cannot drop them: for a container these are its environment, arguments,
// mounts and hooks, of any length.

/// Moves podqos's annotations.

template <class Map>
void move_own(Map& annotations, Map& kept) {
  for (auto& [key, value] : annotations) {
    if (key.starts_with(kOwnPrefix)) kept[key] = std::move(value);
  }
}

void move_read(api::LinuxResources& resources, api::LinuxResources& kept) {
  if (resources.has_memory()) kept.mutable_memory()->Swap(resources.mutable_memory());
  if (resources.has_cpu()) kept.mutable_cpu()->Swap(resources.mutable_cpu());
  if (resources.has_pids()) kept.mutable_pids()->Swap(resources.mutable_pids());
  kept.mutable_hugepage_limits()->Swap(resources.mutable_hugepage_limits());
  kept.mutable_unified()->swap(*resources.mutable_unified());
}

void move_read(api::LinuxPodSandbox& pod, api::LinuxPodSandbox& kept) {
  if (pod.has_pod_overhead()) move_read(*pod.mutable_pod_overhead(), *kept.mutable_pod_overhead());
  if (pod.has_pod_resources())
    move_read(*pod.mutable_pod_resources(), *kept.mutable_pod_resources());
  kept.mutable_cgroup_parent()->swap(*pod.mutable_cgroup_parent());
  kept.mutable_cgroups_path()->swap(*pod.mutable_cgroups_path());
}

void move_read(api::PodSandbox& pod, api::PodSandbox& kept) {
  kept.mutable_id()->swap(*pod.mutable_id());
  kept.mutable_name()->swap(*pod.mutable_name());
  kept.mutable_uid()->swap(*pod.mutable_uid());
  kept.mutable_namespace_()->swap(*pod.mutable_namespace_());
  move_own(*pod.mutable_annotations(), *kept.mutable_annotations());
  if (pod.has_linux()) move_read(*pod.mutable_linux(), *kept.mutable_linux());
  kept.set_pid(pod.pid());
}

void move_read(api::LinuxContainer& container, api::LinuxContainer& kept) {
  if (container.has_resources())
    move_read(*container.mutable_resources(), *kept.mutable_resources());
  if (container.has_oom_score_adj())
    kept.mutable_oom_score_adj()->Swap(container.mutable_oom_score_adj());
  kept.mutable_cgroups_path()->swap(*container.mutable_cgroups_path());
}

void move_read(api::Container& container, api::Container& kept) {
  kept.mutable_id()->swap(*container.mutable_id());
  kept.mutable_pod_sandbox_id()->swap(*container.mutable_pod_sandbox_id());
  kept.mutable_name()->swap(*container.mutable_name());
  kept.set_state(container.state());
  move_own(*container.mutable_annotations(), *kept.mutable_annotations());
  if (container.has_linux()) move_read(*container.mutable_linux(), *kept.mutable_linux());
  kept.set_pid(container.pid());
}

/// Moves the fields that podqos reads of a part's elements to `collected`.
/// @return the serialized size of the moved fields.
template <class Element>
std::size_t collect(google::protobuf::RepeatedPtrField<Element>& part,
                    google::protobuf::RepeatedPtrField<Element>& collected) {
  std::size_t bytes = 0;
  for (Element& element : part) {
    Element& kept = *collected.Add();
    move_read(element, kept);
    bytes += kept.ByteSizeLong();
  }
  return bytes;
}

}  // namespace

Result<bool> NodeState::read_part(std::string payload) {
  if (auto ok = check_limit("parts", ++parts_, limits_.parts); !ok)
    return fail(std::move(ok).error());
  const auto outline = outline_of(payload);
  if (!outline) return fail(ErrorCode::kInvalidArgument, kUnreadable);
  if (auto ok = check_limit("pods", pods_ += outline->pods, limits_.pods); !ok)
    return fail(std::move(ok).error());
  if (auto ok = check_limit("containers", containers_ += outline->containers, limits_.containers);
      !ok)
    return fail(std::move(ok).error());
  unread_bytes_ += payload.size();
  unread_.push_back(std::move(payload));
  if (unread_bytes_ > limits_.unread) {
    if (auto done = read_unread(); !done) return fail(std::move(done).error());
  }
  return !outline->more;
}

Status NodeState::read_unread() {
  for (std::string& payload : unread_) {
    api::SynchronizeRequest part;
    if (!part.ParseFromString(std::exchange(payload, {})))
      return fail(ErrorCode::kInvalidArgument, kUnreadable);
    bytes_ += collect(*part.mutable_pods(), *collected_.mutable_pods());
    bytes_ += collect(*part.mutable_containers(), *collected_.mutable_containers());
    if (auto ok = check_limit("bytes", bytes_, limits_.bytes); !ok) return ok;
  }
  unread_.clear();
  unread_bytes_ = 0;
  return {};
}

Result<bool> NodeState::add(std::string payload) {
  auto last = read_part(std::move(payload));
  if (!last) *this = NodeState{limits_};
  return last;
}

Result<api::SynchronizeRequest> NodeState::read() && {
  if (auto done = read_unread(); !done) return fail(std::move(done).error());
  return std::move(collected_);
}

}  // namespace podqos::nri
