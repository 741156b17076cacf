#include "hook/wrapper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/app/place.h"
#include "common/app/timeouts.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/json_text.h"
#include "common/codec/oci_config.h"
#include "common/core/settings.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "hook/edit_check.h"
#include "hook/edit_places.h"
#include "hook/handover.h"
#include "hook/opened_config.h"
#include "hook/output.h"
#include "hook/privileges.h"
#include "hook/runtime_argv.h"
#include "hook/working_directory.h"

namespace podqos::hook {

namespace {

constexpr const char* kProgram = "podqos-runtime";

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

/// The work of the parser process for one container.
using Job = Handover (*)(const core::Settings&, app::Log&, const app::PlacementRequest&);

/// app::make_startable() as a Job.
Handover make_startable(const core::Settings&, app::Log&, const app::PlacementRequest& request) {
  return app::make_startable(request);
}

/// The parser process: parses untrusted input in a sandbox that the runtime must not inherit.
[[noreturn]] void parse_in_sandbox(sys::UniqueFd answer, Job job, const core::Settings& settings,
                                   app::Log& log, const app::PlacementRequest& request) {
  auto entered = enter_sandbox(settings);
  const Handover handover =
      entered ? job(settings, log, request) : Handover{fail(std::move(entered).error())};
  const bool sent = write_all(answer.get(), format_handover(handover));
  // The parent edits config.json while the kernel tears this process down.
  answer = sys::UniqueFd{};
  ::_exit(sent ? 0 : 1);
}

/// The parser process, from its fork until it is reaped.
class ParserProcess {
 public:
  /// @param waits  how long its job may wait
  explicit ParserProcess(std::chrono::milliseconds waits) : timeout_{waits + kWork} {}
  ParserProcess(const ParserProcess&) = delete;
  ParserProcess& operator=(const ParserProcess&) = delete;
  ParserProcess(ParserProcess&&) = delete;
  ParserProcess& operator=(ParserProcess&&) = delete;
  ~ParserProcess() { reap(); }

  /// Forks the process, which runs `job` and sends the result. To be called once.
  Status start(Job job, const core::Settings& settings, app::Log& log,
               const app::PlacementRequest& request) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      const int err = errno;
      return fail_errno(err, "create a pipe to the parser process");
    }
    answer_ = sys::UniqueFd{ends[0]};
    sys::UniqueFd reply{ends[1]};
    // Like fork(2), but without an exit signal: if the engine has blocked SIGCHLD, it would be
    // pending in the runtime. This program has one thread and no fork handlers.
    const long child = ::syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
    if (child < 0) {
      const int err = errno;
      return fail_errno(err, "fork the parser process");
    }
    if (child == 0) {
      // Otherwise a long reply to a killed parent would wait for a reader for ever.
      answer_ = sys::UniqueFd{};
      parse_in_sandbox(std::move(reply), job, settings, log, request);
    }
    child_ = static_cast<pid_t>(child);
    return {};
  }

  /// Reads the reply up to its end. A complete one is valid however the process exits.
  /// @return kTimeout: no complete reply in time.
  Result<Handover> answer() {
    auto bytes = read_answer();
    if (!bytes) return fail(std::move(bytes).error());
    auto handover = parse_handover(*bytes);
    if (handover) return handover;
    const int status = reap();
    if (!WIFSIGNALED(status)) return handover;
    return fail(ErrorCode::kCorrupt,
                cat("the parser process was killed by signal ", WTERMSIG(status),
                    WTERMSIG(status) == SIGSYS ? " (a syscall outside its sandbox)" : ""));
  }

