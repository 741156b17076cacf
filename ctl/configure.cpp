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
#include "common/sys/sandbox.h"
#include "ctl/command.h"
#include "ctl/configure/engine.h"
#include "ctl/configure/files.h"
#include "ctl/configure/plan.h"
#include "ctl/configure/program.h"
#include "ctl/configure/report.h"
#include "ctl/configure/service.h"
#include "ctl/table.h"

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

  [[nodiscard]] Restart restart_choice() const {
    if (restart.empty()) return Restart::kNo;
    return restart == "force" ? Restart::kForce : Restart::kHarmless;
  }
};

/// Finds the engine's program and its version.
Status find_engine(const ConfigureOptions& options, ConfigureRequest& request) {
  if (!options.engine_version.empty()) {
    request.version = parse_version(options.engine_version);
    if (!request.version)
      return fail(ErrorCode::kInvalidArgument,
                  cat("--engine-version: expected a version such as 1.7, found \"",
                      printable(options.engine_version), "\""));
  }
  if (!options.root.empty()) return {};
  if (!options.program.empty()) {
    request.program = options.program;
  } else {
    PODQOS_ASSIGN(request.program, find_program(request.engine));
  }
  if (request.version || (!request.program && options.undo)) return {};
  const EngineFacts& facts = facts_of(request.engine);
  if (!request.program)
    return fail(ErrorCode::kNotFound,
                cat(facts.title, " is not installed: no ", facts.program,
                    " in /usr/bin, /usr/sbin, /usr/local/bin or /usr/local/sbin; to configure it "
                    "beforehand, set --engine-version"));
  const auto version = version_of(*request.program);
  if (version) request.version = *version;
  return version || options.undo ? Status{} : fail(version.error());
}

/// Plans what the options ask for.
Result<ConfigureReport> make_report(const ConfigureOptions& options, const EngineFiles& files) {
  ConfigureReport report{
      .request = {.engine = parse_engine(options.engine).value_or(Engine::kContainerd),
                  .plugin_installed = files.exists(kPlugin),
                  .kubelet = files.exists(kKubelet)},
      .undo = options.undo,
      .root = options.root};
  ConfigureRequest& request = report.request;
  PODQOS_TRY(find_engine(options, request));
  request.method =
      parse_method(options.method)
          .value_or(best_method(request.engine, request.version, request.plugin_installed));
  auto planned = options.undo ? plan_removal(request.engine, files.source())
                              : plan_registration(request, files.source());
  if (!planned && !options.root.empty())
    return fail(std::move(planned).error().with_context(options.root));
  PODQOS_ASSIGN(report.plan, std::move(planned));
  ConfigurePlan& plan = report.plan;
  if (!plan.restart_harm.empty() && options.restart_choice() == Restart::kHarmless)
    return fail(ErrorCode::kConflict,
                cat(plan.restart_harm, ", or use --restart=force; nothing was changed"));
  if (!plan.restart_harm.empty()) plan.notes.push_back(plan.restart_harm);
  return report;
}

