#include "common/core/lowering.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/value_table.h"

namespace podqos::core {

namespace {

/// Collects the steps of one cgroup; leaves out those whose controller the machine lacks.
class Lowering {
 public:
  Lowering(const std::string& path, const CgroupLayout& layout, const std::string& reason)
      : path_(path), layout_(layout), reason_(reason) {}

  [[nodiscard]] std::optional<CgroupVersion> version_of(Controller controller) const {
    return layout_.version_of(controller);
  }
  [[nodiscard]] const std::vector<std::string>& host_sizes() const {
    return layout_.hugepage_labels;
  }

  void write(Controller controller, std::string file, std::string value,
             OnRefusal on_refusal = OnRefusal::kFail) {
    plan_.emplace_back(WriteFile{.path = path_,
                                 .controller = controller,
                                 .file = std::move(file),
                                 .value = std::move(value),
                                 .reason = reason_,
                                 .on_refusal = on_refusal});
  }

  /// A controller that not every cgroup has, unless the last step has done so.
  void enable(Controller controller) {
    if (row_of(controller).enabled == Enabled::kAlways) return;
    if (version_of(controller) == CgroupVersion::kV1 || std::exchange(enabled_, true)) return;
    plan_.emplace_back(EnsureCgroup{.path = std::string{parent_of(path_)}, .also = controller});
  }

  [[nodiscard]] Plan release() && { return std::move(plan_); }

 private:
  const std::string& path_;
  const CgroupLayout& layout_;
  const std::string& reason_;
  Plan plan_;
  bool enabled_ = false;
};

std::string limit_or(std::int64_t limit, std::string_view unlimited) {
  return limit < 0 ? std::string{unlimited} : std::to_string(limit);
}

/// The rows of one controller, in their order.
void lower_rows(Lowering& out, Controller controller, const CgroupValues& values,
                WeightFormula formula) {
  const auto version = out.version_of(controller);
  if (!version) return;
  for (const ValueRow& row : value_table()) {
    if (row.controller != controller) continue;
    const ValueFile& file = row.on(*version);
    if (file.name.empty()) continue;
    std::string content = content_for(file, values, formula);
    if (content.empty()) continue;
    out.enable(controller);
    out.write(controller, std::string{file.name}, std::move(content), file.on_refusal);
  }
}

void lower_hugepages(Lowering& out, const CgroupValues& values) {
  const auto version = out.version_of(Controller::kHugetlb);
  if (!version) return;
  for (const auto& [label, limit] : with_host_sizes(values.hugepages, out.host_sizes())) {
    const std::string value = limit_or(limit.value(), unset_hugepages(*version));
    // A size that this host has no pages of cannot be used either: nothing is lost without its
    // file.
    const bool on_host = std::ranges::find(out.host_sizes(), label) != out.host_sizes().end();
    out.write(Controller::kHugetlb, hugepage_file(label, *version), value,
              on_host ? OnRefusal::kFail : OnRefusal::kIgnore);
    // Kernels before 5.7 have no reservation limits.
    out.write(Controller::kHugetlb, hugepage_file(label, *version, HugePageUse::kReserved), value,
              OnRefusal::kIgnore);
  }
}

void lower_unified(Lowering& out, const CgroupValues& values) {
  for (const auto& [file, value] : values.unified) {
    const ValueRow* row = row_with(file, CgroupVersion::kV2);
    if (row == nullptr) continue;
    if (out.version_of(row->controller) == CgroupVersion::kV2)
      out.write(row->controller, file, value);
  }
}

constexpr std::int64_t kNoLimit = -1;

/// Numbers by name, each once: a later one wins, as on the machine.
class Properties {
 public:
  /// A negative number is "no limit".
  void set(std::string_view name, std::int64_t number) {
    const std::uint64_t value = number < 0 ? kUnitInfinity : static_cast<std::uint64_t>(number);
    const auto same = std::ranges::find(properties_, name, &UnitProperty::name);
    if (same != properties_.end()) {
      same->value = value;
    } else {
      properties_.push_back({.name = std::string{name}, .value = value});
    }
  }
  [[nodiscard]] std::vector<UnitProperty> release() && { return std::move(properties_); }

 private:
  std::vector<UnitProperty> properties_;
};

CgroupLayout all_v2(const std::vector<std::string>& hugepage_labels) {
  return {.cpu = CgroupVersion::kV2,
          .memory = CgroupVersion::kV2,
          .hugetlb = CgroupVersion::kV2,
          .pids = CgroupVersion::kV2,
          .cpuset = CgroupVersion::kV2,
          .io = CgroupVersion::kV2,
          .hugepage_labels = hugepage_labels};
}

}  // namespace

Plan lower_values(const std::string& path, const CgroupValues& values, const CgroupLayout& layout,
                  WeightFormula formula, const std::string& reason) {
  Lowering out{path, layout, reason};
  lower_rows(out, Controller::kCpu, values, formula);
  lower_hugepages(out, values);
  lower_rows(out, Controller::kPids, values, formula);
  lower_rows(out, Controller::kIo, values, formula);
  lower_rows(out, Controller::kMemory, values, formula);
  lower_unified(out, values);
  return std::move(out).release();
}

std::map<std::string, std::string, std::less<>> v2_files(
    const CgroupValues& values, const std::vector<std::string>& hugepage_labels,
    WeightFormula formula) {
  std::map<std::string, std::string, std::less<>> files;
  for (const Step& step : lower_values("/", values, all_v2(hugepage_labels), formula, "")) {
    // A later write of the same file wins, as on the machine.
    if (const auto* write = std::get_if<WriteFile>(&step))
      files.insert_or_assign(write->file, write->value);
  }
  return files;
}

CgroupValues rounded_by_systemd(CgroupValues values) {
  if (const auto quota = limiting_quota(values))
    values.cpu_quota = quota_of_systemd(*quota, period_of(values));
  return values;
}

namespace {

void set_unified_properties(Properties& out, const CgroupValues& values,
                            const CgroupLayout& layout) {
  for (const auto& [file, value] : values.unified) {
    const ValueRow* row = row_with(file, CgroupVersion::kV2);
    if (row == nullptr || layout.version_of(row->controller) != CgroupVersion::kV2) continue;
    const auto number = value == "max" ? kNoLimit : parse_int(value);
    if (number && !row->v2.property.empty()) out.set(row->v2.property, *number);
  }
}

}  // namespace

std::vector<UnitProperty> unit_properties(const CgroupValues& values, const CgroupLayout& layout,
                                          WeightFormula formula) {
  Properties out;
  for (const ValueRow& row : value_table()) {
    const auto version = layout.version_of(row.controller);
    if (!version) continue;
    const ValueFile& file = row.on(*version);
    if (const auto number = property_for(file, values, formula)) out.set(file.property, *number);
  }
  set_unified_properties(out, values, layout);
  return std::move(out).release();
}

SystemdWrites systemd_writes(const CgroupValues& values,
                             const std::vector<std::string>& hugepage_labels,
                             WeightFormula formula) {
  SystemdWrites writes;
  for (const UnitProperty& property : unit_properties(values, all_v2(hugepage_labels), formula)) {
    if (const auto* number = std::get_if<std::uint64_t>(&property.value))
      writes.properties.insert_or_assign(property.name, std::to_string(*number));
  }
  writes.files = v2_files(rounded_by_systemd(values), hugepage_labels, formula);
  return writes;
}

}  // namespace podqos::core
