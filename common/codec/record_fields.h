#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "common/core/record.h"

// The members of records as JSON: each list serves reading and writing, so that they cannot differ.
// All are part of the file format.
namespace podqos::codec {

/// An enumerator, and the word that it is in records.
template <class T>
struct Word {
  std::string_view text;
  T value;
};

/// Every enumerator of a type.
template <class T>
inline constexpr std::array<Word<T>, 0> kWords{};
template <>
inline constexpr std::array<Word<core::ContainerState>, 2> kWords<core::ContainerState>{
    {{"pending", core::ContainerState::kPending}, {"live", core::ContainerState::kLive}}};
template <>
inline constexpr std::array<Word<core::ContainerKind>, 4> kWords<core::ContainerKind>{
    {{"app", core::ContainerKind::kApp},
     {"init", core::ContainerKind::kInit},
     {"sidecar", core::ContainerKind::kSidecar},
     {"ephemeral", core::ContainerKind::kEphemeral}}};
template <>
inline constexpr std::array<Word<core::QosClass>, 3> kWords<core::QosClass>{
    {{"Guaranteed", core::QosClass::kGuaranteed},
     {"Burstable", core::QosClass::kBurstable},
     {"BestEffort", core::QosClass::kBestEffort}}};
template <>
inline constexpr std::array<Word<core::ClassSource>, 6> kWords<core::ClassSource>{
    {{"engine", core::ClassSource::kEngine},
     {"pod-annotation", core::ClassSource::kPodAnnotation},
     {"qos-annotation", core::ClassSource::kQosAnnotation},
     {"short-forms", core::ClassSource::kShortForms},
     {"cri-sums", core::ClassSource::kCriSums},
     {"inference", core::ClassSource::kInference}}};
template <>
inline constexpr std::array<Word<core::IdentitySource>, 5> kWords<core::IdentitySource>{
    {{"engine", core::IdentitySource::kEngine},
     {"cgroup", core::IdentitySource::kCgroup},
     {"annotation", core::IdentitySource::kAnnotation},
     {"sandbox", core::IdentitySource::kSandbox},
     {"lone", core::IdentitySource::kLone}}};
template <>
inline constexpr std::array<Word<core::WeightFormula>, 2> kWords<core::WeightFormula>{
    {{"linear", core::WeightFormula::kLinear}, {"log", core::WeightFormula::kLog}}};

/// `R` is `T`, or const to be written.
template <class R, class T>
concept Is = std::same_as<std::remove_const_t<R>, T>;

template <class Archive, Is<core::Resources> R>
void fields(Archive& member, R& resources) {
  member("requests", resources.requests);
  member("limits", resources.limits);
}

template <class Archive, Is<core::EngineSums> R>
void fields(Archive& member, R& sums) {
  member("resources", sums.resources);
  member("enforced", sums.enforced);
}

template <class Archive, Is<core::Container> R>
void fields(Archive& member, R& container) {
  member("name", container.name);
  member("kind", container.kind);
  member("resources", container.resources);
}

/// The pod as podqos knows it, in the API's names where they exist.
template <class Archive, Is<core::Pod> R>
void fields(Archive& member, R& pod) {
  member("uid", pod.uid);
  member("name", pod.name);
  member("namespace", pod.pod_namespace);
  member("containers", pod.containers);
  member("initContainers", pod.init_containers);
  member("ephemeralContainers", pod.ephemeral_containers);
  member("resources", pod.resources);
  member("overhead", pod.overhead);
  member("priority", pod.priority);
  member("priorityClassName", pod.priority_class_name);
  member("statusQosClass", pod.status_qos_class);
  member("static", pod.is_static);
}

template <class Archive, Is<core::TierSum> R>
void fields(Archive& member, R& sum) {
  member("pods", sum.pods);
  member("cpuMilli", sum.cpu);
  member("memoryBytes", sum.memory);
}

template <class Archive, Is<core::TierSums> R>
void fields(Archive& member, R& sums) {
  member("guaranteed", sums.guaranteed);
  member("burstable", sums.burstable);
  member("besteffort", sums.besteffort);
  member("requested", sums.requested);
  member("adopted", sums.adopted);
}

template <class Archive, Is<core::ContainerRecord> R>
void fields(Archive& member, R& container) {
  member("id", container.id);
  member("bundle", container.bundle);
  member("name", container.name);
  member("state", container.state);
  member("pid", container.pid);
  member("startTime", container.start_time);
  member("cgroup", container.cgroup);
  member("sandbox", container.sandbox);
  member("backedMemoryBytes", container.backed_memory);
}

template <class Archive, Is<core::PodRecord> R>
void fields(Archive& member, R& record) {
  member("pod", record.pod);
  member("complete", record.complete);
  member("engineSums", record.sums);
  member("class", record.qos_class);
  member("classSource", record.class_source);
  member("uidSource", record.uid_source);
  member("adopted", record.adopted);
  member("sandboxId", record.sandbox_id);
  member("cgroup", record.cgroup);
  member("claimed", record.claimed);
  member("granted", record.granted);
  member("containers", record.containers);
  member("releasedAt", record.released_at);
}

template <class Archive, Is<core::PendingEntry> R>
void fields(Archive& member, R& entry) {
  member("uid", entry.uid);
  member("id", entry.id);
  member("bundle", entry.bundle);
  member("pid", entry.pid);
  member("startTime", entry.start_time);
}

template <class Archive, Is<core::RetainedEntry> R>
void fields(Archive& member, R& entry) {
  member("uid", entry.uid);
  member("until", entry.until);
  member("cgroup", entry.cgroup);
}

template <class Archive, Is<core::CutEntry> R>
void fields(Archive& member, R& entry) {
  member("uid", entry.uid);
  member("cpuMilli", entry.cpu);
  member("memoryBytes", entry.memory);
}

template <class Archive, Is<core::TreeRecord> R>
void fields(Archive& member, R& tree) {
  member("kubepods", tree.kubepods);
  member("top", tree.top);
  member("sums", tree.sums);
}

template <class Archive, Is<core::TiersRecord> R>
void fields(Archive& member, R& record) {
  member("sums", record.sums);
  member("pending", record.pending);
  member("lingering", record.retained);
  member("cut", record.cut);
  member("uncounted", record.uncounted);
  member("trees", record.trees);
  member("weightFormula", record.weight_formula);
}

}  // namespace podqos::codec
