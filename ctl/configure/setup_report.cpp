#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/sys/fd.h"
#include "ctl/cli/json.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

constexpr const char* kKubelet = "/var/lib/kubelet";  // its root directory, unless told otherwise
/// API 1.43, which has HostConfig.Annotations.
constexpr Version kDockerAnnotates{.major = 24, .minor = 0};

/// Exit status of diff(1) for files that are not the same.
constexpr int kDiffers = 1;

/// How pods come to the runtime.
std::string ask_for_runtime(const Setup& setup) {
  // RuntimeClass exists only with a kubelet.
  if (setup.engine->nri && setup.files.exists(kKubelet))
    return "set runtimeClassName: podqos in pods "
           "(/usr/share/doc/podqos/examples/runtimeclass.yaml)";
  if (setup.is(EngineId::kDocker) && setup.version && setup.version < kDockerAnnotates)
    return cat("upgrade Docker to ", format_version(kDockerAnnotates),
               ": older ones cannot annotate containers (docker run --annotation), and podqos "
               "leaves those without annotation alone");
  return std::string{setup.engine->start};
}

/// What makes the engine read its configuration; "" if it has.
std::string service_command(const Setup& setup) {
  const std::string_view service = setup.engine->service;
  const bool is_docker = setup.is(EngineId::kDocker);
  // With --root no daemon was asked; Docker says itself whether it is stale.
  const bool changed = setup.changed() && (!is_docker || !setup.root.empty());
  if (setup.changed() && !setup.config.empty())
    return cat("restart the service whose ", setup.engine->title, " reads ", setup.config);
  if (service.empty() || setup.events.contains("restarted") || !(changed || setup.stale)) return {};
  // A reload does not forget Docker's last runtime.
  if (is_docker && !setup.undo) return cat("systemctl reload ", service);
  std::string command = cat("systemctl restart ", service);
  if (setup.containers > 0)
    command += cat(" (stops ", format_count(setup.containers, "running container"),
                   ": live-restore is off; --restart=force does the same)");
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
  else if (is_nri && !setup.plugin_ready)
    steps.emplace_back("systemctl enable --now podqos-nri.service");
  if (!setup.undo && setup.changed() && setup.method == Method::kWrapper && !setup.set_default)
    steps.push_back(ask_for_runtime(setup));
  return steps;
}

Result<std::string> format_change(const Setup& setup, const FileChange& change) {
  const std::string path = cat(setup.root, change.path);
  const bool is_removal = setup.undo || change.is_removal;
  std::string line = cat(path, ": ", change.what, is_removal ? " removed" : " added");
  if (!change.after.exists()) line += " (file deleted)";
  if (change.backup) line += cat(" (backup: ", path, kBackupSuffix, ")");
  if (change.drop_backup) line += "; restored from backup; backup removed";
  if (!is_removal)
    line += cat(" (undo: podqosctl configure ", setup.engine->name, " --undo",
                setup.root.empty() ? "" : " --root ", setup.root,
                setup.config.empty() ? "" : " --config ", setup.config, ")");
  return line + "\n";
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

/// The change as diff(1) prints it, to be given to patch(1). A symlink shows its target as "->
/// TARGET".
Result<std::string> format_diff(const Setup& setup, const FileChange& change, ColourMode mode) {
  PODQOS_ASSIGN(const auto before, diff_input(change.before));
  PODQOS_ASSIGN(const auto after, diff_input(change.after));
  const auto label = [&](const FileState& state) {
    return cat("--label=", state.exists() ? cat(setup.root, change.path) : "/dev/null");
  };
  auto diff = run_program(
      {"/usr/bin/diff", "-u", mode == ColourMode::kColoured ? "--color=always" : "--color=never",
       label(change.before), label(change.after), cat("/proc/self/fd/", before.get()),
       cat("/proc/self/fd/", after.get())},
      kDiffers);
  if (!diff) return fail(std::move(diff).error().with_context("/usr/bin/diff"));
  return *diff + "\n";
}

}  // namespace

Result<std::string> format_text(const Setup& setup, ColourMode mode) {
  std::string out;
  for (const FileChange& change : setup.changes) {
    PODQOS_ASSIGN(const auto text,
                  setup.dry_run ? format_diff(setup, change, mode) : format_change(setup, change));
    out += text;
  }
  const std::string_view mark = setup.dry_run ? "# " : "";
  for (const std::string& note : setup.notes)
    out += cat(mark, note, "\n");
  const bool acted = setup.changed() || (setup.dry_run && !setup.notes.empty()) ||
                     setup.events.size() > setup.events.count("pluginConnected");
  if (!acted) out += cat(mark, setup.engine->title, ": nothing to do\n");
  if (setup.dry_run) return out;
  for (const std::string_view event : kEvents)
    if (const auto found = setup.events.find(event); found != setup.events.end())
      out += cat(found->second, "\n");
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
      PODQOS_ASSIGN(each["diff"], format_diff(setup, change, ColourMode::kPlain));
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
  for (const std::string_view event : kEvents)
    json[event] = setup.events.contains(event);
  return dump(json) + "\n";
}

}  // namespace podqos::ctl
