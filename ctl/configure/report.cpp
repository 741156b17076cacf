#include "ctl/configure/report.h"

#include <string_view>
#include <vector>

#include "common/base/text.h"
#include "ctl/configure/diff.h"

namespace podqos::ctl {
namespace {

constexpr std::string_view kPluginPackage = "install the package podqos-nri";
constexpr std::string_view kPluginService = "systemctl enable --now podqos-nri.service";

/// "create", "edit", "remove" or "link".
std::string_view action_of(const FileChange& change) {
  if (change.after.kind == FileState::Kind::kLink) return "link";
  if (change.after.kind == FileState::Kind::kAbsent) return "remove";
  return change.before.kind == FileState::Kind::kAbsent ? "create" : "edit";
}

std::string undo_command(const ConfigureReport& report) {
  return cat("podqosctl configure ", facts_of(report.request.engine).name, " --undo",
             report.root.empty() ? "" : cat(" --root ", report.root));
}

/// How pods come to the runtime.
std::string ask_for_runtime(Engine engine) {
  switch (engine) {
    case Engine::kContainerd:
    case Engine::kCrio:
      return "let pods ask for it with a RuntimeClass: "
             "/usr/share/doc/podqos/examples/runtimeclass.yaml";
    case Engine::kPodman: return "podman --runtime podqos run …";
    case Engine::kDocker: return "docker run --runtime podqos --annotation podqos.io/pod-uid=… …";
  }
  return {};
}

/// What is left to the operator, in order.
std::vector<std::string> next_steps(const ConfigureReport& report) {
  const std::string_view service = facts_of(report.request.engine).service;
  std::vector<std::string> steps;
  const bool changed = !report.plan.changes.empty();
  if (changed && !service.empty() && !report.outcome.restarted)
    steps.push_back(cat("systemctl restart ", service));
  if (report.undo) {
    if (changed)
      steps.emplace_back(
          "remove the containers that were made with podqos: their engine needs it until then");
    return steps;
  }
  if (report.request.way == Way::kNri) {
    if (!report.request.node.plugin_installed)
      steps.emplace_back(kPluginPackage);
    else if (!report.outcome.plugin_enabled)
      steps.emplace_back(kPluginService);
  }
  if (changed && report.request.way == Way::kWrapper)
    steps.push_back(ask_for_runtime(report.request.engine));
  return steps;
}

std::string format_change(const ConfigureReport& report, const FileChange& change) {
  const std::string path = cat(report.root, change.path);
  std::string line = cat(path, ": ", change.what, report.undo ? " removed" : " added");
  if (report.undo && action_of(change) == "remove") line += ", and with it the file";
  if (change.backup) line += cat("; the file before: ", path, kBackupSuffix);
  if (change.drop_backup) line += "; the file is what it was before podqos, and the backup gone";
  if (!report.undo) line += cat(" (undo: ", undo_command(report), ")");
  return line + "\n";
}

}  // namespace

std::string format_text(const ConfigureReport& report) {
  std::string out;
  for (const FileChange& change : report.plan.changes)
    out += format_change(report, change);
  for (const std::string& note : report.plan.notes)
    out += cat(note, "\n");
  const EngineFacts& facts = facts_of(report.request.engine);
  if (report.plan.changes.empty() && report.plan.notes.empty())
    out += cat(facts.title, ": nothing to do\n");
  if (report.outcome.checked) out += cat(facts.title, " accepts its configuration\n");
  if (report.outcome.restarted) out += cat(facts.service, " restarted\n");
  if (report.outcome.plugin_enabled) out += "podqos-nri.service enabled and started\n";
  for (const std::string& step : next_steps(report))
    out += cat("next: ", step, "\n");
  return out;
}

std::string format_dry_run(const ConfigureReport& report, ColourMode mode) {
  std::string out;
  for (const FileChange& change : report.plan.changes)
    out += format_diff(change, report.root, mode);
  for (const std::string& note : report.plan.notes)
    out += cat("# ", note, "\n");
  if (out.empty()) out = cat("# ", facts_of(report.request.engine).title, ": nothing to do\n");
  return out;
}

std::string format_json(const ConfigureReport& report, WithDiff diffs) {
  Json json;
  json["engine"] = facts_of(report.request.engine).name;
  json["version"] = report.request.version ? Json(format_version(*report.request.version)) : Json{};
  json["way"] = report.undo ? Json{} : Json(format_way(report.request.way));
  json["undo"] = report.undo;
  json["changes"] = Json::array();
  for (const FileChange& change : report.plan.changes) {
    Json each;
    each["path"] = cat(report.root, change.path);
    each["action"] = action_of(change);
    each["what"] = change.what;
    each["backup"] = change.backup ? Json(cat(report.root, change.path, kBackupSuffix)) : Json{};
    if (diffs == WithDiff::kYes)
      each["diff"] = format_diff(change, report.root, ColourMode::kPlain);
    json["changes"].push_back(std::move(each));
  }
  json["notes"] = report.plan.notes;
  json["next"] = next_steps(report);
  json["checked"] = report.outcome.checked;
  json["restarted"] = report.outcome.restarted;
  json["pluginEnabled"] = report.outcome.plugin_enabled;
  return dump(json) + "\n";
}

}  // namespace podqos::ctl
