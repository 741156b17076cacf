#include "ctl/configure/docker_service.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/text.h"
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

/// The next word, which `text` loses.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

std::optional<std::uint32_t> number_of(std::string_view word) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// What kFormat prints.
std::optional<DockerInfo> parse_info(std::string_view line) {
  const std::string_view live_restore = take_word(line);
  const auto running = number_of(take_word(line));
  const auto paused = number_of(take_word(line));
  if ((live_restore != "true" && live_restore != "false") || !running || !paused)
    return std::nullopt;
  DockerInfo info{.registered = false,
                  .live_restore = live_restore == "true",
                  .containers = *running + *paused};
  while (!line.empty())
    if (take_word(line) == kHandler) info.registered = true;
  return info;
}

}  // namespace

bool DockerService::is_active() const {
  return systemd_.is("is-active", kService);
}

std::optional<DockerInfo> DockerService::ask() const {
  // The socket is systemd's: to ask would start a daemon that is stopped.
  if (!client_ || !is_active()) return std::nullopt;
  const auto end = run_({*client_, "--host", kSocket, "info", "--format", kFormat});
  if (!end || end->status != 0) return std::nullopt;
  return parse_info(end->output);
}

DockerOutcome DockerService::compare(const std::optional<DockerInfo>& info, bool registered,
                                     bool otherwise) const {
  DockerOutcome outcome;
  outcome.stale = info ? info->registered != registered : otherwise;
  outcome.containers = info && !info->live_restore ? info->containers : 0;
  return outcome;
}

DockerOutcome DockerService::observe(bool registered, bool changed) const {
  return compare(ask(), registered, changed && is_active());
}

std::optional<DockerInfo> DockerService::wait_for(bool registered) const {
  const auto deadline = steady_clock::now() + patience_;
  while (true) {
    auto info = ask();
    if (!info || info->registered == registered || steady_clock::now() >= deadline) return info;
    std::this_thread::sleep_for(kPause);
  }
}

Result<DockerOutcome> DockerService::update(bool registered, bool changed, Restart restart) const {
  DockerOutcome outcome = observe(registered, changed);
  if (!is_active()) {
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
