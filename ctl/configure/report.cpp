#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/configure/setup.h"
#include "ctl/json.h"

namespace podqos::ctl {
namespace {

/// API 1.43, which has HostConfig.Annotations.
constexpr Version kDockerAnnotates{.major = 24, .minor = 0};

/// How pods come to the runtime.
std::string ask_for_runtime(const Setup& setup) {
  if (setup.is(EngineId::kPodman)) return "podman --runtime podqos run …";
  if (setup.is(EngineId::kDocker) && setup.version && setup.version < kDockerAnnotates)
    return cat("upgrade Docker to ", format_version(kDockerAnnotates),
               ": older ones cannot annotate containers (docker run --annotation), and podqos "
               "leaves those without annotation alone");
  if (setup.is(EngineId::kDocker))
    return "docker run --runtime podqos --annotation podqos.io/pod-uid=… …";
  // RuntimeClass exists only with a kubelet.
  return setup.kubelet ? "set runtimeClassName: podqos in pods "
                         "(/usr/share/doc/podqos/examples/runtimeclass.yaml)"
                       : "crictl runp --runtime podqos …";
}

/// What makes the engine read its configuration; "" if it has.
std::string service_command(const Setup& setup) {
  const std::string_view service = setup.engine->service;
  const bool is_docker = setup.is(EngineId::kDocker);
  // With --root no daemon was asked; Docker says itself whether it is stale.
  const bool changed = setup.changed() && (!is_docker || !setup.root.empty());
  if (service.empty() || setup.restarted || !(changed || setup.stale)) return {};
  // A reload does not forget Docker's last runtime.
  if (is_docker && !setup.undo) return cat("systemctl reload ", service);
  std::string command = cat("systemctl restart ", service);
  if (setup.containers > 0)
    command += cat(" (stops the ", setup.containers,
                   " running containers: live-restore is off; --restart=force does the same)");
  return command;
}

/// What is left to the operator, in order.
std::vector<std::string> next_steps(const Setup& setup) {
  const bool is_crio = setup.is(EngineId::kCrio);
  const bool is_nri = setup.method == Method::kNri && !setup.undo;
  const std::string command = service_command(setup);
  std::vector<std::string> steps;
  if (setup.undo && setup.changed() && is_crio && !command.empty())
    steps.emplace_back(
        "remove the pods of the runtime \"podqos\": once restarted, CRI-O cannot stop them");
  if (!command.empty()) steps.push_back(command);
  if (setup.undo && setup.changed() && !is_crio)
    steps.emplace_back("recreate containers started with podqos-runtime before uninstalling");
  if (is_nri && !setup.plugin_installed)
    steps.emplace_back("install the package podqos-nri");
  else if (is_nri && !setup.plugin_enabled && !setup.plugin_ready)
    steps.emplace_back("systemctl enable --now podqos-nri.service");
  if (!setup.undo && setup.changed() && setup.method == Method::kWrapper)
    steps.push_back(ask_for_runtime(setup));
  return steps;
}

Result<std::string> format_change(const Setup& setup, const FileChange& change) {
  const std::string path = cat(setup.root, change.path);
  std::string line = cat(path, ": ", change.what, setup.undo ? " removed" : " added");
  if (setup.undo && !change.after.exists()) line += " (file deleted)";
  if (change.backup) line += cat(" (backup: ", path, kBackupSuffix, ")");
  if (change.drop_backup) line += "; restored from backup; backup removed";
  if (!setup.undo)
    line += cat(" (undo: podqosctl configure ", setup.engine->name, " --undo",
                setup.root.empty() ? "" : " --root ", setup.root, ")");
  return line + "\n";
}

/// Something that was done beside the files, or found.
struct Event {
  std::string_view member;  ///< in JSON
  bool happened;
  std::string line;
};

std::vector<Event> events_of(const Setup& setup) {
  const std::string_view title = setup.engine->title;
  const std::string_view service = setup.engine->service;
  const std::string stopped =
      setup.containers == 0
          ? ""
          : cat(", which stopped ", setup.containers, " running containers: live-restore is off");
  const std::string stale =
      setup.is(EngineId::kDocker)
          ? cat(setup.undo ? " still knows" : " does not know",
                " the runtime \"podqos\": it has not read this configuration yet")
          : cat(" has not been restarted since ", setup.last_changed, " changed, and ",
                setup.undo ? "may still have podqos registered" : "may not know podqos yet");
  return {{"checked", setup.checked, cat(title, " accepts its configuration")},
          {"reloaded", setup.reloaded, cat(service, " reloaded")},
          {"restarted", setup.restarted, cat(service, " restarted", stopped)},
          {"stale", setup.stale, cat(service, stale)},
          {"pluginEnabled", setup.plugin_enabled, "podqos-nri.service enabled and started"},
          {"pluginConnected", setup.plugin_connected,
           cat("podqos-nri.service is connected to ", title)},
          {"pluginDisabled", setup.plugin_disabled, "podqos-nri.service stopped and disabled"}};
}

/// What diff shows of a file, in a file of memory that a program finds by its descriptor.
Result<sys::UniqueFd> diff_input(const FileState& state) {
  const bool is_link = state.kind == FileState::Kind::kLink;
  const std::string text = is_link ? cat("-> ", state.text, "\n") : state.text;
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

Result<std::string> format_text(const Setup& setup, ColourMode mode) {
  std::string out;
  for (const FileChange& change : setup.changes) {
    PODQOS_ASSIGN(const auto text, setup.dry_run ? format_diff(change, setup.root, mode)
                                                 : format_change(setup, change));
    out += text;
  }
  const std::string_view mark = setup.dry_run ? "# " : "";
  for (const std::string& note : setup.notes)
    out += cat(mark, note, "\n");
  std::string done;
  bool acted = setup.changed() || (setup.dry_run && !setup.notes.empty());
  for (const Event& event : events_of(setup)) {
    if (!event.happened) continue;
    done += cat(event.line, "\n");
    acted = acted || event.member != "pluginConnected";
  }
  if (!acted) out += cat(mark, setup.engine->title, ": nothing to do\n");
  if (setup.dry_run) return out;
  out += done;
  for (const std::string& step : next_steps(setup))
    out += cat("next: ", step, "\n");
  return out;
}

Result<std::string> format_json(const Setup& setup) {
  Json changes = Json::array();
  for (const FileChange& change : setup.changes) {
    const std::string path = cat(setup.root, change.path);
    const bool is_link = change.after.kind == FileState::Kind::kLink;
    Json each = {{"path", path},
                 {"action", is_link                  ? "link"
                            : !change.after.exists() ? "remove"
                            : change.before.exists() ? "edit"
                                                     : "create"},
                 {"what", change.what},
                 {"backup", change.backup ? Json(cat(path, kBackupSuffix)) : Json{}}};
    if (setup.dry_run) {
      PODQOS_ASSIGN(each["diff"], format_diff(change, setup.root, ColourMode::kPlain));
    }
    changes.push_back(std::move(each));
  }
  const std::string_view method = kMethods.at(static_cast<std::size_t>(setup.method));
  Json json = {{"engine", setup.engine->name},
               {"version", setup.version ? Json(format_version(*setup.version)) : Json{}},
               {"method", setup.undo ? Json{} : Json(method)},
               {"undo", setup.undo},
               {"changes", std::move(changes)},
               {"notes", setup.notes},
               {"next", next_steps(setup)}};
  for (const Event& event : events_of(setup))
    json[event.member] = event.happened;
  return dump(json) + "\n";
}

}  // namespace podqos::ctl
