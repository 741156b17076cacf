#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>

#include "common/app/admission.h"
#include "common/app/configuration.h"
#include "common/app/place.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/annotations.h"
#include "common/core/cgroups/naming.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "hook/lifecycle.h"
#include "hook/programs.h"

namespace podqos::hook {

namespace {

constexpr std::string_view kUsage =
    "usage: podqos-hook [--config FILE] createRuntime|prestart|poststop|precreate\n"
    "       podqos-hook --help | --version\n"
    "\n"
    "OCI hook that gives each pod its Kubernetes QoS cgroups. The container runtime\n"
    "runs it:\n"
    "  createRuntime  confirms or registers the container; the OCI state is read\n"
    "                 from stdin\n"
    "  prestart       the same, for runtimes that support only this older stage\n"
    "  poststop       removes the container from its pod, and releases the pod after\n"
    "                 its last container\n"
    "  precreate      Podman's stage: config.json is read from stdin, the edited one\n"
    "                 written to stdout\n"
    "\n"
    "  --config FILE  read only this configuration (default: /etc/podqos/podqos.json\n"
    "                 and conf.d)\n"
    "\n"
    "Exit status: 0 done or nothing to do, 1 the container is refused, 2 usage error.\n"
    "See podqos-hook(8), podqos.json(5).\n";

/// The parsed command line.
struct Arguments {
  std::optional<std::string> config;
  std::string_view stage;
};

/// Parses the command line; nullopt for an unknown option or a second stage.
std::optional<Arguments> parse_arguments(std::span<const char* const> args) {
  Arguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view word = args[i];
    if (word == "--config" && i + 1 < args.size()) {
      out.config = args[++i];
    } else if (word.starts_with("--config=")) {
      out.config = std::string{word.substr(std::string_view{"--config="}.size())};
    } else if (out.stage.empty() &&
               (word == "--help" || word == "--version" || !word.starts_with("-"))) {
      out.stage = word;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

/// Reports an error.
/// @return the exit status of the hook.
int report(app::Log& log, std::string_view stage, const core::Settings& settings,
           const Error& error) {
  const core::EventKind kind = core::kind_of_failure(settings, error);
  report_failure(log, "podqos-hook", {.kind = kind, .text = error.message}, cat(stage, ": "));
  return kind == core::EventKind::kRefused ? 1 : 0;
}

/// What poststop waits for ends before the hook is ended itself (set_deadline()), so that it can
/// report.
constexpr std::chrono::milliseconds kPatience{25'000};

app::Timeouts timeouts_within(std::chrono::milliseconds patience) {
  return {.deadline = app::Timeouts::Clock::now() + patience};
}

/// createRuntime, prestart and poststop.
/// @param state  the OCI state from standard input
/// @param end  of all waits, however long the state took to arrive
Status run_state_stage(std::string_view stage, const core::Settings& settings, app::Log& log,
                       const Result<std::string>& state, app::Timeouts::Clock::time_point end) {
  PODQOS_TRY(enter_sandbox(settings));
  const bool ends = stage == "poststop";
  app::Timeouts timeouts = timeouts_within(ends ? kPatience : app::start_time_limit(settings));
  timeouts.deadline = std::min(timeouts.deadline, end);
  if (!state) return std::unexpected{state.error()};
  const Pid caller{::getppid()};
  return ends ? poststop(settings, log, *state, caller, timeouts)
              : create_runtime(settings, log, *state, caller, timeouts);
}

/// The container id, which Podman does not pass to precreate: it is taken from linux.cgroupsPath,
/// or from the working directory ".../<id>/userdata".
/// @return "" if neither names it.
std::string podman_id(const std::optional<std::string>& cgroups_path, std::string_view directory) {
  if (cgroups_path) {
    const auto unit = core::parse_systemd_cgroups_path(*cgroups_path);
    if (unit && unit->prefix == "libpod") return unit->name;
    const std::string_view id = codec::podman_container_id(*cgroups_path);
    if (!id.empty()) return std::string{id};
  }
  std::string_view cwd = directory;
  if (!cwd.ends_with("/userdata")) return {};
  cwd.remove_suffix(std::string_view{"/userdata"}.size());
  return std::string{cwd.substr(cwd.rfind('/') + 1)};
}

/// Places the container and edits its config.json.
/// @return the bytes for standard output: `text` itself for a container that podqos does not
/// manage.
Result<std::string> edit_precreate(const core::Settings& settings, app::Log& log,
                                   std::string_view text, codec::HookRegistration hooks) {
  PODQOS_TRY(enter_sandbox(settings));
  PODQOS_ASSIGN(const auto config, codec::OciConfig::parse(text));
  const std::string directory = working_directory();
  const std::string id = podman_id(config.facts.cgroups_path, directory);
  if (id.empty()) {
    // An id is required only for a container that podqos manages.
    PODQOS_ASSIGN(const auto request,
                  app::admission_request(config.facts, settings, config.facts.cgroups_path));
    if (!request) return std::string{text};
    return fail(ErrorCode::kInvalidArgument,
                "precreate: neither linux.cgroupsPath (…/libpod-ID) nor the working directory "
                "(…/ID/userdata) names "
                "the container: run this stage from Podman only");
  }
  auto placed =
      app::place(settings, log,
                 {.id = id,
                  // Podman runs the hook in the future bundle directory, older versions do not.
                  // A wrapper that runs after this stage must recognise the container by it.
                  .bundle = directory.ends_with(cat("/", id, "/userdata")) ? directory : "",
                  .config = text,
                  .creator = Pid{::getppid()},
                  .driver = std::nullopt,
                  .hooks = std::move(hooks),
                  .timeouts = timeouts_within(app::start_time_limit(settings))});
  if (!placed)
    return fail(std::move(placed).error().with_context(cat("container ", printable(id))));
  return *placed ? std::move(**placed) : std::string{text};
}

/// Larger than any input that podqos parses: precreate must write again what it reads.
constexpr std::size_t kMaxInput = 8 * codec::kMaxConfigSize;

/// precreate: config.json from standard input, the edited one to standard output. A container that
/// does not concern podqos is echoed unchanged, and so is one for which it fails under onError
/// "admit".
int run_precreate(const core::Settings& settings, app::Log& log, const Result<std::string>& text,
                  codec::HookRegistration hooks) {
  if (!text) {
    // An incomplete config.json must not be echoed: Podman would start a container from it.
    report(log, "precreate", settings, text.error());
    return 1;
  }
  if (!app::may_concern(*text, settings)) return sys::write_all(STDOUT_FILENO, *text) ? 0 : 1;
  const auto edited = edit_precreate(settings, log, *text, std::move(hooks));
  if (!edited && report(log, "precreate", settings, edited.error()) != 0) return 1;
  return sys::write_all(STDOUT_FILENO, edited ? *edited : *text) ? 0 : 1;
}

/// A timer ends the hook then, whatever it waits for. Its registrations have no `timeout`: with one
/// crun waits for SIGCHLD (src/libcrun/utils.c, run_process_with_stdin_timeout_envp), and when it
/// misses the signal of a hook that has ended, it fails the container at the end of that time.
constexpr time_t kDeadlineSeconds = 30;

void set_deadline() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  // No runtime can have blocked or ignored it: crun starts hooks with all signals blocked.
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  const itimerspec time{.it_interval = {}, .it_value = {.tv_sec = kDeadlineSeconds, .tv_nsec = 0}};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
    static_cast<void>(::timer_settime(timer, 0, &time, nullptr));
}

/// How long the runtime may write nothing of the state and not close standard input. A busy machine
/// may take longer for all of it; then the hook waits, for without it crun fails the container.
constexpr std::chrono::seconds kForInput{4};

/// @param config_file  the file of `--config`
int run_stage(std::string_view stage, const std::optional<std::string>& config_file) {
  // precreate has the `timeout` of its registration, which Podman itself keeps.
  const bool edits = stage == "precreate";
  const auto end = app::Timeouts::Clock::now() + kPatience;
  if (!edits) set_deadline();
  // Every stage reads its input to the end, also one that has nothing to do: crun fails a container
  // whose hook ends before its state is written (EPIPE; src/libcrun/utils.c,
  // run_process_with_stdin_timeout_envp).
  const auto input = edits ? sys::read_all(STDIN_FILENO, kMaxInput, "config.json on stdin")
                           : sys::read_all(STDIN_FILENO, kMaxInput, "OCI state on stdin",
                                           sys::FileEnd::kEmptyRead, kForInput);
  const auto configuration = app::inspect_configuration(config_file);
  const bool known = configuration.source != app::SettingsSource::kReadable;
  const core::Settings settings = known ? configuration.settings : core::Settings{};
  app::Log log{"podqos-hook", settings};
  if (!known) log.use_existing_state();
  // A caller such as a rootless engine.
  const bool owned = cgroup::owns_host();
  if (!owned) log.debug(cat(stage, ": not managed, podqos is not root on the host"));
  if (owned && known) app::log_errors(configuration, log);
  if (owned && !known)
    report(log, stage, settings,
           {ErrorCode::kInvalidArgument, app::describe_errors(configuration)});
  if (!owned || !known) return !edits || (input && sys::write_all(STDOUT_FILENO, *input)) ? 0 : 1;
  if (edits) return run_precreate(settings, log, input, own_hooks(config_file));
  const Status done = run_state_stage(stage, settings, log, input, end);
  const int status = done ? 0 : report(log, stage, settings, done.error());
  // At poststop the container has already stopped: there is nothing to refuse.
  return stage == "poststop" ? 0 : status;
}

}  // namespace

int run_hook(std::span<const char* const> args) {
  const auto arguments = parse_arguments(args);
  const std::string_view stage = arguments ? arguments->stage : std::string_view{};
  if (stage == "--help") return sys::write_all(STDOUT_FILENO, kUsage) ? 0 : 1;
  if (stage == "--version")
    return sys::write_all(STDOUT_FILENO, "podqos-hook " PODQOS_VERSION "\n") ? 0 : 1;
  if (has_word("createRuntime prestart poststop precreate", stage))
    return run_stage(stage, arguments->config);
  static_cast<void>(sys::write_all(STDERR_FILENO, kUsage).has_value());
  return 2;
}

}  // namespace podqos::hook
