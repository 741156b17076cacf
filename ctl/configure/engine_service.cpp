#include "ctl/configure/engine_service.h"

#include <unistd.h>

#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPluginPause{100};
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

}  // namespace

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
  const auto deadline = steady_clock::now() + patience_;
  while (!has_plugin()) {
    if (steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kPluginPause);
      continue;
    }
    const std::string status = systemd_.property(kPluginUnit, "StatusText").value_or("");
    return fail(ErrorCode::kTimeout,
                cat(kPluginUnit, " has not connected to ", unit_, " within ",
                    std::chrono::duration_cast<std::chrono::seconds>(patience_).count(),
                    " s; its status: \"", printable(status, kMaxStatus),
                    "\"; until it has, pods are not placed: see journalctl -u ", kPluginUnit));
  }
  return {};
}

}  // namespace podqos::ctl
