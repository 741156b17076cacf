#include "common/core/plan.h"

#include <string_view>

#include "common/base/text.h"

namespace podqos::core {

namespace {

std::string line(const EnsureCgroup& step) {
  return cat("mkdir  ", step.path);
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
  return cat("rmdir  ", step.path);
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