 private:
  static constexpr std::chrono::milliseconds kWork{1'000};  ///< beside the job's waits
  static constexpr std::chrono::milliseconds kTick{20};

  Result<std::string> read_answer() {
    std::string bytes;
    std::array<char, 4096> piece;  // NOLINT(*-member-init): read(2) fills it
    // Counts ticks: a clock would continue while both processes are stopped or frozen.
    std::chrono::milliseconds waited{0};
    while (bytes.size() <= kMaxHandover) {
      pollfd polled{.fd = answer_.get(), .events = POLLIN, .revents = 0};
      const int found = ::poll(&polled, 1, static_cast<int>(kTick.count()));
      if (found < 0 && errno != EINTR) return fail_errno(errno, "wait for the parser process");
      if (found < 0) continue;
      if (found == 0) {
        waited += kTick;
        if (waited < timeout_) continue;
        late_ = true;
        return fail(
            ErrorCode::kTimeout,
            cat("the parser process (pid ", *child_, ") did not reply within ", timeout_.count(),
                " ms and was killed: check whether it was stopped or frozen"));
      }
      const ssize_t size = ::read(answer_.get(), piece.data(), piece.size());
      if (size == 0) return bytes;
      if (size < 0 && errno != EINTR)
        return fail_errno(errno, "read the reply of the parser process");
      if (size > 0) bytes.append(piece.data(), static_cast<std::size_t>(size));
    }
    return fail(ErrorCode::kTooLarge,
                cat("the reply of the parser process exceeds ", kMaxHandover, " bytes"));
  }

  /// Kills and reaps the process: one that was stopped while it exits would never end by itself.
  /// @return its wait status; 0 if it could not be reaped.
  int reap() {
    int status = 0;
    if (!child_) return status;
    ::kill(*child_, SIGKILL);
    // Does not wait for a process that hangs in the kernel: the runtime's parent reaps it.
    const int options = late_ ? __WALL | WNOHANG : __WALL;
    pid_t reaped = 0;
    for (auto left = kWork; left > kWork.zero(); left -= kTick) {
      do {
        reaped = ::waitpid(*child_, &status, options);
      } while (reaped < 0 && errno == EINTR);
      if (reaped != 0) break;
      ::poll(nullptr, 0, static_cast<int>(kTick.count()));
    }
    child_.reset();
    return reaped <= 0 ? 0 : status;
  }

  sys::UniqueFd answer_;
  std::optional<pid_t> child_;
  std::chrono::milliseconds timeout_;
  bool late_ = false;
};

app::PlacementRequest request_for(const RuntimeCall& call, const OpenedConfig& opened) {
  app::PlacementRequest request{
      .id = call.id,
      .bundle = opened.bundle(),
      .config = opened.text(),
      .creator = Pid{::getpid()},
      .driver = call.systemd ? core::Driver::kSystemd : core::Driver::kCgroupfs,
      .hooks = {.path = own_path(), .args = {}},
      .names = call.member_names};
  if (call.podqos_config) request.hooks.args = {"--config", absolute_path(*call.podqos_config)};
  return request;
}

Status write_edited(OpenedConfig& opened, const EditPlaces& places,
                    const app::ConfigChange& placement) {
  auto edited = codec::apply_splices(opened.text(), placement.splices);
  if (!edited) return fail(std::move(edited).error());
  if (auto sound = check_record(*edited, places); !sound) return sound;
  return opened.write(std::move(*edited));
}

Status place_container(const RuntimeCall& call, const core::Settings& settings, app::Log& log) {
  auto opened = OpenedConfig::open(call, settings);
  if (!opened) return fail(std::move(opened).error());
  if (!*opened) return {};
  if (!(*opened)->is_concerned()) return (*opened)->restore();
  const app::PlacementRequest request = request_for(call, **opened);
  const std::vector<std::string> roots = allowed_roots(settings);
  // Reaped after config.json has been written, and before the runtime is executed.
  ParserProcess parser{app::start_time_limit(settings)};
  if (auto started = parser.start(app::place, settings, log, request); !started) return started;
  // Found while the parser process works.
  const EditPlaces places{(*opened)->text(), call.member_names};
  auto handover = parser.answer();
  if (!handover) return fail(std::move(handover).error());
  if (!*handover) return fail(std::move(*handover).error());
  if (!**handover || (**handover)->splices.empty()) return (*opened)->restore();
  if (auto sound = check_placement(***handover, places, roots, request.hooks); !sound) return sound;
  return write_edited(**opened, places, ***handover);
}

/// Gives a container that podqos failed to place, and that starts nevertheless, the config.json of
/// its engine, with a cgroupsPath that its runtime accepts.
Status let_start(const RuntimeCall& call, const core::Settings& settings, app::Log& log) {
  auto opened = OpenedConfig::open(call, settings);
  if (!opened) return fail(std::move(opened).error());
  if (!*opened) return {};
  if (auto restored = (*opened)->restore(); !restored || !call.systemd) return restored;
  const app::PlacementRequest request = request_for(call, **opened);
  ParserProcess parser{std::chrono::milliseconds::zero()};
  if (auto started = parser.start(make_startable, settings, log, request); !started) return started;
  const EditPlaces places{(*opened)->text(), call.member_names};
  auto handover = parser.answer();
  if (!handover) return fail(std::move(handover).error());
  if (!*handover) return fail(std::move(*handover).error());
  if (!**handover) return {};
  const std::string path = app::unmanaged_cgroups_path(call.id);
  if (auto sound = check_splices((**handover)->splices, places, path, request.hooks); !sound)
    return sound;
  if (auto written = write_edited(**opened, places, ***handover); !written) return written;
  const std::string line = cat(
      "container ", printable(call.id), ": starts without podqos at cgroupsPath ", printable(path),
      ", because the runtime accepts only slice:prefix:name with "
      "--systemd-cgroup; set a cgroup parent for the pod, or fix the error logged before");
  log.warning(line);
  print_error(kProgram, line);
  return {};
}

/// Appends to the runtime's own log, where engines look for the reason of a failed create.
void report_to_engine(const RuntimeCall& call, std::string_view line) {
  if (call.log_file.empty()) return;
  const sys::UniqueFd fd{::open(call.log_file.c_str(),
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                0644)};
  if (!fd.valid()) return;
  write_all(fd.get(), call.log_json
                          ? cat(R"({"level":"error","msg":)", codec::quote_json(line), "}\n")
                          : cat("level=error msg=", codec::quote_json(line), "\n"));
}

/// Reports an error. @return whether the container may be created nevertheless.
bool admits(const RuntimeCall& call, const core::Settings& settings, app::Log& log,
            const Error& error) {
  const std::string line = cat("container ", printable(call.id), ", bundle ",
                               printable(call.bundle), ": ", error.message);
  log.error(line);
  print_error(kProgram, line);
  const bool reject =
      settings.on_error == core::OnError::kReject || error.code == ErrorCode::kRefused;
  if (reject) report_to_engine(call, cat(kProgram, ": ", line));
  return !reject;
}

/// Fails a call whose runtime was not found or could not be executed. podqos runs no other instead:
/// containers would lose the runtime's isolation, or the runtime could not find them.
int refuse_call(const RuntimeCall& call, app::Log& log, const Error& error) {
  log.error(error.message);
  print_error(kProgram, error.message);
  report_to_engine(call, cat(kProgram, ": ", error.message));
  return 1;
}

Error without_runtime(Error error) {
  error.message =
      cat("the configuration does not determine the container runtime, and podqos runs no other "
          "instead: ",
          error.message, "; fix it and verify it with `podqosctl config check`");
  return error;
}

/// Executes the runtime in this process. Signal mask and dispositions, umask, working directory and
/// descriptors are as the engine set them.
int become(const std::string& runtime, const RuntimeCall& call, app::Log& log) {
  std::vector<char*> argv;
  std::string path = runtime;
  std::vector<std::string> words = call.runtime_args;
  argv.push_back(path.data());
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  const int err = errno;
  return refuse_call(call, log, Error::from_errno(err, cat("execute ", runtime)));
}

/// Places the container of the call; after a failure under "admit" makes sure that it can start.
/// @param broken  the error of an invalid configuration: podqos manages nothing then, since state
/// directory and cgroup root are unknown
/// @return false: the container is refused
bool place_or_admit(const RuntimeCall& call, const core::Settings& settings, app::Log& log,
                    const std::optional<Error>& broken) {
  const Status placed = broken ? fail(*broken) : place_container(call, settings, log);
  if (placed) return true;
  if (!admits(call, settings, log, placed.error())) return false;
  // A file that cannot be edited fails twice.
  const Status done = let_start(call, settings, log);
  if (!done && done.error() != placed.error()) log.error(done.error().message);
  return true;
}

}  // namespace

int run_wrapper(std::span<const char* const> args) {
  RuntimeCall call = parse_runtime_argv(args);
  auto loaded = app::load_settings(call.podqos_config);
  core::Settings settings = loaded ? std::move(*loaded) : core::Settings{};
  app::Log log{kProgram, settings};
  std::optional<Error> broken;
  if (!loaded) {
    broken = std::move(loaded).error();
    broken->message += "; fix it and verify it with `podqosctl config check`";
    auto runtimes = app::salvage_runtimes(call.podqos_config);
    if (!runtimes) return refuse_call(call, log, without_runtime(runtimes.error()));
    settings.runtimes = std::move(*runtimes);
  }
  const auto runtime = find_runtime(settings.runtimes);
  if (!runtime) return refuse_call(call, log, runtime.error());
  call.member_names = member_names_of(*runtime);

  if (!cgroup::owns_host()) {
    log.debug("not managed: podqos is not root on the host");
  } else if (call.verb == Verb::kPlaces) {
    if (!place_or_admit(call, settings, log, broken)) return 1;
  } else if (broken) {
    // Engines parse the output of the other subcommands, standard error included.
    log.error(broken->message);
  }
  return become(*runtime, call, log);
}

}  // namespace podqos::hook
