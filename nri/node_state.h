#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "nri/api.h"

namespace podqos::nri {

/// What one Synchronize may consist of. The largest nodes have some hundreds of pods; the bytes are
/// what bounds memory, of which protobuf takes up to 30 times as much for what is all empty fields.
struct NodeStateLimits {
  std::size_t parts = 4096;
  std::size_t bytes = std::size_t{64} << 20U;  ///< of what is kept
  std::size_t pods = 10'000;
  std::size_t containers = 100'000;
  /// Bytes that are kept as they came: a message of NRI, so that up to 0.6, where all comes in one,
  /// none is read before it is answered.
  std::size_t unread = std::size_t{4} << 20U;
};

/// All that a runtime has: the parts of a Synchronize, of which NRI 0.7 and newer make several of
/// what exceeds one message. They are read when that is asked for, or when they become many, so
/// that a runtime, which lets nobody make a container meanwhile, has its answer before. Keeps what
/// podqos reads: the authors of pods decide how much else there is, and none of them shall keep a
/// node from being synchronized.
class NodeState {
 public:
  explicit NodeState(const NodeStateLimits& limits = {}) : limits_{limits} {}

  /// @param payload  the next SynchronizeRequest. After an error all that was added is gone.
  /// @return whether it was the last part; kInvalidArgument: not a SynchronizeRequest; kTooLarge:
  /// beyond a limit.
  [[nodiscard]] Result<bool> add(std::string payload);

  /// @return the errors of add(), for what it has not read.
  [[nodiscard]] Result<api::SynchronizeRequest> read() &&;

 private:
  [[nodiscard]] Result<bool> read_part(std::string payload);
  [[nodiscard]] Status read_unread();

  NodeStateLimits limits_;
  std::vector<std::string> unread_;  ///< parts, oldest first
  std::size_t unread_bytes_ = 0;
  api::SynchronizeRequest collected_;
  std::size_t bytes_ = 0;  ///< of what is collected
  std::size_t parts_ = 0;
  std::size_t pods_ = 0;
  std::size_t containers_ = 0;
};

}  // namespace podqos::nri
