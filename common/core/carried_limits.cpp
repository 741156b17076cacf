#include "common/core/carried_limits.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/core/driver.h"
#include "common/core/lowering.h"
#include "common/core/value_table.h"

namespace podqos::core {

namespace {

/// cgroup v1 shows "no limit" as the largest multiple of the page size, which is above this.
constexpr std::int64_t kV1Unlimited = std::int64_t{1} << 62U;

LimitFile limit_file(const ValueFile& value, Controller controller) {
  LimitFile file{.controller = controller, .name = std::string{value.name}, .unset = {}};
  if (value.unset) file.unset = std::string{*value.unset};
  return file;
}

void append(std::vector<LimitFile>& files, CgroupVersion version, const CgroupLayout& layout) {
  for (const ValueRow& row : value_table()) {
    const ValueFile& file = row.on(version);
    if (file.name.empty() || row.on_move == OnMove::kLeftBehind) continue;
    if (layout.version_of(row.controller) == version)
      files.push_back(limit_file(file, row.controller));
  }
}

bool is_unlimited(std::string_view held) {
  return held == "max" || held == "-1" || parse_int(held).value_or(0) >= kV1Unlimited;
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// Whether a value is a number instead of "max": "mlx5_0 hca_handle=2 hca_object=max",
/// "sgx_epc 4096".
bool has_number(std::string_view held) {
  for (std::size_t i = 1; i < held.size(); ++i) {
    if (is_digit(held[i]) && (held[i - 1] == '=' || held[i - 1] == ' ')) return true;
  }
  return false;
}

bool ends_own_part(std::string_view path, std::size_t end) {
  return end == path.size() || path[end] == '/';
}

}  // namespace

std::vector<LimitFile> limit_files(const CgroupLayout& layout) {
  std::vector<LimitFile> files;
  append(files, CgroupVersion::kV1, layout);
  append(files, CgroupVersion::kV2, layout);
  const CgroupVersion version = layout.hugetlb.value_or(CgroupVersion::kV2);
  for (const std::string& label : layout.hugepage_labels) {
    for (const auto use : {HugePageUse::kUsed, HugePageUse::kReserved}) {
      files.push_back({.controller = Controller::kHugetlb,
                       .name = hugepage_file(label, version, use),
                       .unset = std::string{unset_hugepages(version)}});
    }
  }
  return files;
}

std::optional<std::string> carried_value(const LimitFile& file, std::string_view held) {
  if (file.name == "memory.oom_control") {
    if (!held.starts_with("oom_kill_disable 1")) return std::nullopt;
    return "1";
  }
  // An idle cgroup shows weight 0, which the kernel does not accept.
  if (file.name == "cpu.weight" && held == "0") return std::nullopt;
  const bool limit = file.unset == "max" || file.unset == "-1";
  if (file.unset == held || (limit && is_unlimited(held))) return std::nullopt;
  return std::string{held};
}

std::vector<LimitFile> files_left_behind(const CgroupLayout& layout) {
  std::vector<LimitFile> files;
  for (const auto controller : {Controller::kMemory, Controller::kCpu}) {
    // Either controller on cgroup v2 leads to the hierarchy that has these files.
    if (layout.version_of(controller) != CgroupVersion::kV2) continue;
    for (const ValueRow& row : value_table()) {
      if (row.on_move == OnMove::kLeftBehind) files.push_back(limit_file(row.v2, controller));
    }
    return files;
  }
  return files;
}

bool bounds(const LimitFile& file, std::string_view held) {
  return file.unset ? held != *file.unset : has_number(held);
}

std::vector<UnitProperty> carried_properties(const std::vector<CarriedLimit>& limits) {
  CgroupValues values;
  for (const auto& [controller, file, value] : limits) {
    const std::size_t space = value.find(' ');
    if (file != "cpu.max") {
      values.unified.insert_or_assign(file, value);
    } else if (space != std::string::npos) {
      const std::string_view max = value;
      values.cpu_quota = Micros{parse_int(max.substr(0, space)).value_or(-1)};
      values.cpu_period = Micros{parse_int(max.substr(space + 1)).value_or(kDefaultPeriod.value())};
    }
  }
  const CgroupLayout layout{.cpu = CgroupVersion::kV2,
                            .memory = CgroupVersion::kV2,
                            .hugetlb = std::nullopt,
                            .pids = CgroupVersion::kV2,
                            .cpuset = CgroupVersion::kV2};
  // `values` holds weights, not shares, so the formula is not used.
  return unit_properties(values, layout, WeightFormula::kLog);
}

std::string own_cgroup_in(std::string_view actual, const std::optional<std::string>& cgroups_path) {
  if (!cgroups_path) return std::string{actual};
  const auto unit = parse_systemd_cgroups_path(*cgroups_path);
  const std::string scope = unit ? scope_path(*unit).value_or("") : *cgroups_path;
  const std::string_view above = std::string_view{scope}.substr(0, scope.find_last_not_of('/') + 1);
  const std::string name = cat("/", leaf_of(above));
  if (name.size() == 1) return std::string{actual};
  for (std::size_t at = actual.find(name); at != std::string_view::npos;
       at = actual.find(name, at + 1)) {
    if (ends_own_part(actual, at + name.size()))
      return std::string{actual.substr(0, at + name.size())};
  }
  return std::string{actual};
}

}  // namespace podqos::core
