#include "common/app/ending.h"

#include <utility>

#include "common/app/event.h"
#include "common/app/known_container.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"

namespace podqos::app {

Result<Ending> end_container(const core::Settings& settings, Log& log, const std::string& id,
                             const std::string& bundle, Pid caller) {
  auto event = Event::open_existing(settings, log);
  if (!event) return fail(std::move(event).error());
  if (!*event) return Ending::kDone;
  if (auto done = recover(**event); !done) return fail(std::move(done).error());
  auto found = find_container(**event, id, bundle);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Ending::kDone;
  }
  const core::ContainerRecord container = (*found)->container();
  const bool own_failure =
      container.state == core::ContainerState::kPending && container.pid == caller;
  // A runtime removes the container's cgroup before this hook; its init may still be on its way
  // out.
  const bool living = lives(container) && (*event)->cgroups().exists(container.cgroup);
  if (living && !own_failure) {
    if (auto done = (*event)->finish_recovery(); !done) return fail(std::move(done).error());
    return Ending::kStillAlive;
  }
  auto done = drop_container(**event, std::move((*found)->record), container.id, container.bundle);
  if (done) {
    expire_pending(**event, id);
    tend_lingering(**event);
    done = (*event)->finish();
  }
  if (!done) return fail(std::move(done).error());
  return Ending::kDone;
}

}  // namespace podqos::app
