#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "nri/api.h"

namespace podqos::nri {

/// Limits of one Synchronize. The largest nodes have some hundreds of pods. Memory is bounded by
/// the bytes; protobuf needs up to 30 times as much for messages with empty fields only.
struct NodeStateLimits {
  std::size_t parts = 4096;
  std::size_t bytes = std::size_t{64} << 20U;  ///< of the fields that are kept
  std::size_t pods = 10'000;
  std::size_t containers = 100'000;
  /// Bytes of parts that are kept unparsed: the maximum of one ttrpc message, so that with NRI up
  /// to 0.6, which sends one message, none is parsed before the answer.
  std::size_t unread = std::size_t{4} << 20U;
};

/// All pods and containers of a runtime: the parts of a Synchronize. NRI 0.7 and newer split a
/// state that exceeds one message. Parts are parsed by read(), or when they exceed a limit, so that
/// the runtime, which blocks container creation meanwhile, is answered first. Only the fields that
/// podqos reads are kept: pod authors decide the size of the others, and must not be able to keep a
/// node from being synchronized.
class NodeState {
 public:
  explicit NodeState(const NodeStateLimits& limits = {}) : limits_{limits} {}

  /// Adds a part. After an error all parts are dropped.
  /// @param payload  a SynchronizeRequest
  /// @return whether it was the last part; kInvalidArgument: not a SynchronizeRequest; kTooLarge:
  ///         beyond a limit.
  [[nodiscard]] Result<bool> add(std::string payload);

  /// Parses what is still unparsed, and returns all pods and containers in one message.
  /// @return the errors of add(), for parts that it did not parse.
  [[nodiscard]] Result<api::SynchronizeRequest> read() &&;

 private:
  [[nodiscard]] Result<bool> read_part(std::string payload);
  [[nodiscard]] Status read_unread();

  NodeStateLimits limits_;
  std::vector<std::string> unread_;  ///< parts, oldest first
  std::size_t unread_bytes_ = 0;
  api::SynchronizeRequest collected_;
  std::size_t bytes_ = 0;  ///< of the collected fields
  std::size_t parts_ = 0;
  std::size_t pods_ = 0;
  std::size_t containers_ = 0;
};

}  // namespace podqos::nri