/// Has the engine check its configuration. @return false if it has no check.
Result<bool> check(const ConfigureRequest& request) {
  if (!request.program) return false;
  const auto command = check_command(request.engine, *request.program, request.version);
  if (!command) return false;
  PODQOS_ASSIGN(const auto end, run_program(*command));
  if (end.status == 0) return true;
  return fail(
      ErrorCode::kInvalidArgument,
      cat("`", join(*command, " "), "` rejected the configuration: ", printable(end.output, 2000)));
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

/// What follows once the files are as planned: all that asks the engine and the plugin.
class Activation {
 public:
  Activation(const ConfigureOptions& options, EngineFiles& files, ConfigureReport& report)
      : options_(options),
        request_(report.request),
        files_(files),
        report_(report),
        changed_(!report.plan.changes.empty()),
        service_(facts_of(report.request.engine).service),
        engine_(run_program, service_, kPluginPatience) {}

  /// Checks, has the engine read its configuration, and starts or stops the plugin.
  /// @param before  when the files were last changed before
  /// @return an error after which nothing is to be reported; the files are as they were.
  Status run(const std::optional<LastChange>& before) {
    ConfigureOutcome& outcome = report_.outcome;
    outcome.service.stale = is_stale(before);
    if (changed_ || (outcome.service.stale && options_.restart_choice() != Restart::kNo)) {
      auto checked = check(request_);
      // Without podqos's lines the engine has another reason to refuse its configuration.
      if (!checked && options_.undo) {
        outcome = {};
        later_ = Error{checked.error().code,
                       cat(checked.error().message, "; removed anyway; not restarted")};
        return {};
      }
      if (!checked) return roll_back(checked.error());
      outcome.checked = *checked;
    }
    if (auto updated = update_service(outcome); !updated)
      return restart_with_old_files(updated.error());
    if (auto plugin = options_.undo ? stop_plugin(outcome) : start_plugin(outcome); !plugin)
      later_ = std::move(plugin).error();
    return {};
  }

  /// What failed after the files were changed for good.
  [[nodiscard]] const std::optional<Error>& later() const { return later_; }

 private:
  /// Whether containerd or CRI-O has run since before a file changed that is right by now. A plugin
  /// that is connected shows that NRI is on.
  [[nodiscard]] bool is_stale(const std::optional<LastChange>& before) const {
    if (service_.empty() || request_.engine == Engine::kDocker || changed_) return false;
    if (!before || !engine_.is_older_than(before->time)) return false;
    return options_.undo || request_.method != Method::kNri || !engine_.has_plugin();
  }

  /// Has the engine read what has changed, as far as the options allow.
  Status update_service(ConfigureOutcome& outcome) const {
    const Restart restart = options_.restart_choice();
    if (request_.engine == Engine::kDocker) {
      const DockerService docker{run_program, find_docker_client(), kReloadPatience};
      PODQOS_ASSIGN(outcome.service, docker.update(!options_.undo, changed_, restart));
      return {};
    }
    // A restart of containerd or CRI-O costs no container anything.
    if (restart == Restart::kNo || service_.empty() || !(changed_ || outcome.service.stale))
      return {};
    outcome.service.restarted = true;
    outcome.service.stale = false;
    return systemd_.ask({"restart", service_});
  }

  Status stop_plugin(ConfigureOutcome& outcome) const {
    const bool serves = request_.program && (request_.engine == Engine::kContainerd ||
                                             request_.engine == Engine::kCrio);
    if (!serves || !systemd_.is("is-active", kPluginUnit)) return {};
    PODQOS_TRY(systemd_.ask({"disable", "--now", kPluginUnit}));
    outcome.plugin_disabled = true;
    return {};
  }

  /// Starts the plugin if NRI was chosen, and waits until it is connected.
  Status start_plugin(ConfigureOutcome& outcome) const {
    if (request_.method != Method::kNri) return {};
    outcome.plugin_ready =
        systemd_.is("is-active", kPluginUnit) && systemd_.is("is-enabled", kPluginUnit);
    if (options_.restart_choice() == Restart::kNo) return {};
    if (!outcome.plugin_ready) {
      PODQOS_TRY(systemd_.ask({"enable", "--now", kPluginUnit}));
      outcome.plugin_enabled = true;
    }
    // An engine that does not run finds the plugin when it starts.
    if (!engine_.process()) return {};
    PODQOS_TRY(engine_.wait_for_plugin());
    outcome.plugin_connected = true;
    return {};
  }

  /// Restores the files after a start that has failed, and has the engine started with them.
  Status restart_with_old_files(const Error& error) {
    Status failed = roll_back(error);
    // systemd counts the starts that have failed, and may refuse one more.
    if (auto reset = systemd_.ask({"reset-failed", service_}); !reset) log_failure(reset.error());
    // A reload that systemd refused has changed nothing, and a restart may stop containers.
    const bool lives = request_.engine == Engine::kDocker && systemd_.is("is-active", service_);
    if (lives) return failed;
    if (auto again = systemd_.ask({"restart", service_}); !again) log_failure(again.error());
    return failed;
  }

  /// Restores the files. @return the error, with what became of them.
  Status roll_back(const Error& error) {
    const auto undone = files_.roll_back();
    return fail(error.code,
                cat(error.message, "; ", undone ? "changes rolled back" : undone.error().message));
  }

  const ConfigureOptions& options_;
  const ConfigureRequest& request_;
  EngineFiles& files_;
  ConfigureReport& report_;
  bool changed_;
  std::string service_;
  EngineService engine_;
  ServiceManager systemd_{run_program};
  std::optional<Error> later_;
};

/// Does all that was asked for. @return what is to be printed; `later` is what failed nevertheless.
Result<std::string> configure(const ConfigureOptions& options, std::optional<Error>& later) {
  EngineFiles files{options.root};
  PODQOS_ASSIGN(auto report, make_report(options, files));
  const bool json = options.output.is_json();
  if (options.dry_run)
    return json ? format_json(report, WithDiff::kYes)
                : format_dry_run(report, options.output.mode());
  const auto before = files.last_change(report.plan.registered_in);
  if (before) report.last_changed = before->path;
  PODQOS_TRY(files.apply(report.plan));
  // The programs of another root are not run.
  if (options.root.empty()) {
    Activation activation{options, files, report};
    PODQOS_TRY(activation.run(before));
    later = activation.later();
  }
  return json ? format_json(report, WithDiff::kNo) : format_text(report);
}

Result<int> run_configure(ConfigureOptions& options) {
  while (options.root.ends_with('/'))
    options.root.pop_back();
  // Users other than root read the files of engines, too.
  ::umask(S_IWGRP | S_IWOTH);
  // No system call filter: the engine's programs, which are executed, would inherit it.
  PODQOS_TRY(sys::keep_capabilities(kFileCapabilities));
  std::optional<Error> later;
  PODQOS_ASSIGN(const std::string text, configure(options, later));
  const int status = finish(print(text));
  return later ? log_failure(*later) : status;
}

/// The options that choose what is done.
void add_choices(CLI::App& sub, ConfigureOptions& options) {
  std::vector<std::string> names;
  for (const EngineFacts& facts : engines())
    names.emplace_back(facts.name);
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
