#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::codec {

/// Bound of a record in bytes; larger ones are kCorrupt.
constexpr std::size_t kMaxRecordSize = std::size_t{4} << 20U;
/// Version of the format that this program writes, and the newest it reads.
constexpr int kRecordVersion = 1;

/// A pod's record as compact JSON that begins with "version".
[[nodiscard]] std::string format_pod_record(const core::PodRecord& record);
/// Parses a record. Unknown members are ignored.
/// @return kCorrupt if it is malformed; kUnsupported if its version is newer than kRecordVersion,
/// with the release that wrote it and what to do.
[[nodiscard]] Result<core::PodRecord> parse_pod_record(std::string_view text);

/// Checks that a container can be admitted to the pod, or that its resources can be updated: each
/// transaction of the pod reads and writes the record under the lock, so a pod's author must not be
/// able to make it larger.
/// @param record  as format_pod_record() has it
/// @return kTooLarge, with what to change
[[nodiscard]] Status check_record_size(std::string_view record);

/// What the state says of the node beside its rows, node.json, as compact JSON.
[[nodiscard]] std::string format_node(const core::NodeState& state);
/// Parses node.json, or the tiers.json of podqos before it had rows; errors as for records.
[[nodiscard]] Result<core::NodeState> parse_node(std::string_view text);

}  // namespace podqos::codec
