#include "ctl/configure/report.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/configure/program.h"
#include "ctl/json.h"

namespace podqos::ctl {
namespace {

/// API 1.43, which has HostConfig.Annotations.
constexpr Version kDockerAnnotates{.major = 24, .minor = 0};

/// "create", "edit", "remove" or "link".
std::string_view action_of(const FileChange& change) {
  if (change.after.kind == FileState::Kind::kLink) return "link";
  if (!change.after.exists()) return "remove";
  return change.before.exists() ? "edit" : "create";
}

/// How pods come to the runtime.
std::string ask_for_runtime(const Registration& registration) {
  switch (registration.engine->id) {
    case EngineId::kContainerd:
    case EngineId::kCrio:
      // Without a kubelet there is none.
      if (!registration.kubelet) return "crictl runp --runtime podqos …";
      return "set runtimeClassName: podqos in pods "
             "(/usr/share/doc/podqos/examples/runtimeclass.yaml)";
    case EngineId::kPodman: return "podman --runtime podqos run …";
    case EngineId::kDocker:
      if (registration.version && *registration.version < kDockerAnnotates)
        return cat("upgrade Docker to ", format_version(kDockerAnnotates),
                   ": older ones cannot annotate containers (docker run --annotation), and podqos "
                   "leaves those without annotation alone");
      return "docker run --runtime podqos --annotation podqos.io/pod-uid=… …";
  }
  return {};
}

/// What makes the engine read its configuration; "" if it has.
std::string service_command(const Registration& registration) {
  const std::string_view service = registration.engine->service;
  const Outcome& outcome = registration.outcome;
  if (service.empty() || outcome.restarted) return {};
  const bool is_docker = registration.engine->id == EngineId::kDocker;
  // With --root no daemon was asked; Docker says itself whether it is stale.
  const bool changed = !registration.changes.empty() && (!is_docker || !registration.root.empty());
  if (!changed && !outcome.stale) return {};
  // A reload does not forget Docker's last runtime.
  if (is_docker && !registration.undo) return cat("systemctl reload ", service);
  std::string command = cat("systemctl restart ", service);
  if (outcome.containers > 0)
    command += cat(" (stops the ", outcome.containers,
                   " running containers: live-restore is off; --restart=force does the same)");
  return command;
}

/// What is left to the operator, in order.
std::vector<std::string> next_steps(const Registration& registration) {
  const bool changed = !registration.changes.empty();
  const bool is_crio = registration.engine->id == EngineId::kCrio;
  const Outcome& outcome = registration.outcome;
  const std::string command = service_command(registration);
  std::vector<std::string> steps;
  if (registration.undo && changed && is_crio && !command.empty())
    steps.emplace_back(
        "remove the pods of the runtime \"podqos\": once restarted, CRI-O cannot stop them");
  if (!command.empty()) steps.push_back(command);
  if (registration.undo) {
    if (changed && !is_crio)
      steps.emplace_back("recreate containers started with podqos-runtime before uninstalling");
    return steps;
  }
  if (registration.method == Method::kNri && !registration.plugin_installed)
    steps.emplace_back("install the package podqos-nri");
  else if (registration.method == Method::kNri && !outcome.plugin_enabled && !outcome.plugin_ready)
    steps.emplace_back("systemctl enable --now podqos-nri.service");
  if (changed && registration.method == Method::kWrapper)
    steps.push_back(ask_for_runtime(registration));
  return steps;
}

std::string format_change(const Registration& registration, const FileChange& change) {
  const std::string path = cat(registration.root, change.path);
  std::string line = cat(path, ": ", change.what, registration.undo ? " removed" : " added");
  if (registration.undo && !change.after.exists()) line += " (file deleted)";
  if (change.backup) line += cat(" (backup: ", path, kBackupSuffix, ")");
  if (change.drop_backup) line += "; restored from backup; backup removed";
  if (!registration.undo)
    line += cat(" (undo: podqosctl configure ", registration.engine->name, " --undo",
                registration.root.empty() ? "" : " --root ", registration.root, ")");
  return line + "\n";
}

/// Something that was done beside the files, or found.
struct Event {
  const char* member;  ///< in JSON
  bool happened;
  std::string line;
};

std::vector<Event> events_of(const Registration& registration) {
  const auto& [title, service] =
      std::pair{registration.engine->title, registration.engine->service};
  const Outcome& outcome = registration.outcome;
  const bool undo = registration.undo;
  const std::string stopped =
      outcome.containers == 0
          ? ""
          : cat(", which stopped ", outcome.containers, " running containers: live-restore is off");
  const std::string stale =
      registration.engine->id == EngineId::kDocker
          ? cat(undo ? " still knows" : " does not know",
                " the runtime \"podqos\": it has not read this configuration yet")
          : cat(" has not been restarted since ", outcome.last_changed, " changed, and ",
                undo ? "may still have podqos registered" : "may not know podqos yet");
  return {{"checked", outcome.checked, cat(title, " accepts its configuration")},
          {"reloaded", outcome.reloaded, cat(service, " reloaded")},
          {"restarted", outcome.restarted, cat(service, " restarted", stopped)},
          {"stale", outcome.stale, cat(service, stale)},
          {"pluginEnabled", outcome.plugin_enabled, "podqos-nri.service enabled and started"},
          {"pluginConnected", outcome.plugin_connected,
           cat("podqos-nri.service is connected to ", title)},
          {"pluginDisabled", outcome.plugin_disabled, "podqos-nri.service stopped and disabled"}};
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
    return cat("--label=", state.exists() ? cat(root, change.path) : "/dev/null");
  };
  PODQOS_ASSIGN(
      const auto diff,
      run_program({"/usr/bin/diff", "-u",
                   mode == ColourMode::kColoured ? "--color=always" : "--color=never",
                   label(change.before), label(change.after), cat("/proc/self/fd/", before.get()),
                   cat("/proc/self/fd/", after.get())}));
  if (diff.status == 1) return diff.output + "\n";
  return fail(ErrorCode::kIo, cat("/usr/bin/diff: ", printable(diff.output)));
}

std::string format_text(const Registration& registration) {
  std::string out;
  for (const FileChange& change : registration.changes)
    out += format_change(registration, change);
  for (const std::string& note : registration.notes)
    out += cat(note, "\n");
  std::string done;
  bool acted = !registration.changes.empty();
  for (const Event& event : events_of(registration)) {
    if (!event.happened) continue;
    done += cat(event.line, "\n");
    acted = acted || event.member != std::string_view{"pluginConnected"};
  }
  if (!acted) out += cat(registration.engine->title, ": nothing to do\n");
  out += done;
  for (const std::string& step : next_steps(registration))
    out += cat("next: ", step, "\n");
  return out;
}

Result<std::string> format_dry_run(const Registration& registration, ColourMode mode) {
  std::string out;
  for (const FileChange& change : registration.changes) {
    PODQOS_ASSIGN(const auto diff, format_diff(change, registration.root, mode));
    out += diff;
  }
  for (const std::string& note : registration.notes)
    out += cat("# ", note, "\n");
  if (out.empty()) out = cat("# ", registration.engine->title, ": nothing to do\n");
  return out;
}

Result<std::string> format_json(const Registration& registration, WithDiff diffs) {
  Json changes = Json::array();
  for (const FileChange& change : registration.changes) {
    const std::string path = cat(registration.root, change.path);
    Json each = {{"path", path},
                 {"action", action_of(change)},
                 {"what", change.what},
                 {"backup", change.backup ? Json(cat(path, kBackupSuffix)) : Json{}}};
    if (diffs == WithDiff::kYes) {
      PODQOS_ASSIGN(each["diff"], format_diff(change, registration.root, ColourMode::kPlain));
    }
    changes.push_back(std::move(each));
  }
  const auto version = registration.version;
  Json json = {{"engine", registration.engine->name},
               {"version", version ? Json(format_version(*version)) : Json{}},
               {"method", registration.undo
                              ? Json{}
                              : Json(kMethods.at(static_cast<std::size_t>(registration.method)))},
               {"undo", registration.undo},
               {"changes", std::move(changes)},
               {"notes", registration.notes},
               {"next", next_steps(registration)}};
  for (const Event& event : events_of(registration))
    json[event.member] = event.happened;
  return dump(json) + "\n";
}

}  // namespace podqos::ctl
