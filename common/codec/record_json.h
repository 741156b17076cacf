#pragma once

#include <string>
#include <string_view>
#include <vector>

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

/// The index of containers: which bundle and pod uid belong to a container id. Errors as for
/// records.
[[nodiscard]] std::string format_index(const std::vector<core::IndexEntry>& entries);
[[nodiscard]] Result<std::vector<core::IndexEntry>> parse_index(std::string_view text);

/// Offset of the mark in tiers.json, which begins with `{"dirty":0,`, so that the mark is set by
/// writing one byte.
constexpr std::size_t kDirtyOffset = 9;
/// The contents of tiers.json.
struct TiersFile {
  core::TiersRecord record;
  bool dirty = false;
};
/// The tier sums and lists as compact JSON, not dirty. Errors of parse_tiers() as for records.
[[nodiscard]] std::string format_tiers(const core::TiersRecord& record);
[[nodiscard]] Result<TiersFile> parse_tiers(std::string_view text);

}  // namespace podqos::codec
