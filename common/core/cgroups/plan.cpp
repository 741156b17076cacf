#include "common/core/cgroups/plan.h"

#include <string_view>

#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"

namespace podqos::core {

namespace {

/// A property's value as systemctl formats it: "yes", "39", "infinity". Strings are quoted, lists
/// joined by commas.
struct Format {
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::uint32_t value) const { return std::to_string(value); }
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

/// "CPUWeight=39 Wants=kubepods.slice".
std::string text_of(const std::vector<UnitProperty>& properties) {
  std::string text;
  for (const UnitProperty& property : properties)
    text += cat(" ", property.name, "=", std::visit(Format{}, property.value));
  return text;
}

/// The line of a step.
struct Line {
  std::string operator()(const EnsureCgroup& step) const {
    const std::string line = cat("mkdir  ", step.path);
    return step.also ? cat(line, " +", row_of(*step.also).v2_name) : line;
  }
  std::string operator()(const WriteFile& step) const {
    // The root's own path is "/" and must not become "//cpu.weight".
    const std::string_view slash = step.path.ends_with('/') ? "" : "/";
    const std::string write = cat("write  ", step.path, slash, step.file, " = ", step.value);
    return step.reason.empty() ? write : cat(write, "  # ", step.reason);
  }
  std::string operator()(const MoveProcess& step) const {
    return cat("move   ", step.pid.value(), " -> ", step.path);
  }
  std::string operator()(const KillProcesses& step) const { return cat("kill   ", step.path); }
  std::string operator()(const RemoveCgroup& step) const {
    return cat("rmdir  ", step.path, step.nested ? " and all below" : "");
  }
  /// Without the value: a record's copy is kilobytes.
  std::string operator()(const SetAttribute& step) const {
    return cat("attr   ", step.path, " ", step.name);
  }
  std::string operator()(const StartUnit& step) const {
    return cat("start  ", unit_of(step.path), text_of(step.once), text_of(step.properties));
  }
  std::string operator()(const SetUnit& step) const {
    return cat("set    ", unit_of(step.path), text_of(step.properties));
  }
  std::string operator()(const StopUnit& step) const { return cat("stop   ", unit_of(step.path)); }
  std::string operator()(const SetOomScore& step) const {
    return cat("oom    /proc/", step.pid.value(), "/oom_score_adj = ", step.score);
  }
};

}  // namespace

std::string render(const Plan& plan) {
  std::string text;
  for (const Step& step : plan)
    text += cat(std::visit(Line{}, step), "\n");
  return text;
}

}  // namespace podqos::core
