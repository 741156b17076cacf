#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "common/base/error.h"
#include "common/core/pods/request.h"

/// The messages of NRI, as far as podqos reads and writes them: containerd/nri, pkg/api/api.proto.
/// Of annotations only podqos's own are kept, and of resources 0 is unset, as in NRI.
namespace podqos::nri {

/// PodSandbox.
struct Pod {
  std::string id;
  std::string name;
  std::string uid;
  std::string name_space;
  core::Annotations annotations;
  std::uint32_t pid = 0;            ///< 0: it has no process
  core::EngineResources overhead;   ///< as the kubelet passed them to the CRI
  core::EngineResources resources;  ///< likewise, of the whole pod
  std::string cgroups_path;         ///< "": none
  friend bool operator==(const Pod&, const Pod&) = default;
};

/// Container.
struct Container {
  std::string id;
  std::string sandbox_id;
  std::string name;
  bool created = false;  ///< its state is CONTAINER_CREATED
  core::Annotations annotations;
  std::uint32_t pid = 0;  ///< 0: it has no process
  core::EngineResources resources;
  std::optional<std::int64_t> oom_score_adj;
  std::string cgroups_path;  ///< "": none
  friend bool operator==(const Container&, const Container&) = default;
};

/// The request of a runtime about a pod or one of its containers.
struct PodEvent {
  Pod pod;
  Container container;
};

/// Where a request has its fields; 0: it does not have this one.
struct EventFields {
  std::uint32_t pod = 1;
  std::uint32_t container = 2;
  std::uint32_t resources = 0;  ///< new resources of the container or, without one, of the pod
  std::uint32_t event = 0;
};
/// StateChangeEvent, by which NRI up to 0.11 reports most events.
constexpr EventFields kStateChange{.pod = 2, .container = 3, .event = 1};

/// A request and, of a StateChangeEvent, the number of its event.
struct ParsedEvent {
  PodEvent event;
  std::int32_t number = 0;
};
/// Parses a request. New resources are merged into those of its container or pod.
/// @return kInvalidArgument: malformed bytes; likewise below.
[[nodiscard]] Result<ParsedEvent> parse_event(std::string_view bytes, const EventFields& fields);

/// ConfigureRequest.
struct ConfigureRequest {
  std::string config;  ///< "" for a plugin that the runtime did not start
  std::string runtime_name;
  std::string runtime_version;
  std::string nri_version;  ///< from NRI 0.12 on
};
[[nodiscard]] Result<ConfigureRequest> parse_configure_request(std::string_view bytes);

/// All pods and containers of a runtime.
struct NodeState {
  std::vector<Pod> pods;
  std::vector<Container> containers;
};

/// Reads the parts of a Synchronize: NRI 0.7 and newer split a state that exceeds one message. What
/// podqos does not read is not kept: pod authors decide how much that is, and must not be able to
/// keep a node from being synchronized.
class NodeStateReader {
 public:
  /// Bytes of one Synchronize, a hundred times what the largest nodes have.
  static constexpr std::size_t kLimit = std::size_t{64} << 20U;

  /// @param limit  of the bytes that are kept
  explicit NodeStateReader(std::size_t limit = kLimit) : limit_{limit} {}

  /// Adds a part, a SynchronizeRequest. After an error all parts are dropped.
  /// @return whether it was the last part; kInvalidArgument: malformed bytes; kTooLarge: beyond the
  ///         limit.
  [[nodiscard]] Result<bool> add(std::string_view bytes);
  /// The state so far; the next part begins a new one.
  [[nodiscard]] NodeState release();

 private:
  /// Reads a part. @return whether there are more
  [[nodiscard]] bool read(const protozero::pbf_reader& reader);

  std::size_t limit_;
  NodeState state_;
  std::size_t size_ = 0;  ///< bytes of state_
};

/// RegisterPluginRequest.
[[nodiscard]] std::string format_registration(std::string_view name, std::string_view index);
/// ConfigureResponse.
/// @param events  one bit for each event that the plugin asks for
[[nodiscard]] std::string format_configure_response(std::int32_t events);
/// The answer to a part of a Synchronize that is not the last one: `more`, without updates.
[[nodiscard]] std::string format_more_response();
/// CreateContainerResponse. Only values that are set are present: a runtime claims present fields
/// for this plugin, and fails a container for which two plugins claim the same.
[[nodiscard]] std::string format_create_response(const core::ConfigEdit& edit);

}  // namespace podqos::nri
