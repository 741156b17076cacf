#include "common/app/ending.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>

#include "common/app/known_container.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/app/transaction.h"
#include "common/store/unlocked_state.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// The state of a container that was reported as ended, from its cgroup: runtimes remove that
/// first, but wait only briefly for the kernel to allow it.
Ending ending_of(Transaction& transaction, const core::ContainerRecord& container) {
  if (!transaction.machine().exists(container.cgroup)) return Ending::kDone;
  if (lives(transaction.machine(), container))
    return sys::is_ending(container.pid) ? Ending::kEnding : Ending::kStillAlive;
  // Processes that outlive the init without being killed may stay: do not wait for them.
  const auto others = transaction.machine().processes(container.cgroup);
  // Bounded: the pod's author decides how many there are, and the lock is held.
  constexpr std::ptrdiff_t kMaxChecked = 64;
  const bool ending = others && !others->empty() &&
                      std::ranges::all_of(*others | std::views::take(kMaxChecked), sys::is_ending);
  return ending ? Ending::kEnding : Ending::kDone;
}

}  // namespace

Result<Ended> end_container(Transaction& transaction, const EndedContainer& ended,
                            OnEnding on_ending) {
  if (auto done = recover(transaction); !done) return fail(std::move(done).error());
  auto found = find_container(transaction, ended.id, ended.bundle);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    if (auto done = transaction.finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{};
  }
  const core::ContainerRecord container = (*found)->container();
  const bool own_failure =
      container.state == core::ContainerState::kPending && container.pid == ended.caller;
  const Ending left = own_failure ? Ending::kDone : ending_of(transaction, container);
  if (left == Ending::kStillAlive || (left == Ending::kEnding && on_ending == OnEnding::kLeave)) {
    if (auto done = transaction.finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{.ending = left};
  }
  auto done =
      drop_container(transaction, std::move((*found)->record), container.id, container.bundle);
  if (done) {
    expire_pending(transaction, {.id = ended.id, .bundle = ended.bundle});
    release_retained(transaction);
    done = transaction.finish();
  }
  if (!done) return fail(std::move(done).error());
  return Ended{.unfinished = transaction.unfinished()};
}

Result<Ended> end_container(const core::Settings& settings, Log& log, const EndedContainer& ended,
                            OnEnding on_ending, const Timeouts& timeouts) {
  // Most containers of a node may not be podqos's: return without the lock.
  if (!store::may_involve(settings.state_dir, ended.id)) return Ended{};
  auto transaction = Transaction::open_existing(settings, log, timeouts);
  if (!transaction) return fail(std::move(transaction).error());
  if (!*transaction) return Ended{};
  return end_container(**transaction, ended, on_ending);
}

}  // namespace podqos::app
