#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "common/app/announced_update.h"
#include "common/app/configuration.h"
#include "common/app/place.h"
#include "common/base/text.h"
#include "common/cgroup/discovery.h"
#include "common/cgroup/node.h"
#include "common/codec/json_text.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "hook/bundle.h"
#include "hook/programs.h"
#include "hook/resources_input.h"
#include "hook/runtime_argv.h"
#include "hook/sandboxed_child.h"

namespace podqos::hook {

namespace {

using std::chrono::milliseconds;
using Clock = app::Timeouts::Clock;

constexpr const char* kProgram = "podqos-runtime";
/// What the child has left of its time once it has given up waiting.
constexpr milliseconds kReserve{500};

/// The first candidate that is an executable file and not this program under another name.
/// @return kNotFound if there is none; the error of stat(2) if a candidate cannot be examined.
Result<std::string> find_runtime(const std::vector<std::string>& candidates) {
  struct stat self{};
  const bool self_known = ::stat("/proc/self/exe", &self) == 0;
  std::string tried;
  for (const std::string& candidate : candidates) {
    tried += cat(tried.empty() ? "" : ", ", candidate);
    struct stat file{};
    if (::stat(candidate.c_str(), &file) != 0) {
      const int err = errno;
      if (err == ENOENT || err == ENOTDIR) continue;
      return fail_errno(err, cat("stat the container runtime ", candidate));
    }
    if (!S_ISREG(file.st_mode) || (file.st_mode & 0111U) == 0) continue;
    if (self_known && file.st_dev == self.st_dev && file.st_ino == self.st_ino) continue;
    return candidate;
  }
  return fail(ErrorCode::kNotFound,
              cat("no container runtime found (tried ", tried,
                  "): set its absolute path in \"runtimes\" of the configuration"));
}

/// What the handling of a call has at hand.
struct Context {
  const RuntimeCall& call;
  const core::Settings& settings;
  app::Log& log;
  const std::string& runtime;
  Pid self;  ///< becomes the runtime, which creates the container
};

/// Appends to the runtime's own log, where engines look for the reason of a failed create.
void report_to_engine(const RuntimeCall& call, std::string_view line) {
  if (call.log_file.empty()) return;
  const sys::UniqueFd fd{::open(call.log_file.c_str(),
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                0644)};
  if (!fd.valid()) return;
  const std::string message = codec::quote_json(cat(kProgram, ": ", line));
  const std::string record = call.log_json ? cat(R"({"level":"error","msg":)", message, "}\n")
                                           : cat("level=error msg=", message, "\n");
  static_cast<void>(sys::write_all(fd.get(), record).has_value());
}

/// Reports the error of a container. @return whether it may be created nevertheless.
bool admits(const Context& context, const Error& error) {
  const RuntimeCall& call = context.call;
  const std::string about =
      cat("container ", printable(call.id), ", bundle ", printable(call.bundle), ": ");
  const core::EventKind kind = core::kind_of_failure(context.settings, error);
  report_failure(context.log, kProgram,
                 {.kind = kind, .container_id = call.id, .text = error.message}, about);
  if (kind == core::EventKind::kFailed) return true;
  report_to_engine(call, cat(about, error.message));
  return false;
}

/// Fails a call whose runtime was not found or could not be executed. podqos runs no other instead:
/// containers would lose the runtime's isolation, or the runtime could not find them.
int refuse_call(const RuntimeCall& call, app::Log& log, const Error& error) {
  if (call.places) {
    report_failure(
        log, kProgram,
        {.kind = core::EventKind::kRefused, .container_id = call.id, .text = error.message}, "");
  } else {
    log.error(error.message);
    print_error(kProgram, error.message);
  }
  report_to_engine(call, error.message);
  return 1;
}

/// The bundle of a container about to be created, whose config.json may concern podqos.
struct Opened {
  Bundle bundle;
  bool concerns = false;  ///< podqos may be concerned by the container
};

/// Whether podqos may be concerned by a config.json that it cannot edit, such as a symlink, read as
/// the runtime will read it: an ordinary container must start nevertheless.
bool uneditable_may_concern(const std::string& path, const core::Settings& settings) {
  const sys::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!settings.enabled || (!fd.valid() && errno == ENOENT)) return false;
  const auto text = sys::read_all(fd.get(), codec::kMaxConfigSize, path);
  return !text || app::may_concern(*text, settings);
}

/// Opens the bundle, and reads its config.json.
/// @return nullopt: podqos does nothing and runs the runtime
Result<std::optional<Opened>> open_config(const RuntimeCall& call, const core::Settings& settings) {
  auto bundle = Bundle::open(call.bundle);
  // The runtime reports a bundle that is missing, in the form that its engine expects.
  if (!bundle && (bundle.error().code == ErrorCode::kNotFound || !settings.enabled))
    return std::nullopt;
  if (!bundle) return fail(std::move(bundle).error());
  Opened opened{.bundle = std::move(*bundle)};
  const Status read = opened.bundle.read_config();
  if (!read) {
    if (read.error().code == ErrorCode::kNotFound ||
        !uneditable_may_concern(cat(opened.bundle.canonical(), "/config.json"), settings))
      return std::nullopt;
    return fail(read.error());
  }
  const std::string& text = opened.bundle.config();
  opened.concerns = app::may_concern(text, settings);
  // Only while podqos is switched off may it be unconcerned by a file that it has edited.
  if (!opened.concerns && (settings.enabled || !text.contains(codec::kEditRecord)))
    return std::nullopt;
  return opened;
}

/// The logs that are files: podqos's own, and the one that the engine has the runtime write.
std::vector<std::string> log_paths(const Context& context) {
  std::vector<std::string> paths;
  if (const std::string& sink = context.settings.log_sink; sink.contains('/'))
    paths.push_back(sink);
  if (const std::string& log = context.call.log_file; !log.empty())
    paths.push_back(log.contains('/') ? log : cat("./", log));
  return paths;
}

/// Where a transaction writes, beside the log.
std::vector<std::string> transaction_paths(const Context& context) {
  // Kept for the child, which does not read the node's list of mounts again then.
  std::vector<std::string> paths = cgroup::mount_points({.keep = true});
  paths.push_back(context.settings.state_dir);
  return paths;
}

app::PlacementRequest request_for(const Context& context, Opened& opened,
                                  const app::Timeouts& timeouts) {
  const RuntimeCall& call = context.call;
  return {.id = call.id,
          .bundle = opened.bundle.canonical(),
          .config = opened.bundle.config(),
          .creator = context.self,
          .driver = call.systemd ? core::Driver::kSystemd : core::Driver::kCgroupfs,
          .hooks = own_hooks(call.podqos_config),
          .names = member_names_of(context.runtime),
          .timeouts = timeouts};
}

/// Gives a container that podqos failed to place, and that starts nevertheless, the config.json of
/// its engine, with a cgroupsPath that its runtime accepts.
Status let_start(const Context& context, Opened& opened) {
  const RuntimeCall& call = context.call;
  Bundle& file = opened.bundle;
  PODQOS_TRY(file.write_config(file.config()));
  PODQOS_ASSIGN(const auto startable, app::make_startable(request_for(context, opened, {})));
  if (!startable) return {};
  PODQOS_TRY(file.write_config(*startable));
  const std::string line = cat(
      "container ", printable(call.id), ": starts without podqos at cgroupsPath ",
      printable(app::unmanaged_cgroups_path(call.id)),
      ", because the runtime accepts only slice:prefix:name with --systemd-cgroup; set a cgroup "
      "parent for the pod, or fix the error logged before");
  context.log.warning(line);
  print_error(kProgram, line);
  return {};
}

Status place(const Context& context, Opened& opened, const app::Timeouts& timeouts) {
  Bundle& file = opened.bundle;
  if (!opened.concerns) return file.write_config(file.config());
  PODQOS_ASSIGN(const auto placed,
                app::place(context.settings, context.log, request_for(context, opened, timeouts)));
  return file.write_config(placed ? *placed : file.config());
}

/// What the child does: places the container; where that fails under "admit", or no settings are
/// known, makes sure that it can start.
/// @param timeouts  of placing; nullopt: nothing is placed
/// @param entered  whether it is in the sandbox
/// @return false: the container is refused
bool place_or_admit(const Context& context, Opened& opened,
                    const std::optional<app::Timeouts>& timeouts, const Status& entered) {
  if (!entered) return admits(context, entered.error());
  opened.bundle.take_edits_back();
  Status placed;
  if (timeouts) {
    placed = place(context, opened, *timeouts);
    if (placed) return true;
    if (!admits(context, placed.error())) return false;
  }
  const Status done = let_start(context, opened);
  // A file that cannot be edited fails twice.
  if (!done && done != placed) context.log.error(done.error().message);
  return true;
}

/// Decides in a child that may write to `paths`, the logs and, unless it is negative, the open
/// directory.
/// @return as run_in_sandbox()
Result<bool> run_child(const Context& context, std::vector<std::string> paths, int directory,
                       Clock::time_point deadline,
                       const std::function<bool(const Status&)>& decide) {
  PODQOS_ASSIGN(auto opened, open_places(std::move(paths)));
  // A log that cannot be opened concerns no container.
  for (std::string& path : log_paths(context))
    if (auto log = open_places({std::move(path)}))
      std::ranges::move(*log, std::back_inserter(opened));
  std::vector<int> places;
  if (directory >= 0) places.push_back(directory);
  for (const sys::UniqueFd& place : opened)
    places.push_back(place.get());
  return run_in_sandbox({context.settings, context.log, places}, deadline, decide);
}

/// Handles a call that creates a container.
/// @param broken  the error of a configuration without which no settings are known: podqos manages
///                nothing then
/// @return false: the container is refused
bool prepare(const Context& context, const std::optional<Error>& broken) {
  if (broken && !admits(context, *broken)) return false;
  const Clock::time_point end = Clock::now() + app::start_time_limit(context.settings);
  auto opened = open_config(context.call, context.settings);
  if (!opened) {
    if (!broken) return admits(context, opened.error());
    context.log.error(opened.error().message);
    return true;
  }
  if (!*opened) return true;
  const auto timeouts =
      broken ? std::nullopt : std::optional{app::Timeouts{.deadline = end - kReserve}};
  const auto ended = run_child(
      context, timeouts ? transaction_paths(context) : std::vector<std::string>{},
      (*opened)->bundle.fd(), end,
      [&](const Status& entered) { return place_or_admit(context, **opened, timeouts, entered); });
  if (ended) return *ended;
  if (!broken && !admits(context, ended.error())) return false;
  if (broken) context.log.error(ended.error().message);
  // Nothing that is parsed here: the file is as the engine, or an earlier start, has left it.
  if (const Status restored = (*opened)->bundle.restore_config(); !restored)
    context.log.error(restored.error().message);
  return true;
}

enum class Update : std::uint8_t { kBegins, kEnded };

/// Lets the pod of a running container follow what the runtime is about to raise of it, as far as
/// the call tells; or what it has changed, as the kernel has it.
/// @return false if the update does not concern podqos
bool follow_update(const Context& context, Update update_of_runtime) {
  const RuntimeCall& call = context.call;
  const bool tells = update_of_runtime == Update::kBegins;
  const Clock::time_point end = Clock::now() + app::start_time_limit(context.settings);
  const auto report = [&](const Error& error) {
    context.log.warning(cat("container ", printable(call.id),
                            ": its pod does not follow its update",
                            tells ? " before the runtime acts: " : ": ", error.message,
                            tells ? "" : "; podqosctl reconcile lets it"));
    return true;
  };
  const auto text = tells && call.resources ? read_resources(*call.resources) : std::string{};
  if (!text) return report(text.error());
  const auto follow = [&]() -> Result<bool> {
    app::AnnouncedUpdate update{.id = call.id};
    if (tells) update.values = call.limits;
    if (tells && call.resources) {
      PODQOS_ASSIGN(update.values, codec::parse_resources(*text, member_names_of(context.runtime)));
    }
    return app::follow_announced(context.settings, context.log, update,
                                 {.deadline = end - kReserve});
  };
  const auto ended =
      run_child(context, transaction_paths(context), -1, end, [&](const Status& entered) {
        const Result<bool> done = entered ? follow() : fail(entered.error());
        return done ? *done : report(done.error());
      });
  return ended ? *ended : report(ended.error());
}

/// Executes the runtime in this process. Signal mask and dispositions, umask, working directory and
/// descriptors are as the engine set them.
int become(const std::string& runtime, const RuntimeCall& call, app::Log& log) {
  std::vector<std::string> words = call.runtime_args;
  words.insert(words.begin(), runtime);
  std::vector<char*> argv(words.size() + 1);
  std::ranges::transform(words, argv.begin(), [](std::string& word) { return word.data(); });
  ::execv(runtime.c_str(), argv.data());
  const int err = errno;
  return refuse_call(call, log, Error::from_errno(err, cat("execute ", runtime)));
}

/// Executes the runtime for an update in a child, so that the pod follows once it has ended.
/// @return its exit status
int run_update(const Context& context) {
  if (!follow_update(context, Update::kBegins))
    return become(context.runtime, context.call, context.log);
  // Where it is ignored, children leave no status. The runtime gets it as the engine set it.
  struct sigaction waits{};
  struct sigaction before{};
  waits.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &waits, &before);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child <= 0) {
    ::sigaction(SIGCHLD, &before, nullptr);
    // An engine that ends this program means the runtime.
    if (child == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool is_left = child == 0 && ::getppid() != self;
    return is_left ? 1 : become(context.runtime, context.call, context.log);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  follow_update(context, Update::kEnded);
  constexpr int kBySignal = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
}

}  // namespace

