#include "ctl/configure/docker_service.h"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/text.h"
#include "common/base/units.h"
#include "ctl/configure/plan.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using std::chrono::steady_clock;

constexpr const char* kService = "docker.service";
/// Not the socket of another machine, which a context of the client's may name.
constexpr const char* kSocket = "unix:///run/docker.sock";
constexpr const char* kFormat =
    "{{.LiveRestoreEnabled}} {{.ContainersRunning}} {{.ContainersPaused}}"
    "{{range $name, $runtime := .Runtimes}} {{$name}}{{end}}";
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

/// What kFormat prints.
std::optional<DockerService::DockerInfo> DockerService::parse_info(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(line, ' '))
    words.emplace_back(word.begin(), word.end());
  if (words.size() < 3 || (words[0] != "true" && words[0] != "false")) return std::nullopt;
  const auto running = parse_int(words[1]);
  const auto paused = parse_int(words[2]);
  if (!running || !paused) return std::nullopt;
  return DockerInfo{
      .registered = std::ranges::find(words.begin() + 3, words.end(), kHandler) != words.end(),
      .live_restore = words[0] == "true",
      .containers = saturating_add(*running, *paused)};
}

std::optional<DockerService::DockerInfo> DockerService::ask(bool active) const {
  // The socket is systemd's: to ask would start a daemon that is stopped.
  if (!client_ || !active) return std::nullopt;
  const auto end = run_({*client_, "--host", kSocket, "info", "--format", kFormat});
  if (!end || end->status != 0) return std::nullopt;
  return parse_info(end->output);
}

DockerOutcome DockerService::compare(const std::optional<DockerInfo>& info, bool registered,
                                     bool otherwise) {
  return {.stale = info ? info->registered != registered : otherwise,
          .containers = info && !info->live_restore ? info->containers : 0};
}

std::optional<DockerService::DockerInfo> DockerService::wait_for(bool registered) const {
  const auto deadline = steady_clock::now() + patience_;
  while (true) {
    auto info = ask(systemd_.is("is-active", kService));
    if (!info || info->registered == registered || steady_clock::now() >= deadline) return info;
    std::this_thread::sleep_for(kPause);
  }
}

Result<DockerOutcome> DockerService::update(bool registered, bool changed, Restart restart) const {
  const bool active = systemd_.is("is-active", kService);
  DockerOutcome outcome = compare(ask(active), registered, changed && active);
  if (!active) {
    // It reads the file when it starts.
    if (!registered || !changed || restart == Restart::kNo) return outcome;
    PODQOS_TRY(systemd_.ask({"restart", kService}));
    outcome.restarted = true;
    return outcome;
  }
  if (!outcome.stale || restart == Restart::kNo) return outcome;
  PODQOS_TRY(systemd_.ask({"reload", kService}));
  const auto info = wait_for(registered);
  // If the daemon cannot be asked: a reload adds a runtime, but does not remove the last one.
  outcome = compare(info, registered, !registered);
  outcome.reloaded = true;
  const bool harmless = info && outcome.containers == 0;
  if (!outcome.stale || (restart != Restart::kForce && !harmless)) return outcome;
  PODQOS_TRY(systemd_.ask({"restart", kService}));
  return DockerOutcome{.restarted = true, .containers = outcome.containers};
}

}  // namespace podqos::ctl
