#include "common/cgroup/value.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::cgroup {

namespace {

/// From here on a counter is shown as unlimited; no huge page is larger than 1 TiB.
constexpr std::int64_t kUnlimitedFrom = kInt64Max - (std::int64_t{1} << 40);

/// The size behind a label: "2MB" is 2 MiB.
std::optional<std::int64_t> size_of_label(std::string_view label) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  const std::size_t digits = label.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> number = parse_int(label.substr(0, digits));
  unsigned shift = 0;
  for (const std::string_view unit : kUnits) {
    if (number && label.substr(digits) == unit)
      return mul_div(*number, std::int64_t{1} << shift, 1);
    shift += 10;
  }
  return std::nullopt;
}

/// What the limit in `file` is a multiple of; nullopt for files that hold no such limit.
std::optional<std::int64_t> granularity(std::string_view file) {
  if (const std::string_view label = core::hugepage_label_in(file); !label.empty())
    return size_of_label(label);
  const core::ValueRow* row = core::row_with(file, core::CgroupVersion::kV2);
  if (row == nullptr) row = core::row_with(file, core::CgroupVersion::kV1);
  if (row == nullptr || !row->whole_pages) return std::nullopt;
  return ::sysconf(_SC_PAGESIZE);
}

/// What the line for devices without a line of their own begins with.
constexpr std::string_view kDefault = "default ";

/// Files that take a number and show such a line.
/// @note Documentation/admin-guide/cgroup-v2.rst, io.weight
bool shows_default(std::string_view file) {
  const core::ValueRow* row = core::row_with(file, core::CgroupVersion::kV2);
  return row != nullptr && row->v2.unset.starts_with(kDefault);
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

/// A limit as the kernel keeps it; nullopt for text that is none.
std::optional<std::int64_t> stored_limit(std::string_view text, std::int64_t step) {
  if (text == "max" || text == "-1") return kInt64Max;
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value || *value < 0 || step <= 0) return std::nullopt;
  return *value >= kUnlimitedFrom ? kInt64Max : *value - (*value % step);
}

/// Is each word of `want` the word of `have` in that place?
bool begins_with_words(std::string_view have, std::string_view want) {
  while (!want.empty()) {
    if (read_until(have, ' ') != read_until(want, ' ')) return false;
  }
  return true;
}

}  // namespace

bool holds_value(std::string_view file, std::string_view have, std::string_view want) {
  if (have == want) return true;
  if (file == core::file_of(core::Value::kCpuQuota, core::CgroupVersion::kV2))
    return !want.empty() && begins_with_words(have, want);
  if (shows_default(file)) return first_line(have) == cat(kDefault, want);
  const std::optional<std::int64_t> step = granularity(file);
  if (!step) return false;
  const std::optional<std::int64_t> stored = stored_limit(want, *step);
  return stored && stored_limit(have, *step) == stored;
}

}  // namespace podqos::cgroup
