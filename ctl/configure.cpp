#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/kubelet.h"
#include "ctl/command.h"
#include "ctl/configure/docker_service.h"
#include "ctl/configure/engine.h"
#include "ctl/configure/engine_service.h"
#include "ctl/configure/files.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/program.h"
#include "ctl/configure/report.h"
#include "ctl/configure/session.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

/// An engine's file may belong to another user, and keeps its owner and mode.
constexpr std::array kKeptCapabilities = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER};
constexpr const char* kPlugin = "/usr/sbin/podqos-nri";

/// Values of the command line options.
struct ConfigureOptions {
  std::string engine;
  std::string way;
  std::string root;
  std::string program;
  std::string engine_version;
  std::string output = "text";
  std::string colour = "auto";
  bool dry_run = false;
  bool undo = false;
  std::string restart;  ///< "", "yes" or "force"

  [[nodiscard]] Restart restart_choice() const {
    if (restart.empty()) return Restart::kNo;
    return restart == "force" ? Restart::kForce : Restart::kHarmless;
  }
};

/// What is known before any file is read.
struct EngineProgram {
  Engine engine = Engine::kContainerd;
  std::optional<std::string> path;  ///< nullopt if it is not installed, and with --root
  std::optional<Version> version;
};

/// Finds the engine's program and its version.
Result<EngineProgram> find_engine(const ConfigureOptions& options) {
  EngineProgram found{.engine = parse_engine(options.engine).value_or(Engine::kContainerd),
                      .path = std::nullopt,
                      .version = std::nullopt};
  if (!options.engine_version.empty()) {
    found.version = parse_version(options.engine_version);
    if (!found.version)
      return fail(ErrorCode::kInvalidArgument,
                  cat("--engine-version: expected a version such as 1.7, found \"",
                      printable(options.engine_version), "\""));
  }
  if (!options.root.empty()) return found;
  if (!options.program.empty()) {
    found.path = options.program;
  } else {
    auto path = find_program(found.engine);
    if (!path) return fail(std::move(path).error());
    found.path = std::move(*path);
  }
  if (found.version) return found;
  if (!found.path && options.undo) return found;
  if (!found.path)
    return fail(ErrorCode::kNotFound,
                cat(facts_of(found.engine).title, " is not installed: there is no ",
                    facts_of(found.engine).program,
                    " in /usr/bin, /usr/sbin, /usr/local/bin or /usr/local/sbin; to configure it "
                    "beforehand, give --engine-version"));
  const auto version = version_of(*found.path);
  if (version) found.version = *version;
  if (!version && !options.undo) return fail(version.error());
  return found;
}

/// What the plan has to know of the node.
NodeFacts read_node(const EngineFiles& files, const std::string& root) {
  const bool has_kubelet = cgroup::find_kubelet(root).has_value();
  return {.plugin_installed = files.exists(kPlugin), .kubelet = has_kubelet};
}

/// Plans what the options ask for.
Result<ConfigureReport> make_report(const ConfigureOptions& options, const EngineProgram& program,
                                    const EngineFiles& files) {
  ConfigureReport report{.request = {.engine = program.engine,
                                     .way = Way::kWrapper,
                                     .version = program.version,
                                     .node = read_node(files, options.root)},
                         .undo = options.undo,
                         .root = options.root,
                         .plan = {},
                         .last_changed = {},
                         .outcome = {}};
  ConfigureRequest& request = report.request;
  request.way =
      parse_way(options.way)
          .value_or(best_way(request.engine, request.version, request.node.plugin_installed));
  auto plan = options.undo ? plan_removal(request.engine, files.source())
                           : plan_registration(request, files.source());
  if (!plan) return fail(std::move(plan).error());
  if (!plan->restart_harm.empty() && options.restart_choice() == Restart::kHarmless)
    return fail(ErrorCode::kConflict,
                cat(plan->restart_harm, ", or use --restart=force; nothing was changed"));
  if (!plan->restart_harm.empty()) plan->notes.push_back(plan->restart_harm);
  report.plan = std::move(*plan);
  return report;
}

