#include "common/app/follow_up.h"

#include <chrono>
#include <thread>
#include <utility>

#include "common/app/departure.h"
#include "common/app/reconcile.h"
#include "common/app/transaction.h"

namespace podqos::app {

Status follow_up(const core::Settings& settings, Log& log, std::optional<Error> unfinished,
                 const Timeouts& timeouts) {
  constexpr std::chrono::milliseconds kFirstPause{10};
  constexpr std::chrono::milliseconds kLongestPause{640};
  for (auto pause = kFirstPause; unfinished; pause *= 2) {
    if (pause > kLongestPause) return fail(std::move(*unfinished));
    std::this_thread::sleep_for(pause);
    auto transaction = Transaction::open_existing(settings, log, timeouts);
    if (!transaction) return fail(std::move(transaction).error());
    if (!*transaction) return {};
    if (auto done = recover(**transaction); !done) return done;
    release_retained(**transaction);
    if (auto done = (*transaction)->finish(); !done) return done;
    unfinished = (*transaction)->unfinished();
  }
  return {};
}

}  // namespace podqos::app
