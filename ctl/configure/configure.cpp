#include <linux/capability.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/sys/sandbox.h"
#include "ctl/cli/command.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

/// An engine's file may belong to another user, and keeps its owner and mode.
constexpr std::array kFileCapabilities = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER};

/// Values of the command line options.
struct ConfigureOptions {
  Setup setup;
  std::string engine;
  std::string method;
  std::string engine_version;
  std::string restart;  ///< "", "yes" or "force"
  OutputOptions output;
};

/// Finds the engine's program and its version.
Status find_engine(const std::string& version, Setup& setup) {
  setup.version = parse_version(version);
  if (!version.empty() && !setup.version)
    return refuse("--engine-version: expected a version such as 1.7, found \"", printable(version),
                  "\"");
  if (!setup.root.empty()) return {};
  if (!setup.program) {
    PODQOS_ASSIGN(setup.program, find_program(*setup.engine));
  }
  if (setup.version || (!setup.program && setup.undo)) return {};
  if (!setup.program)
    return refuse(setup.engine->title, " is not installed: no ", setup.engine->program,
                  " in /usr/bin, /usr/sbin, /usr/local/bin or /usr/local/sbin; to configure it "
                  "beforehand, set --engine-version");
  const auto said = run_program({*setup.program, "--version"});
  if (said) setup.version = parse_version(*said);
  if (setup.version || setup.undo) return {};
  return refuse(*setup.program, " --version says \"",
                printable(said ? *said : said.error().message),
                "\": no version found; set it with --engine-version");
}

/// The method that was asked for, or the best one.
Method method_of(const ConfigureOptions& options) {
  if (options.method.empty())
    return options.setup.set_default ? Method::kWrapper : best_method(options.setup);
  return static_cast<Method>(std::ranges::find(kMethods, options.method) - kMethods.begin());
}

/// Writes the planned files, and has the engine judge them.
Status carry_out(Setup& setup, const Run& run) {
  // Otherwise files would stay that the engine refuses, and with which it does not start again.
  if (setup.changed()) block_signals();
  PODQOS_TRY(setup.files.apply(setup.changes));
  // The programs of another root are not run.
  return setup.root.empty() ? activate(setup, run) : Status{};
}

/// Does all that was asked for. @return what is to be printed.
Result<std::string> configure(ConfigureOptions& options, const Run& run) {
  Setup& setup = options.setup;
  while (setup.root.ends_with('/'))
    setup.root.pop_back();
  setup.files = EngineFiles{setup.root};
  setup.engine = &*std::ranges::find(engines(), options.engine, &Engine::name);
  if (!options.restart.empty())
    setup.restart = options.restart == "force" ? Restart::kForce : Restart::kHarmless;
  PODQOS_TRY(find_engine(options.engine_version, setup));
  setup.plugin_installed = setup.files.exists(kPlugin);
  setup.method = method_of(options);
  if (!setup.config.empty() && !setup.files.exists(setup.config))
    return fail(ErrorCode::kNotFound, cat("--config: ", setup.root, setup.config, " not found"));
  if (auto planned = plan(setup); !planned)
    return fail(setup.root.empty() ? planned.error()
                                   : std::move(planned).error().with_context(setup.root));
  if (!setup.dry_run) PODQOS_TRY(carry_out(setup, run));
  return options.output.is_json() ? format_json(setup) : format_text(setup, options.output.mode());
}

Result<int> run_configure(ConfigureOptions& options) {
  // No system call filter: the engine's programs, which are executed, would inherit it.
  PODQOS_TRY(sys::keep_capabilities(kFileCapabilities));
  const Run run = [](const std::vector<std::string>& argv) { return run_program(argv); };
  PODQOS_ASSIGN(const std::string text, configure(options, run));
  const int status = print(text);
  return options.setup.failure ? log_failure(*options.setup.failure) : status;
}

}  // namespace

void add_configure(Cli& cli) {
  auto options = std::make_shared<ConfigureOptions>();
  Setup& setup = options->setup;
  CLI::App* sub = cli.app.add_subcommand(
      "configure", "Register podqos with containerd, CRI-O, Podman or Docker, or undo it");
  sub->footer("");
  sub->add_option("ENGINE", options->engine, "containerd, crio, podman or docker")
      ->required()
      ->check(CLI::IsMember({"containerd", "crio", "podman", "docker"}));
  CLI::Option* method =
      sub->add_option("--method", options->method,
                      "wrapper, nri or hooks; default: nri if this version has it and podqos-nri "
                      "is installed, hooks for Podman, else wrapper")
          ->check(CLI::IsMember({"wrapper", "nri", "hooks"}));
  CLI::Option* dry_run = sub->add_flag("-n,--dry-run", setup.dry_run,
                                       "Print the changes as a unified diff without making them");
  sub->add_flag("--undo", setup.undo, "Remove podqos from ENGINE's configuration")
      ->excludes(method);
  CLI::Option* restart =
      sub->add_flag("--restart{yes}", options->restart,
                    "Have the engine read what has changed: reload Docker, restart others, and "
                    "enable podqos-nri.service if NRI was chosen; --restart=force also where "
                    "containers stop")
          ->check(CLI::IsMember({"yes", "force"}))
          ->excludes(dry_run);
  CLI::Option* program =
      sub->add_option("--program", setup.program,
                      "Path of the engine's binary; default: searched in /usr and /usr/local")
          ->type_name("FILE");
  sub->add_option("--config", setup.config,
                  "The engine's configuration file, if it is elsewhere, as that of K3s; its "
                  "service is left to you")
      ->type_name("FILE")
      ->excludes(restart)
      ->check([](const std::string& path) {
        return path.starts_with('/') ? "" : "expected an absolute path";
      });
  sub->add_flag("--set-as-default", setup.set_default,
                "Make podqos-runtime the runtime of all containers that ask for none; implies "
                "--method wrapper")
      ->excludes("--undo");
  sub->add_option("--root", setup.root, "Edit files below DIR instead of / (for images)")
      ->check(CLI::ExistingDirectory)
      ->check([](const std::string& path) {
        std::error_code error;
        return std::filesystem::equivalent(path, "/", error) ? "expected a tree other than /" : "";
      })
      ->excludes(restart)
      ->excludes(program);
  sub->add_option("--engine-version", options->engine_version,
                  "Version of ENGINE; default: what its program says");
  add_coloured_output(*sub, options->output);
  sub->callback([options, &cli] { cli.status = run_configure(*options); });
}

}  // namespace podqos::ctl
