#include "common/cgroup/value.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::cgroup {

namespace {

/// From here on a counter is shown as unlimited; no huge page is larger than 1 TiB.
constexpr std::int64_t kUnlimitedFrom = kInt64Max - (std::int64_t{1} << 40);

/// The size behind a label: "2MB" is 2 MiB.
/// @note mm/hugetlb_cgroup.c mem_fmt() knows KB, MB and GB.
std::optional<std::int64_t> size_of_label(std::string_view label) {
  constexpr std::string_view kUnits = "KMG";
  if (label.size() < 3 || !label.ends_with('B')) return std::nullopt;
  const std::size_t unit = kUnits.find(label[label.size() - 2]);
  const auto number = parse_int(label.substr(0, label.size() - 2));
  if (unit == std::string_view::npos || !number) return std::nullopt;
  return mul_div(*number, std::int64_t{1} << (10 * (unit + 1)), 1);
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

/// The meaning of an errno for a file.
struct Remedy {
  std::string_view file;  ///< the end of its path; "" matches every file
  int err = 0;
  std::string_view text;
};

/// The first match counts.
/// @note kernel/sched/core.c __cfs_schedulable(), mm/memcontrol.c.
constexpr std::array kRemedies = std::to_array<Remedy>({
    {"cpu.cfs_quota_us", EINVAL,
     "the quota exceeds the parent's, is below a child's, or is under 1 ms"},
    {"cpu.cfs_period_us", EINVAL,
     "with this period the quota exceeds the parent's or is below a child's"},
    {"cpu.max", EINVAL, "the quota is below the cgroup's cpu.max.burst, or under 1 ms"},
    {"memory.limit_in_bytes", EBUSY, "more is in use and cannot be reclaimed"},
    {"memory.limit_in_bytes", EINVAL,
     "it exceeds memory.memsw.limit_in_bytes, which must be raised first"},
    {"cpuset.cpus", EINVAL, "some of these CPUs are offline or not in the parent's cpuset"},
    {"cgroup.procs", EBUSY,
     "it enables controllers for its children, so it cannot contain processes"},
    {"cgroup.procs", ENOSPC, "its cpuset has no CPUs or no memory nodes"},
    {"cgroup.procs", ENOENT, "the cgroup was removed meanwhile"},
    {"", EROFS, "the cgroup file system is mounted read-only: remount it read-write"},
    {"", EACCES, "writing cgroups requires root in the initial user namespace"},
    {"", EPERM, "writing cgroups requires root in the initial user namespace"},
    {"", ENODEV, "the cgroup was removed meanwhile"},
});

/// "" if podqos knows no remedy.
std::string remedy_for(const core::WriteFile& step, int err) {
  for (const Remedy& remedy : kRemedies) {
    if (remedy.err == err && step.file.ends_with(remedy.file)) return std::string{remedy.text};
  }
  if (err != ENOENT) return {};
  const std::string_view controller = core::row_of(step.controller).v2_name;
  return cat("the ", controller,
             " controller is not enabled here, or the kernel lacks this file: on cgroup v2 write +",
             controller, " to the parent's cgroup.subtree_control");
}

}  // namespace

bool holds_value(std::string_view file, std::string_view have, std::string_view want) {
  if (have == want) return true;
  if (file == core::file_of(core::Value::kCpuQuota, core::CgroupVersion::kV2))
    return !want.empty() && begins_with_words(have, want);
  if (shows_default(file)) return first_line(have) == cat(kDefault, want);
  // Shown for an idle cgroup, which takes no weight, by kernels before 6.12.
  if (file == core::file_of(core::Value::kCpuShares, core::CgroupVersion::kV2))
    return have == "0" && want == "1";
  const std::optional<std::int64_t> step = granularity(file);
  if (!step) return false;
  const std::optional<std::int64_t> stored = stored_limit(want, *step);
  return stored && stored_limit(have, *step) == stored;
}

bool makes_room(std::string_view file, std::string_view have, std::string_view want) {
  if (file != core::file_of(core::Value::kMemoryLimit, core::CgroupVersion::kV1)) return false;
  const auto now = stored_limit(have, 1);
  const auto wanted = stored_limit(want, 1);
  return now && wanted && *now != kInt64Max && *wanted < *now;
}

std::optional<std::int64_t> find_key(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ' ') == key) return parse_int(line);
  }
  return std::nullopt;
}

std::string shown_value(core::Controller controller, std::string_view value) {
  const auto bytes = controller == core::Controller::kMemory ? parse_int(value) : std::nullopt;
  return bytes ? format_amount(Bytes{*bytes >= core::kUnlimitedBytes.value() ? -1 : *bytes})
               : printable(value.substr(0, value.find('\n')));
}

std::string describe_change(const core::WriteFile& step, std::string_view before) {
  return cat(step.path, "/", step.file, ": ",
             before.empty() ? "unknown" : shown_value(step.controller, before), " → ",
             shown_value(step.controller, step.value));
}

Error refusal(const core::WriteFile& step, int err) {
  Error error =
      Error::from_errno(err, cat(step.path, ": write \"", step.value, "\" to ", step.file));
  if (const std::string remedy = remedy_for(step, err); !remedy.empty()) {
    error.message += cat(" (", remedy, ")");
  }
  return error;
}

}  // namespace podqos::cgroup
