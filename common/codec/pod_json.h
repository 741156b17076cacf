#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/pod.h"

namespace podqos::codec {

constexpr std::size_t kMaxPodJsonBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxPodJsonDepth = 64;
constexpr std::size_t kMaxPodContainers = 1000;

/// Reads a Pod manifest: metadata, spec and status.qosClass as far as core::Pod knows them; other
/// fields are ignored. No API default is applied yet.
///
/// Quantities are JSON strings, white space around them allowed, or bare numbers, of which the
/// exact text counts; null is 0. Null elsewhere is the same as absent.
/// @return kTooLarge beyond the bounds above; kInvalidArgument for another kind than Pod, a wrong
///         type, a member that is there twice, a container name that is no DNS label or not unique,
///         a malformed quantity: each with the JSON path
///         ("spec.containers[2].resources.limits.cpu").
[[nodiscard]] Result<core::Pod> parse_pod(std::string_view json);

/// The same for a bare spec, as in the annotation podqos.io/pod; paths start inside the spec.
[[nodiscard]] Result<core::Pod> parse_pod_spec(std::string_view json);

/// Compact JSON that parse_pod_spec reads back with the same containers, resources, overhead and
/// priority. Quantities are exact decimal strings. Identity, status and origin are no part of it.
[[nodiscard]] std::string format_pod_spec(const core::Pod& pod);

}  // namespace podqos::codec
