#pragma once

#include <string>

#include <gtest/gtest.h>

#include "nri/messages.h"
#include "tests/unit/nri/nri.pb.h"

namespace podqos::nri {

/// The messages of NRI as Google's protobuf has them, with the package name of containerd/nri.
namespace api = ::nri::pkg::api::v1alpha1;

namespace test {

/// What podqos reads of a request.
template <class Message>
[[nodiscard]] PodEvent event_of(Request request, const Message& message) {
  const auto parsed = parse_event(message.SerializeAsString(), kind_of(request).fields);
  EXPECT_TRUE(parsed);
  return parsed.value_or(PodEvent{});
}

/// A pod and a container as podqos reads them.
[[nodiscard]] inline PodEvent event_of(const api::PodSandbox& pod,
                                       const api::Container& container = {}) {
  api::EventRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  return event_of(Request::kStartContainer, request);
}

/// What a runtime reads of the answer to CreateContainer.
[[nodiscard]] inline api::ContainerAdjustment adjustment_for(const core::ConfigEdit& edit) {
  api::CreateContainerResponse response;
  EXPECT_TRUE(response.ParseFromString(format_create_response(edit)));
  return response.adjust();
}

}  // namespace test
}  // namespace podqos::nri