/// The child: everything that has to do with files.
int run_files(const ConfigureOptions& options, const EngineProgram& program,
              const FilesProcess& process) {
  if (auto status = narrow(kKeptCapabilities, sys::Filter::kConfigure); !status)
    return log_failure(status.error());
  EngineFiles files{options.root};
  auto report = make_report(options, program, files);
  if (!report && !options.root.empty())
    return log_failure(std::move(report).error().with_context(options.root));
  if (!report) return log_failure(report.error());
  const bool json = options.output == "json";
  if (options.dry_run) {
    return finish(print(json ? format_json(*report, WithDiff::kYes)
                             : format_dry_run(*report, colour_mode(options.colour))));
  }
  FilesDone done{.changed = !report->plan.changes.empty(), .way = report->request.way};
  if (const auto last = files.last_change(report->plan.registered_in)) {
    report->last_changed = last->path;
    done.last_change = last->time;
  }
  if (auto applied = files.apply(report->plan); !applied) return log_failure(applied.error());
  const Verdict verdict = process.report(done);
  if (!verdict.keep) {
    if (auto undone = files.roll_back(); !undone) return log_failure(undone.error());
    return kRefused;
  }
  report->outcome = verdict.outcome;
  return finish(print(json ? format_json(*report, WithDiff::kNo) : format_text(*report)));
}

/// Has the engine check its configuration. @return false if it has no check.
Result<bool> check(const EngineProgram& program) {
  if (!program.path) return false;
  const auto command = check_command(program.engine, *program.path, program.version);
  if (!command) return false;
  const auto end = run_program(*command);
  if (!end) return fail(end.error());
  if (end->status == 0) return true;
  return fail(
      ErrorCode::kInvalidArgument,
      cat("`", join(*command, " "), "` refuses the configuration: ", printable(end->output, 2000)));
}

/// How long Docker may take to read its configuration after a reload.
constexpr std::chrono::seconds kReloadPatience{5};

/// How long podqos-nri may take to find an engine that has started: it tries at least every 5 s.
constexpr std::chrono::seconds kPluginPatience{10};

/// The client of Docker, which says what the daemon knows.
std::optional<std::string> find_docker_client() {
  for (const char* path : {"/usr/bin/docker", "/usr/local/bin/docker"})
    if (::access(path, X_OK) == 0) return path;
  return std::nullopt;
}

/// The parent: all that executes other programs.
class Supervisor {
 public:
  Supervisor(const ConfigureOptions& options, const EngineProgram& program)
      : options_(options),
        program_(program),
        service_(facts_of(program.engine).service),
        engine_(run_program, service_, kPluginPatience) {}

  /// Checks, has the engine read its configuration, and starts or stops the plugin.
  /// @return the exit status.
  int run(FilesProcessHandle& files, const FilesDone& done) {
    Verdict verdict{.keep = true, .outcome = {}};
    verdict.outcome.stale = is_stale(done);
    const bool restarts = options_.restart_choice() != Restart::kNo;
    if (done.changed || (verdict.outcome.stale && restarts)) {
      auto checked = check(program_);
      if (!checked && options_.undo) return keep_undone(files, checked.error());
      if (!checked) return give_up(files, checked.error());
      verdict.outcome.checked = *checked;
    }
    if (auto updated = update_service(done, verdict.outcome); !updated)
      return restart_with_old_files(files, updated.error());
    const Status plugin = update_plugin(done, verdict.outcome);
    const int status = files.finish(verdict);
    return plugin ? status : log_failure(plugin.error());
  }

 private:
  /// Whether containerd or CRI-O has run since before a file changed that is right by now. A plugin
  /// that is connected shows that NRI is on.
  [[nodiscard]] bool is_stale(const FilesDone& done) const {
    if (service_.empty() || program_.engine == Engine::kDocker || done.changed) return false;
    if (!done.last_change || !engine_.is_older_than(*done.last_change)) return false;
    return options_.undo || done.way != Way::kNri || !engine_.has_plugin();
  }

  /// Has the engine read what has changed, as far as the options allow.
  Status update_service(const FilesDone& done, ConfigureOutcome& outcome) const {
    const Restart restart = options_.restart_choice();
    if (program_.engine == Engine::kDocker) {
      const DockerService docker{run_program, find_docker_client(), kReloadPatience};
      auto updated = docker.update(!options_.undo, done.changed, restart);
      if (!updated) return fail(std::move(updated).error());
      outcome.docker = *updated;
      outcome.restarted = updated->restarted;
      outcome.stale = updated->stale;
      return {};
    }
    // A restart of containerd or CRI-O costs no container anything.
    if (restart == Restart::kNo || service_.empty() || !(done.changed || outcome.stale)) return {};
    outcome.restarted = true;
    outcome.stale = false;
    return ask_service_manager({"restart", service_});
  }

