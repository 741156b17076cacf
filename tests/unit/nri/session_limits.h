#pragma once

#include <string>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"

namespace podqos::nri::test {

/// Limits that a few pods reach.
inline ConnectionOptions small_limits() {
  ConnectionOptions options;
  options.index = "10";
  options.name = "podqos";
  options.node_state = {.parts = 3, .bytes = 200, .pods = 2, .containers = 4};
  options.unsent_bytes = 100;
  return options;
}

/// A piece of a Synchronize.
inline std::string part(int pods, int containers, bool more) {
  api::SynchronizeRequest request;
  for (int i = 0; i < pods; ++i)
    request.add_pods()->set_id("p" + std::to_string(i));
  for (int i = 0; i < containers; ++i)
    request.add_containers()->set_id("c" + std::to_string(i));
  request.set_more(more);
  return request.SerializeAsString();
}

}  // namespace podqos::nri::test
