#include "ctl/configure/service.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <ranges>
#include <thread>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "ctl/configure/plan.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

constexpr const char* kSystemctl = "/usr/bin/systemctl";
constexpr const char* kDockerUnit = "docker.service";
/// Not the socket of another machine, which a context of the client's may name.
constexpr const char* kSocket = "unix:///run/docker.sock";
constexpr const char* kFormat =
    "{{.LiveRestoreEnabled}} {{.ContainersRunning}} {{.ContainersPaused}}"
    "{{range $name, $runtime := .Runtimes}} {{$name}}{{end}}";
/// How much of the plugin's status a message has.
constexpr std::size_t kMaxStatus = 500;

/// For how long the process has run, suspensions of the machine included.
std::optional<std::chrono::nanoseconds> age_of(Pid pid) {
  const auto started = sys::start_time_of(pid);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  timespec now{};
  if (!started || !*started || ticks_per_second <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return std::nullopt;
  const auto uptime = std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
  return uptime -
         std::chrono::nanoseconds{std::chrono::seconds{1}} / ticks_per_second * (*started)->value();
}

/// Whether the plugin's STATUS= (nri/service.cpp) says that it serves the runtime whose process
/// this is: the one before it may have ended a moment ago.
bool serves(std::string_view status, Pid runtime) {
  return status.starts_with("synchronized with ") &&
         status.ends_with(cat(" (process ", runtime.value(), ")"));
}

/// Asks every 100 ms. @return false if the answer was no until the end of `patience`.
bool wait_until(std::chrono::milliseconds patience, const std::function<bool()>& is_so) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + patience;
  while (!is_so()) {
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  return true;
}

}  // namespace

Status ServiceManager::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> argv = {kSystemctl};
  argv.insert(argv.end(), words.begin(), words.end());
  const auto end = run_(argv);
  if (!end && end.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kUnsupported,
                cat("systemctl not found: run `systemctl ", join(words, " "), "` manually"));
  if (!end) return fail(end.error());
  if (end->status == 0) return {};
  return fail(ErrorCode::kIo, cat(join(argv, " "), ": ", printable(end->output, 1000)));
}

bool ServiceManager::is(const char* question, const std::string& unit) const {
  return ask({question, "--quiet", unit}).has_value();
}

std::optional<std::string> ServiceManager::property(const std::string& unit,
                                                    const char* name) const {
  auto end = run_({kSystemctl, "show", cat("--property=", name), "--value", unit});
  if (!end || end->status != 0) return std::nullopt;
  return std::move(end->output);
}

std::optional<Pid> EngineService::process() const {
  const auto text = systemd_.property(unit_, "MainPID");
  const auto pid = text ? parse_int(*text) : std::nullopt;
  if (!pid || *pid <= 0 || !std::in_range<pid_t>(*pid)) return std::nullopt;
  return Pid{*pid};
}

bool EngineService::is_older_than(std::chrono::sys_time<std::chrono::nanoseconds> change) const {
  const auto pid = process();
  const auto age = pid ? age_of(*pid) : std::nullopt;
  const auto now = std::chrono::system_clock::now();
  return age && change <= now && now - *age < change;
}

bool EngineService::has_plugin() const {
  const auto runtime = process();
  const auto status = systemd_.property(kPluginUnit, "StatusText");
  return runtime && status && serves(*status, *runtime);
}

Status EngineService::wait_for_plugin() const {
  std::string status;
  bool stands_by = false;
  const bool done = wait_until(patience_, [&] {
    status = systemd_.property(kPluginUnit, "StatusText").value_or("");
    stands_by = status.contains("standing by until that one ends");
    return stands_by || has_plugin();
  });
  if (stands_by) {
    return fail(ErrorCode::kConflict,
                cat(kPluginUnit, " does not serve ", unit_, ": ", printable(status, kMaxStatus),
                    ": stop that one, or disable ", kPluginUnit));
  }
  if (done) return {};
  return fail(ErrorCode::kTimeout,
              cat(kPluginUnit, " has not connected to ", unit_, " within ",
                  std::chrono::duration_cast<std::chrono::seconds>(patience_).count(),
                  " s; its status: \"", printable(status, kMaxStatus),
                  "\"; until it has, pods are not placed: see journalctl -u ", kPluginUnit));
}

/// What kFormat prints.
std::optional<DockerService::Answer> DockerService::parse_answer(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(line, ' '))
    words.emplace_back(word.begin(), word.end());
  if (words.size() < 3 || (words[0] != "true" && words[0] != "false")) return std::nullopt;
  const auto running = parse_int(words[1]);
  const auto paused = parse_int(words[2]);
  if (!running || !paused) return std::nullopt;
  return Answer{
      .registered = std::ranges::find(words.begin() + 3, words.end(), kHandler) != words.end(),
      .live_restore = words[0] == "true",
      .containers = saturating_add(*running, *paused)};
}

std::optional<DockerService::Answer> DockerService::ask(bool active) const {
  // The socket is systemd's: to ask would start a daemon that is stopped.
  if (!client_ || !active) return std::nullopt;
  const auto end = run_({*client_, "--host", kSocket, "info", "--format", kFormat});
  if (!end || end->status != 0) return std::nullopt;
  return parse_answer(end->output);
}

ServiceOutcome DockerService::compare(const std::optional<Answer>& answer, bool registered,
                                      bool otherwise) {
  return {.stale = answer ? answer->registered != registered : otherwise,
          .containers = answer && !answer->live_restore ? answer->containers : 0};
}

std::optional<DockerService::Answer> DockerService::wait_for(bool registered) const {
  std::optional<Answer> answer;
  wait_until(patience_, [&] {
    answer = ask(systemd_.is("is-active", kDockerUnit));
    return !answer || answer->registered == registered;
  });
  return answer;
}

Result<ServiceOutcome> DockerService::update(bool registered, bool changed, Restart restart) const {
  const bool active = systemd_.is("is-active", kDockerUnit);
  ServiceOutcome outcome = compare(ask(active), registered, changed && active);
  if (!active) {
    // It reads the file when it starts.
    if (!registered || !changed || restart == Restart::kNo) return outcome;
    PODQOS_TRY(systemd_.ask({"restart", kDockerUnit}));
    outcome.restarted = true;
    return outcome;
  }
  if (!outcome.stale || restart == Restart::kNo) return outcome;
  PODQOS_TRY(systemd_.ask({"reload", kDockerUnit}));
  const auto answer = wait_for(registered);
  // If the daemon cannot be asked: a reload adds a runtime, but does not remove the last one.
  outcome = compare(answer, registered, !registered);
  outcome.reloaded = true;
  const bool harmless = answer && outcome.containers == 0;
  if (!outcome.stale || (restart != Restart::kForce && !harmless)) return outcome;
  PODQOS_TRY(systemd_.ask({"restart", kDockerUnit}));
  return ServiceOutcome{.restarted = true, .containers = outcome.containers};
}

}  // namespace podqos::ctl