  /// Starts the plugin if NRI was chosen and waits until it is connected; stops it with --undo.
  Status update_plugin(const FilesDone& done, ConfigureOutcome& outcome) const {
    if (options_.undo) {
      const bool serves = program_.path && (program_.engine == Engine::kContainerd ||
                                            program_.engine == Engine::kCrio);
      if (!serves || !plugin_is("is-active")) return {};
      auto disabled = ask_service_manager({"disable", "--now", kPluginUnit});
      outcome.plugin_disabled = disabled.has_value();
      return disabled;
    }
    if (done.way != Way::kNri) return {};
    outcome.plugin_ready = plugin_is("is-active") && plugin_is("is-enabled");
    if (options_.restart_choice() == Restart::kNo) return {};
    if (!outcome.plugin_ready) {
      if (auto enabled = ask_service_manager({"enable", "--now", kPluginUnit}); !enabled)
        return enabled;
      outcome.plugin_enabled = true;
    }
    // An engine that does not run finds the plugin when it starts.
    if (!engine_.process()) return {};
    auto connected = engine_.wait_for_plugin();
    outcome.plugin_connected = connected.has_value();
    return connected;
  }

  static bool plugin_is(const char* question) {
    return ask_service_manager({question, "--quiet", kPluginUnit}).has_value();
  }

  /// Has the files restored after a start that has failed, and the engine started with them.
  int restart_with_old_files(FilesProcessHandle& files, const Error& error) {
    const int status = give_up(files, error);
    // systemd counts the starts that have failed, and may refuse one more.
    if (auto reset = ask_service_manager({"reset-failed", service_}); !reset)
      log_failure(reset.error());
    // A reload that systemd refused has changed nothing, and a restart may stop containers.
    if (program_.engine == Engine::kDocker &&
        ask_service_manager({"is-active", "--quiet", service_}))
      return status;
    const auto again = ask_service_manager({"restart", service_});
    return again ? status : log_failure(again.error());
  }

  /// Without podqos's lines the engine has another reason to refuse its configuration.
  static int keep_undone(FilesProcessHandle& files, const Error& error) {
    static_cast<void>(files.finish({.keep = true, .outcome = {}}));
    warn(cat(error.message, "; podqos's lines are removed all the same, nothing was restarted"));
    return kRefused;
  }

  /// Has the files restored.
  static int give_up(FilesProcessHandle& files, const Error& error) {
    const int status = files.finish({.keep = false, .outcome = {}});
    warn(cat(error.message, "; the files are as they were"));
    return status;
  }

  const ConfigureOptions& options_;
  const EngineProgram& program_;
  std::string service_;
  EngineService engine_;
};

int run_configure(ConfigureOptions& options) {
  while (options.root.ends_with('/'))
    options.root.pop_back();
  // Users other than root read the files of engines, too.
  ::umask(S_IWGRP | S_IWOTH);
  const auto program = find_engine(options);
  if (!program) return log_failure(program.error());
  auto files = FilesProcessHandle::start([&options, &program](const FilesProcess& process) {
    return run_files(options, *program, process);
  });
  if (!files) return log_failure(files.error());
  const auto done = files->wait_for_files();
  if (!done) return files->wait();
  // The programs of another root are not run.
  if (!options.root.empty()) return files->finish({.keep = true, .outcome = {}});
  return Supervisor{options, *program}.run(*files, *done);
}

/// The options that choose what is done.
void add_choices(CLI::App& sub, ConfigureOptions& options) {
  std::vector<std::string> names;
  for (const EngineFacts& facts : engines())
    names.emplace_back(facts.name);
  sub.add_option("ENGINE", options.engine, "containerd, crio, podman or docker")
      ->required()
      ->check(CLI::IsMember(names));
  CLI::Option* way =
      sub.add_option("--way", options.way,
                     "wrapper, nri or hooks; default: nri if this version has it and podqos-nri "
                     "is installed, hooks for Podman, else wrapper")
          ->check(CLI::IsMember({"wrapper", "nri", "hooks"}));
  CLI::Option* dry_run = sub.add_flag("-n,--dry-run", options.dry_run,
                                      "Print the changes as a unified diff without making them");
  sub.add_flag("--undo", options.undo, "Remove all that this command has ever written for ENGINE")
      ->excludes(way);
  CLI::Option* restart = sub.add_flag(
      "--restart{yes}", options.restart,
      "Have the engine read what has changed: reload Docker, restart others, and enable "
      "podqos-nri.service if NRI was chosen; --restart=force also where containers stop");
  restart->check(CLI::IsMember({"yes", "force"}));
  restart->excludes(dry_run);
  CLI::Option* program =
      sub.add_option("--program", options.program,
                     "The engine's program, if there are several or it is elsewhere");
  sub.add_option("--root", options.root, "Configure the tree in this directory instead of /")
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
  sub->add_option("-o,--output", options->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  sub->add_option("--color", options->colour, "auto (default), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  return {.app = sub, .run = [options] { return run_configure(*options); }};
}

}  // namespace podqos::ctl
