#include "common/app/ending.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>

#include "common/app/event.h"
#include "common/app/known_container.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"
#include "common/store/unlocked_state.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// What there is of a container, told by its cgroup: a runtime removes that first, but does not
/// wait for long until the kernel lets it.
Ending remains(Event& event, const core::ContainerRecord& container) {
  if (!event.cgroups().exists(container.cgroup)) return Ending::kDone;
  if (lives(container))
    return sys::is_ending(container.pid) ? Ending::kEnding : Ending::kStillAlive;
  // Processes that outlive the init and that nobody has killed may stay: they are not waited for.
  const auto others = event.cgroups().processes(container.cgroup);
  // How many there are, the author of the pod decides, and others wait for the lock.
  constexpr std::ptrdiff_t kLookedAt = 64;
  const bool ending = others && !others->empty() &&
                      std::ranges::all_of(*others | std::views::take(kLookedAt), sys::is_ending);
  return ending ? Ending::kEnding : Ending::kDone;
}

}  // namespace

Result<Ended> end_container(const core::Settings& settings, Log& log, const EndedContainer& ended,
                            OnEnding on_ending, const Patience& patience) {
  // Most containers of a node may be none of podqos's: nobody is to wait for them.
  if (!store::may_involve(settings.state_dir, ended.id)) return Ended{};
  auto event = Event::open_existing(settings, log, patience);
  if (!event) return fail(std::move(event).error());
  if (!*event) return Ended{};
  if (auto done = recover(**event); !done) return fail(std::move(done).error());
  auto found = find_container(**event, ended.id, ended.bundle);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{};
  }
  const core::ContainerRecord container = (*found)->container();
  const bool own_failure =
      container.state == core::ContainerState::kPending && container.pid == ended.caller;
  const Ending left = own_failure ? Ending::kDone : remains(**event, container);
  if (left == Ending::kStillAlive || (left == Ending::kEnding && on_ending == OnEnding::kLeave)) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{.ending = left};
  }
  auto done = drop_container(**event, std::move((*found)->record), container.id, container.bundle);
  if (done) {
    expire_pending(**event, ended.id);
    tend_lingering(**event);
    done = (*event)->finish();
  }
  if (!done) return fail(std::move(done).error());
  return Ended{.unfinished = (*event)->unfinished()};
}

}  // namespace podqos::app
