#include "common/app/follow_up.h"

#include <chrono>
#include <thread>
#include <utility>

#include "common/app/event.h"
#include "common/app/reconcile.h"
#include "common/app/release.h"

namespace podqos::app {

Status follow_up(const core::Settings& settings, Log& log, std::optional<Error> unfinished) {
  constexpr std::chrono::milliseconds kFirstPause{10};
  constexpr std::chrono::milliseconds kLongestPause{640};
  for (auto pause = kFirstPause; unfinished; pause *= 2) {
    if (pause > kLongestPause) return fail(std::move(*unfinished));
    std::this_thread::sleep_for(pause);
    auto event = Event::open_existing(settings, log);
    if (!event) return fail(std::move(event).error());
    if (!*event) return {};
    if (auto done = recover(**event); !done) return done;
    tend_lingering(**event);
    if (auto done = (*event)->finish(); !done) return done;
    unfinished = (*event)->unfinished();
  }
  return {};
}

}  // namespace podqos::app
