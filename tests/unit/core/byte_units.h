#pragma once

#include <cstdint>

/// Kubernetes' Mi and Gi, in bytes.
namespace podqos::core::byte_units {

inline constexpr std::int64_t kMi = std::int64_t{1} << 20U;
inline constexpr std::int64_t kGi = std::int64_t{1} << 30U;

}  // namespace podqos::core::byte_units
