#include "common/codec/rows.h"

#include <cstring>

#include "common/base/text.h"

namespace podqos::codec {

namespace {

// With the version of the format.
constexpr std::string_view kWhole = "podqos rows 1, ";
constexpr std::string_view kLost = "podqos lost 1, ";

}  // namespace

std::string format_rows_head(bool is_whole, std::size_t count) {
  std::string out = cat(is_whole ? kWhole : kLost, count, "\n");
  out.resize(kRowSize);
  return out;
}

std::string format_row(const core::PodRow& row) {
  std::string out(kRowSize, '\0');
  std::memcpy(out.data(), &row, kRowSize);
  return out;
}

std::optional<Rows> parse_rows(std::string_view bytes) {
  const bool is_whole = bytes.starts_with(kWhole);
  if (bytes.size() < kRowSize || bytes.size() % kRowSize != 0) return std::nullopt;
  const std::string_view head = bytes.substr(0, kRowSize);
  bytes.remove_prefix(kRowSize);
  if (head != format_rows_head(is_whole, bytes.size() / kRowSize)) return std::nullopt;
  Rows out{.is_whole = is_whole, .rows = std::vector<core::PodRow>(bytes.size() / kRowSize)};
  for (core::PodRow& row : out.rows) {
    std::memcpy(&row, bytes.data(), kRowSize);
    bytes.remove_prefix(kRowSize);
    // It will be looked for; of the others a reconciliation makes good what is damaged.
    if (row.being_changed != 0 && row.uid != core::RowUid{row.uid.view()}) return std::nullopt;
  }
  return out;
}

}  // namespace podqos::codec
