// Plugin: notices the end of sandboxes whose end the runtime does not report.

#include <algorithm>
#include <cstddef>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "nri/plugin.h"

namespace podqos::nri {

namespace {

/// Bounds of one round of housekeeping, so that a request does not wait for long: sandboxes
/// released, and processes checked.
constexpr int kReleasesAtOnce = 16;
constexpr std::size_t kObservedAtOnce = 64;

}  // namespace

void Plugin::register_sandbox(const Pod& pod) {
  const Pid pid{static_cast<pid_t>(pod.pid)};
  if (pid == Pid{0}) return;
  const auto started = sys::start_time_of(pid);
  if (!started || !*started) return;
  sandboxes_.insert_or_assign(pod.id, core::Process{.pid = pid, .start_time = **started});
}

bool Plugin::release_ended_sandboxes(const app::Timeouts& timeouts) {
  int left = kReleasesAtOnce;
  bool late = false;
  auto looks = std::min(sandboxes_.size(), kObservedAtOnce);
  for (auto sandbox = sandboxes_.upper_bound(observed_); looks > 0 && left > 0 && !late; --looks) {
    if (clock_.now() >= timeouts.deadline) return false;
    if (sandbox == sandboxes_.end()) sandbox = sandboxes_.begin();
    const auto& [id, process] = *sandbox;
    observed_ = id;
    if (sys::is_alive(process.pid, process.start_time)) {
      ++sandbox;
      continue;
    }
    --left;
    auto done = release(id, timeouts);
    late = is_late(done);
    if (!done) log_failure("release ended sandbox", done.error(), "; retrying");
    sandbox = sandboxes_.erase(sandbox);
  }
  return !late;
}

}  // namespace podqos::nri
