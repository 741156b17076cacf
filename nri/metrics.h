#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "nri/exposition.h"
#include "nri/request.h"

namespace podqos::nri {

/// What podqos-nri counts and times while it runs. All series are there from the start, at 0: a
/// rate misses what a counter was born with.
class Metrics {
 public:
  /// A request was handled.
  void handled(Request request, std::chrono::steady_clock::duration time);
  /// Something has failed, whether or not the runtime was told.
  void failed(ErrorCode code);
  /// State and cgroups are what the runtime says there is.
  void reconciled();

  [[nodiscard]] std::vector<MetricFamily> collect() const;

 private:
  /// A kubelet's words for what its cgroup manager does.
  enum class Operation : std::uint8_t { kCreate, kUpdate, kDestroy };
  static constexpr std::array<std::string_view, 3> kOperationNames = {"create", "update",
                                                                      "destroy"};
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kIo) + 1;

  [[nodiscard]] static std::optional<Operation> operation_of(Request request);

  std::array<Histogram, kRequestNames.size()> requests_;
  std::array<Histogram, kOperationNames.size()> operations_;
  std::array<std::uint64_t, kErrorCodes> errors_{};
  std::optional<std::chrono::system_clock::time_point> last_reconcile_;
};

}  // namespace podqos::nri
