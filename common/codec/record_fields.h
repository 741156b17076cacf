#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "common/core/record.h"

// The members of records as JSON: each list serves reading and writing, so that they cannot differ.
// All are part of the file format.
namespace podqos::codec {

/// What the enumerators of a type are in records, in their order, separated by spaces.
template <class T>
inline constexpr std::string_view kWords = "";
template <>
inline constexpr std::string_view kWords<core::ContainerState> = "pending live";
template <>
inline constexpr std::string_view kWords<core::ContainerKind> = "app init sidecar ephemeral";
template <>
inline constexpr std::string_view kWords<core::QosClass> = core::kQosClassNames;
template <>
inline constexpr std::string_view kWords<core::Engine> = core::kEngineNames;
template <>
inline constexpr std::string_view kWords<core::ClassSource> =
    "engine pod-annotation qos-annotation short-forms cri-sums inference";
template <>
inline constexpr std::string_view kWords<core::IdentitySource> =
    "engine cgroup annotation sandbox lone";
template <>
inline constexpr std::string_view kWords<core::WeightFormula> = "linear log";

/// A record to be read, or const to be written.
template <class R, class T>
concept Is = std::same_as<std::remove_const_t<R>, T>;

void fields(auto& member, Is<core::Resources> auto& resources) {
  member("requests", resources.requests);
  member("limits", resources.limits);
}

void fields(auto& member, Is<core::EngineSums> auto& sums) {
  member("resources", sums.resources);
  member("enforced", sums.enforced);
}

void fields(auto& member, Is<core::Container> auto& container) {
  member("name", container.name);
  member("kind", container.kind);
  member("resources", container.resources);
}

/// The pod as podqos knows it, in the API's names where they exist.
void fields(auto& member, Is<core::Pod> auto& pod) {
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

void fields(auto& member, Is<core::TierSum> auto& sum) {
  member("pods", sum.pods);
  member("cpuMilli", sum.cpu);
  member("memoryBytes", sum.memory);
}

void fields(auto& member, Is<core::Throttling> auto& throttling) {
  member("events", throttling.events);
  member("since", throttling.since);
  member("last", throttling.last);
  member("raisedBytes", throttling.raised);
}

void fields(auto& member, Is<core::ContainerRecord> auto& container) {
  member("id", container.id);
  member("bundle", container.bundle);
  member("name", container.name);
  member("state", container.state);
  member("pid", container.pid);
  member("startTime", container.start_time);
  member("pendingSince", container.pending_since);
  member("cgroup", container.cgroup);
  member("sandbox", container.sandbox);
  member("backedMemoryBytes", container.backed_memory);
  member("memoryMinBytes", container.memory_qos.min);
  member("memoryLowBytes", container.memory_qos.low);
  member("memoryHighBytes", container.memory_qos.high);
  member("throttling", container.throttling);
  member("stated", container.stated);
}

void fields(auto& member, Is<core::ResizedAmounts> auto& amounts) {
  member("resources", amounts.resources);
  member("engineSums", amounts.sums);
  member("backedMemoryBytes", amounts.backed_memory);
}

void fields(auto& member, Is<core::Resizing> auto& resizing) {
  member("container", resizing.container);
  member("before", resizing.before);
  member("raised", resizing.raised);
  member("after", resizing.after);
}

void fields(auto& member, Is<core::OomLook> auto& look) {
  member("node", look.node);
  member("at", look.at);
}

void fields(auto& member, Is<core::OomKills> auto& kills) {
  member("reported", kills.reported);
  member("counted", kills.counted);
}

void fields(auto& member, Is<core::PodRecord> auto& record) {
  member("pod", record.pod);
  member("complete", record.complete);
  member("engineSums", record.sums);
  member("class", record.qos_class);
  member("classSource", record.class_source);
  member("takenBack", record.taken_back);
  member("uidSource", record.uid_source);
  member("kubeletsOwn", record.kubelets_own);
  member("cpuBurst", record.cpu_burst);
  member("cpuIdle", record.cpu_idle);
  member("sandboxId", record.sandbox_id);
  member("podId", record.pod_id);
  member("engine", record.engine);
  member("cgroup", record.cgroup);
  member("cappedRequest", record.capped_request);
  member("countedRequest", record.counted_request);
  member("containers", record.containers);
  member("releasedAt", record.released_at);
  member("due", record.due);
  member("resizing", record.resizing);
  member("oomLook", record.oom_look);
  member("oomKills", record.oom_kills);
}

void fields(auto& member, Is<core::TreeRecord> auto& tree) {
  member("kubepods", tree.kubepods);
  member("top", tree.top);
  member("reserves", tree.reserves);
  member("unfinished", tree.unfinished);
}

void fields(auto& member, Is<core::DyingContainer> auto& container) {
  member("cgroup", container.cgroup);
  member("pid", container.init.pid);
  member("startTime", container.init.start_time);
}

void fields(auto& member, Is<core::EvictionRecord> auto& eviction) {
  member("at", eviction.at);
  member("killing", eviction.killing);
}

/// The rows are in a file of their own, and the sums are those of the rows.
void fields(auto& member, Is<core::NodeState> auto& state) {
  member("trees", state.trees);
  member("weightFormula", state.weight_formula);
  member("eviction", state.eviction);
  member("oomLook", state.oom_look);
  member("settings", state.settings);
}

}  // namespace podqos::codec
