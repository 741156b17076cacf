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

/// Offset of the mark in tiers.json, which begins with `{"dirty":0,`, so that the mark is set by
/// writing one byte.
constexpr std::size_t kDirtyOffset = 9;
/// The contents of tiers.json.
struct TiersFile {
  core::TiersRecord record;
  /// Set from the first change of a transaction to its commit, and after a record was set aside:
  /// the sums must then be recomputed from the records.
  bool dirty = false;
};
/// The tier sums and lists as compact JSON, not marked dirty.
[[nodiscard]] std::string format_tiers(const core::TiersRecord& record);
/// Parses tiers.json; errors as for records.
[[nodiscard]] Result<TiersFile> parse_tiers(std::string_view text);

}  // namespace podqos::codec
