#include "ctl/configure/report.h"

#include <sys/mman.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {
namespace {

/// API 1.43, which has HostConfig.Annotations.
constexpr Version kDockerAnnotates{.major = 24, .minor = 0};

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
std::string ask_for_runtime(const ConfigureRequest& request) {
  switch (request.engine) {
    case Engine::kContainerd:
    case Engine::kCrio:
      // Without a kubelet there is none.
      if (!request.kubelet) return "crictl runp --runtime podqos …";
      return "set runtimeClassName: podqos in pods "
             "(/usr/share/doc/podqos/examples/runtimeclass.yaml)";
    case Engine::kPodman: return "podman --runtime podqos run …";
    case Engine::kDocker:
      if (request.version && *request.version < kDockerAnnotates)
        return cat("upgrade Docker to ", format_version(kDockerAnnotates),
                   ": older ones cannot annotate containers (docker run --annotation), and podqos "
                   "leaves those without annotation alone");
      return "docker run --runtime podqos --annotation podqos.io/pod-uid=… …";
  }
  return {};
}

/// What makes the engine read its configuration; "" if it has.
std::string service_command(const ConfigureReport& report) {
  const std::string_view service = facts_of(report.request.engine).service;
  const ConfigureOutcome& outcome = report.outcome;
  if (service.empty() || outcome.service.restarted) return {};
  const bool is_docker = report.request.engine == Engine::kDocker;
  // With --root no daemon was asked; Docker says itself whether it is stale.
  const bool changed = !report.plan.changes.empty() && (!is_docker || !report.root.empty());
  if (!changed && !outcome.service.stale) return {};
  // A reload does not forget Docker's last runtime.
  if (is_docker && !report.undo) return cat("systemctl reload ", service);
  const std::int64_t containers = outcome.service.containers;
  return cat("systemctl restart ", service,
             containers == 0 ? ""
                             : cat(" (stops the ", containers,
                                   " running containers: live-restore is off; --restart=force "
                                   "does the same)"));
}

/// What is left to the operator, in order.
std::vector<std::string> next_steps(const ConfigureReport& report) {
  const bool changed = !report.plan.changes.empty();
  const bool is_crio = report.request.engine == Engine::kCrio;
  const std::string command = service_command(report);
  std::vector<std::string> steps;
  if (report.undo && changed && is_crio && !command.empty())
    steps.emplace_back(
        "remove the pods of the runtime \"podqos\": once restarted, CRI-O cannot stop them");
  if (!command.empty()) steps.push_back(command);
  if (report.undo) {
    if (changed && !is_crio)
      steps.emplace_back("recreate containers started with podqos-runtime before uninstalling");
    return steps;
  }
  if (report.request.method == Method::kNri) {
    if (!report.request.plugin_installed)
      steps.emplace_back("install the package podqos-nri");
    else if (!report.outcome.plugin_enabled && !report.outcome.plugin_ready)
      steps.emplace_back("systemctl enable --now podqos-nri.service");
  }
  if (changed && report.request.method == Method::kWrapper)
    steps.push_back(ask_for_runtime(report.request));
  return steps;
}

std::string format_change(const ConfigureReport& report, const FileChange& change) {
  const std::string path = cat(report.root, change.path);
  std::string line = cat(path, ": ", change.what, report.undo ? " removed" : " added");
  if (report.undo && action_of(change) == "remove") line += " (file deleted)";
  if (change.backup) line += cat(" (backup: ", path, kBackupSuffix, ")");
  if (change.drop_backup) line += "; restored from backup; backup removed";
  if (!report.undo) line += cat(" (undo: ", undo_command(report), ")");
  return line + "\n";
}

/// What the engine that runs does not know yet.
std::string format_stale(const ConfigureReport& report) {
  const std::string_view service = facts_of(report.request.engine).service;
  if (report.request.engine == Engine::kDocker)
    return cat(service, report.undo ? " still knows" : " does not know",
               " the runtime \"podqos\": it has not read this configuration yet\n");
  return cat(service, " has not been restarted since ", report.last_changed, " changed, and ",
             report.undo ? "may still have podqos registered" : "may not know podqos yet", "\n");
}

/// What diff shows of a file, in a file of memory that a program finds by its descriptor.
Result<sys::UniqueFd> diff_input(const FileState& state) {
  const std::string text =
      state.kind == FileState::Kind::kLink ? cat("-> ", state.text, "\n") : state.text;
  sys::UniqueFd file{
      ::memfd_create("podqos", 0)};  // NOLINT(android-cloexec-memfd-create): for diff
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) != std::ssize(text))
    return fail_errno(errno, "write a file in memory");
  return file;
}

}  // namespace

