#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::codec {

constexpr std::size_t kMaxRecordSize = std::size_t{4} << 20U;
constexpr int kRecordVersion = 1;

/// Compact JSON with "version" first. parse_ refuses: malformed (kCorrupt), a newer version
/// (kUnsupported, the message says which program wrote it and what to do), unknown members are
/// ignored.
[[nodiscard]] std::string format_pod_record(const core::PodRecord& record);
[[nodiscard]] Result<core::PodRecord> parse_pod_record(std::string_view text);

[[nodiscard]] std::string format_index(const std::vector<core::IndexEntry>& entries);
[[nodiscard]] Result<std::vector<core::IndexEntry>> parse_index(std::string_view text);

/// tiers.json begins with `{"dirty":0,` so that the mark can be set by writing one byte at
/// kDirtyOffset.
constexpr std::size_t kDirtyOffset = 9;
struct TiersFile {
  core::TiersRecord record;
  bool dirty = false;
};
[[nodiscard]] std::string format_tiers(const core::TiersRecord& record);
[[nodiscard]] Result<TiersFile> parse_tiers(std::string_view text);

}  // namespace podqos::codec
