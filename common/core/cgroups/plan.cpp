#include "common/core/cgroups/plan.h"

#include <string_view>

#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"

namespace podqos::core {

namespace {

struct Format {
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::uint64_t value) const {
    return value == kUnitInfinity ? "infinity" : std::to_string(value);
  }
  std::string operator()(const std::string& value) const { return cat("\"", value, "\""); }
  template <class Value>
  std::string operator()(const std::vector<Value>& values) const {
    std::string text;
    for (const Value& value : values)
      text += cat(text.empty() ? "" : ",", value);
    return text;
  }
};

}  // namespace

std::string format_unit_value(const UnitValue& value) {
  return std::visit(Format{}, value);
}

namespace {

std::string line(const EnsureCgroup& step) {
  return step.also ? cat("mkdir  ", step.path, " +", row_of(*step.also).v2_name)
                   : cat("mkdir  ", step.path);
}

std::string line(const WriteFile& step) {
  // The root's own path is "/" and must not become "//cpu.weight".
  const std::string_view slash = step.path.ends_with('/') ? "" : "/";
  const std::string write = cat("write  ", step.path, slash, step.file, " = ", step.value);
  return step.reason.empty() ? write : cat(write, "  # ", step.reason);
}

std::string line(const MoveProcess& step) {
  return cat("move   ", step.pid.value(), " -> ", step.path);
}

std::string line(const RemoveCgroup& step) {
  return cat("rmdir  ", step.path, step.nested == Nested::kRemoved ? " and all below" : "");
}

/// Without the value: a record's copy is kilobytes.
std::string line(const SetAttribute& step) {
  return cat("attr   ", step.path, " ", step.name);
}

/// "CPUWeight=39 Wants=kubepods.slice".
std::string text_of(const std::vector<UnitProperty>& properties) {
  std::string text;
  for (const UnitProperty& property : properties)
    text += cat(" ", property.name, "=", format_unit_value(property.value));
  return text;
}

std::string line(const StartUnit& step) {
  return cat("start  ", unit_of(step.path), text_of(step.once), text_of(step.properties));
}

std::string line(const SetUnit& step) {
  return cat("set    ", unit_of(step.path), text_of(step.properties));
}

std::string line(const StopUnit& step) {
  return cat("stop   ", unit_of(step.path));
}

std::string line(const SetOomScore& step) {
  return cat("oom    /proc/", step.pid.value(), "/oom_score_adj = ", step.score);
}

}  // namespace

std::string render(const Plan& plan) {
  std::string text;
  for (const Step& step : plan) {
    text += std::visit([](const auto& concrete) { return line(concrete); }, step);
    text += '\n';
  }
  return text;
}

}  // namespace podqos::core
