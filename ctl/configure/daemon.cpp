#include "ctl/configure/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/sys/process.h"
#include "ctl/cli/table.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// The client of Docker, which says what the daemon knows.
constexpr std::array kDockerClients = {"/usr/bin/docker", "/usr/local/bin/docker"};
/// Not the socket of another machine, which a context of the client's may name.
constexpr const char* kSocket = "unix:///run/docker.sock";
/// Containers that a restart stops, driver, default runtime, and the runtimes.
constexpr const char* kFormat =
    "{{if .LiveRestoreEnabled}}0 0{{else}}{{.ContainersRunning}} {{.ContainersPaused}}{{end}} "
    "{{.CgroupDriver}} {{.DefaultRuntime}}{{range $name, $runtime := .Runtimes}} {{$name}}{{end}}";

/// The last change of a file (st_ctime, which no program sets), or of its directory if it is gone.
std::optional<Time> change_of(const std::string& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0 &&
      ::stat(std::filesystem::path{file}.parent_path().c_str(), &found) != 0)
    return std::nullopt;
  return Time{seconds{found.st_ctim.tv_sec} + nanoseconds{found.st_ctim.tv_nsec}};
}

}  // namespace

std::optional<Time> start_of(Pid pid) {
  const auto started = sys::start_time_of(pid);
  timespec now{};
  if (!started || !*started || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const auto age = seconds{now.tv_sec} + nanoseconds{now.tv_nsec} -
                   nanoseconds{seconds{1}} / ::sysconf(_SC_CLK_TCK) * (*started)->value();
  return std::chrono::system_clock::now() - age;
}

std::optional<std::string> unread_file(const std::vector<std::string>& files, Pid pid) {
  if (files.empty()) return std::nullopt;
  const auto last = std::ranges::max_element(files, {}, change_of);
  const auto changed = change_of(*last);
  const auto start = start_of(pid);
  // The kernel has the start in whole ticks.
  const nanoseconds tick = nanoseconds{seconds{1}} / ::sysconf(_SC_CLK_TCK);
  if (!changed || !start || *start + tick >= *changed ||
      *changed > std::chrono::system_clock::now())
    return std::nullopt;
  return *last;
}

Result<DockerAnswer> ask_docker(const Run& run) {
  Error why{ErrorCode::kNotFound, "Docker's client is not installed"};
  for (const char* client : kDockerClients) {
    const auto said = run({client, "--host", kSocket, "info", "--format", kFormat});
    if (!said && said.error().code == ErrorCode::kNotFound) continue;
    std::string_view words = said ? std::string_view{*said} : "";
    const auto running = parse_int(read_until(words, ' '));
    const auto paused = parse_int(read_until(words, ' '));
    why = said ? Error{ErrorCode::kUnsupported, shorten(app::one_line(*said), 300)} : said.error();
    if (!running || !paused) continue;
    DockerAnswer answer{.containers = *running + *paused};
    answer.driver = read_until(words, ' ');
    answer.default_runtime = read_until(words, ' ');
    answer.knows_podqos = has_word(words, kHandler);
    return answer;
  }
  return fail(std::move(why));
}

std::optional<Pid> served_process(std::string_view status) {
  constexpr std::string_view kProcess = " (process ";
  const std::size_t at = status.rfind(kProcess);
  if (!status.starts_with("synchronized with ") || at == std::string_view::npos) return {};
  status.remove_prefix(at + kProcess.size());
  const auto pid = parse_int(read_until(status, ')'));
  return pid && status.empty() ? std::optional{Pid{*pid}} : std::nullopt;
}

}  // namespace podqos::ctl
