#pragma once

#include <cstddef>
#include <string_view>

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
};

/// Collects the parts of a Synchronize: NRI 0.7 and newer split what exceeds one message, pods and
/// containers each on their own. Keeps of them what podqos reads: the authors of pods decide how
/// much else there is, and none of them shall keep a node from being synchronized.
class NodeState {
 public:
  explicit NodeState(const NodeStateLimits& limits) : limits_{limits} {}

  /// @param payload  the next SynchronizeRequest. After an error the collection is empty again.
  /// @return whether it was the last part; kInvalidArgument: not a SynchronizeRequest; kTooLarge:
  /// beyond a limit.
  [[nodiscard]] Result<bool> add(std::string_view payload);

  /// All that was added, after which a new collection begins.
  [[nodiscard]] api::SynchronizeRequest take();

 private:
  [[nodiscard]] Status check_size(std::string_view payload) const;
  [[nodiscard]] Result<bool> merge(std::string_view payload);

  NodeStateLimits limits_;
  api::SynchronizeRequest collected_;
  std::size_t parts_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace podqos::nri
