#include <linux/capability.h>
#include <sys/stat.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/sys/sandbox.h"
#include "ctl/command.h"
#include "ctl/configure/activation.h"
#include "ctl/configure/report.h"

namespace podqos::ctl {
namespace {

/// An engine's file may belong to another user, and keeps its owner and mode.
constexpr std::array kFileCapabilities = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER};
constexpr const char* kPlugin = "/usr/sbin/podqos-nri";
constexpr const char* kKubelet = "/var/lib/kubelet";  // its root directory, unless told otherwise

/// Values of the command line options.
struct ConfigureOptions {
  std::string engine;
  std::string method;
  std::string root;
  std::string program;
  std::string engine_version;
  OutputOptions output;
  bool dry_run = false;
  bool undo = false;
  std::string restart;  ///< "", "yes" or "force"
};

/// The engine's program in the usual directories.
/// @return nullopt if it is not installed; kConflict if two different ones are, because which of
///         them runs, and what version it has, only the operator knows.
Result<std::optional<std::string>> find_program(const Engine& engine) {
  std::optional<std::string> found;
  struct stat first{};
  for (const char* directory : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}) {
    std::string path = cat(directory, engine.program);
    struct stat other{};
    if (::stat(path.c_str(), &other) != 0) continue;
    if (found && (other.st_ino != first.st_ino || other.st_dev != first.st_dev))
      return fail(ErrorCode::kConflict,
                  cat("found two binaries (", *found, ", ", path, "): choose one with --program"));
    if (found) continue;
    found = std::move(path);
    first = other;
  }
  return found;
}

/// What the program's --version says.
Result<Version> version_of(const std::string& program) {
  PODQOS_ASSIGN(const auto end, run_program({program, "--version"}));
  const auto version = parse_version(end.output);
  if (end.status == 0 && version) return *version;
  return fail(ErrorCode::kUnsupported, cat(program, " --version says \"", printable(end.output),
                                           "\": no version found; set it with --engine-version"));
}

/// Finds the engine's program and its version.
Status find_engine(const ConfigureOptions& options, Registration& registration) {
  const Engine& engine = *registration.engine;
  registration.version = parse_version(options.engine_version);
  if (!options.engine_version.empty() && !registration.version)
    return fail(ErrorCode::kInvalidArgument,
                cat("--engine-version: expected a version such as 1.7, found \"",
                    printable(options.engine_version), "\""));
  if (!options.root.empty()) return {};
  registration.program = options.program;
  if (options.program.empty()) {
    PODQOS_ASSIGN(registration.program, find_program(engine));
  }
  if (registration.version || (!registration.program && options.undo)) return {};
  if (!registration.program)
    return fail(ErrorCode::kNotFound,
                cat(engine.title, " is not installed: no ", engine.program,
                    " in /usr/bin, /usr/sbin, /usr/local/bin or /usr/local/sbin; to configure it "
                    "beforehand, set --engine-version"));
  const auto version = version_of(*registration.program);
  if (version) registration.version = *version;
  return version || options.undo ? Status{} : fail(version.error());
}

/// Does all that was asked for. @return what is to be printed.
Result<std::string> configure(const ConfigureOptions& options, Registration& registration) {
  PODQOS_TRY(find_engine(options, registration));
  registration.plugin_installed = registration.files.exists(kPlugin);
  registration.kubelet = registration.files.exists(kKubelet);
  const auto* method = std::ranges::find(kMethods, options.method);
  registration.method = method == kMethods.end() ? best_method(registration)
                                                 : static_cast<Method>(method - kMethods.begin());
  if (auto planned = plan(registration); !planned)
    return fail(options.root.empty() ? planned.error()
                                     : std::move(planned).error().with_context(options.root));
  if (!registration.restart_harm.empty()) {
    if (registration.restart == Restart::kHarmless)
      return fail(ErrorCode::kConflict,
                  cat(registration.restart_harm, ", or use --restart=force; nothing was changed"));
    registration.notes.push_back(registration.restart_harm);
  }
  const bool json = options.output.is_json();
  if (options.dry_run)
    return json ? format_json(registration, WithDiff::kYes)
                : format_dry_run(registration, options.output.mode());
  PODQOS_TRY(registration.files.apply(registration.changes));
  // The programs of another root are not run.
  if (options.root.empty()) PODQOS_TRY(activate(registration, run_program));
  return json ? format_json(registration, WithDiff::kNo) : format_text(registration);
}

Result<int> run_configure(ConfigureOptions& options) {
  while (options.root.ends_with('/'))
    options.root.pop_back();
  // Users other than root read the files of engines, too.
  ::umask(S_IWGRP | S_IWOTH);
  // No system call filter: the engine's programs, which are executed, would inherit it.
  PODQOS_TRY(sys::keep_capabilities(kFileCapabilities));
  Registration registration{.engine = &*std::ranges::find(engines(), options.engine, &Engine::name),
                            .undo = options.undo,
                            .restart = options.restart.empty()      ? Restart::kNo
                                       : options.restart == "force" ? Restart::kForce
                                                                    : Restart::kHarmless,
                            .root = options.root};
  PODQOS_ASSIGN(const std::string text, configure(options, registration));
  const int status = finish(print(text));
  const auto& failure = registration.outcome.failure;
  return failure ? log_failure(*failure) : status;
}

/// The options that choose what is done.
void add_choices(CLI::App& sub, ConfigureOptions& options) {
  std::vector<std::string> names;
  for (const Engine& engine : engines())
    names.emplace_back(engine.name);
  sub.add_option("ENGINE", options.engine, "containerd, crio, podman or docker")
      ->required()
      ->check(CLI::IsMember(names));
  CLI::Option* method =
      sub.add_option("--method", options.method,
                     "wrapper, nri or hooks; default: nri if this version has it and podqos-nri "
                     "is installed, hooks for Podman, else wrapper")
          ->check(CLI::IsMember({"wrapper", "nri", "hooks"}));
  CLI::Option* dry_run = sub.add_flag("-n,--dry-run", options.dry_run,
                                      "Print the changes as a unified diff without making them");
  sub.add_flag("--undo", options.undo, "Remove podqos from ENGINE's configuration")
      ->excludes(method);
  CLI::Option* restart = sub.add_flag(
      "--restart{yes}", options.restart,
      "Have the engine read what has changed: reload Docker, restart others, and enable "
      "podqos-nri.service if NRI was chosen; --restart=force also where containers stop");
  restart->check(CLI::IsMember({"yes", "force"}));
  restart->excludes(dry_run);
  CLI::Option* program =
      sub.add_option("--program", options.program,
                     "Path of the engine's binary; default: searched in /usr and /usr/local");
  sub.add_option("--root", options.root, "Edit files below DIR instead of / (for images)")
      ->check(CLI::ExistingDirectory)
      ->excludes(restart)
      ->excludes(program);
}

}  // namespace

Command add_configure(CLI::App& app) {
  auto options = std::make_shared<ConfigureOptions>();
  CLI::App* sub = app.add_subcommand(
      "configure", "Register podqos with containerd, CRI-O, Podman or Docker, or undo it");
  add_choices(*sub, *options);
  sub->add_option("--engine-version", options->engine_version,
                  "Version of ENGINE; default: what its program says");
  add_coloured_output(*sub, options->output);
  return {.app = sub, .run = [options] { return run_configure(*options); }};
}

}  // namespace podqos::ctl