int run_wrapper(std::span<const char* const> args) {
  RuntimeCall call = parse_runtime_argv(args);
  const auto configuration = app::inspect_configuration(call.podqos_config);
  const bool known = configuration.source != app::SettingsSource::kReadable;
  core::Settings settings = known ? configuration.settings : core::Settings{};
  settings.runtimes = configuration.settings.runtimes;
  app::Log log{kProgram, settings};
  std::optional<Error> broken;
  if (!known) {
    log.use_existing_state();
    broken = {ErrorCode::kInvalidArgument, app::describe_errors(configuration)};
  }
  if (settings.runtimes.empty()) {
    return refuse_call(call, log,
                       {ErrorCode::kInvalidArgument,
                        cat("the configuration does not determine the container runtime, and "
                            "podqos runs no other instead: ",
                            app::describe_errors(configuration))});
  }
  const auto runtime = find_runtime(settings.runtimes);
  if (!runtime) return refuse_call(call, log, runtime.error());

  if (!cgroup::owns_host()) {
    log.debug("not managed: podqos is not root on the host");
  } else if (call.places) {
    if (known) app::log_errors(configuration, log);
    if (!prepare({call, settings, log, *runtime, Pid{::getpid()}}, broken)) return 1;
  } else if (call.updates && known && store::is_indexed(settings.state_dir, call.id)) {
    return run_update({call, settings, log, *runtime, Pid{::getpid()}});
  }
  return become(*runtime, call, log);
}

}  // namespace podqos::hook