Result<std::string> format_diff(const FileChange& change, const std::string& root,
                                ColourMode mode) {
  PODQOS_ASSIGN(const auto before, diff_input(change.before));
  PODQOS_ASSIGN(const auto after, diff_input(change.after));
  const auto label = [&](const FileState& state) {
    const bool absent = state.kind == FileState::Kind::kAbsent;
    return absent ? "/dev/null" : cat(root, change.path);
  };
  const std::string colour = mode == ColourMode::kColoured ? "always" : "never";
  PODQOS_ASSIGN(
      const auto diff,
      run_program({"/usr/bin/diff", "-u", cat("--color=", colour),
                   cat("--label=", label(change.before)), cat("--label=", label(change.after)),
                   cat("/proc/self/fd/", before.get()), cat("/proc/self/fd/", after.get())}));
  if (diff.status == 1) return diff.output + "\n";
  return fail(ErrorCode::kIo, cat("/usr/bin/diff: ", printable(diff.output)));
}

std::string format_text(const ConfigureReport& report) {
  std::string out;
  for (const FileChange& change : report.plan.changes)
    out += format_change(report, change);
  for (const std::string& note : report.plan.notes)
    out += cat(note, "\n");
  const EngineFacts& facts = facts_of(report.request.engine);
  const ConfigureOutcome& outcome = report.outcome;
  const bool acted = outcome.service.restarted || outcome.service.reloaded ||
                     outcome.service.stale || outcome.plugin_enabled || outcome.plugin_disabled;
  if (report.plan.changes.empty() && !acted) out += cat(facts.title, ": nothing to do\n");
  if (outcome.checked) out += cat(facts.title, " accepts its configuration\n");
  if (outcome.service.reloaded) out += cat(facts.service, " reloaded\n");
  if (const std::int64_t stopped = outcome.service.containers; outcome.service.restarted)
    out += cat(facts.service, " restarted",
               stopped == 0
                   ? ""
                   : cat(", which stopped ", stopped, " running containers: live-restore is off"),
               "\n");
  if (outcome.service.stale) out += format_stale(report);
  if (outcome.plugin_enabled) out += "podqos-nri.service enabled and started\n";
  if (outcome.plugin_connected)
    out += cat("podqos-nri.service is connected to ", facts.title, "\n");
  if (outcome.plugin_disabled) out += "podqos-nri.service stopped and disabled\n";
  for (const std::string& step : next_steps(report))
    out += cat("next: ", step, "\n");
  return out;
}

Result<std::string> format_dry_run(const ConfigureReport& report, ColourMode mode) {
  std::string out;
  for (const FileChange& change : report.plan.changes) {
    PODQOS_ASSIGN(const auto diff, format_diff(change, report.root, mode));
    out += diff;
  }
  for (const std::string& note : report.plan.notes)
    out += cat("# ", note, "\n");
  if (out.empty()) out = cat("# ", facts_of(report.request.engine).title, ": nothing to do\n");
  return out;
}

Result<std::string> format_json(const ConfigureReport& report, WithDiff diffs) {
  const ConfigureRequest& request = report.request;
  const ConfigureOutcome& outcome = report.outcome;
  Json changes = Json::array();
  for (const FileChange& change : report.plan.changes) {
    const std::string path = cat(report.root, change.path);
    Json each = {{"path", path},
                 {"action", action_of(change)},
                 {"what", change.what},
                 {"backup", change.backup ? Json(cat(path, kBackupSuffix)) : Json{}}};
    if (diffs == WithDiff::kYes) {
      PODQOS_ASSIGN(each["diff"], format_diff(change, report.root, ColourMode::kPlain));
    }
    changes.push_back(std::move(each));
  }
  const Json json = {{"engine", facts_of(request.engine).name},
                     {"version", request.version ? Json(format_version(*request.version)) : Json{}},
                     {"method", report.undo ? Json{} : Json(format_method(request.method))},
                     {"undo", report.undo},
                     {"changes", std::move(changes)},
                     {"notes", report.plan.notes},
                     {"next", next_steps(report)},
                     {"checked", outcome.checked},
                     {"reloaded", outcome.service.reloaded},
                     {"restarted", outcome.service.restarted},
                     {"stale", outcome.service.stale},
                     {"pluginEnabled", outcome.plugin_enabled},
                     {"pluginConnected", outcome.plugin_connected},
                     {"pluginDisabled", outcome.plugin_disabled}};
  return dump(json) + "\n";
}

}  // namespace podqos::ctl
