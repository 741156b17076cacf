#include "nri/deferred_events.h"

#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

using Kind = DeferredEvent::Kind;

/// Maximum size of all annotations of deferred events, in bytes.
constexpr std::size_t kMost = std::size_t{8} << 20U;
/// Annotations of this size, in bytes, are kept beyond that too, so that long ones of some pods do
/// not harm other pods.
constexpr std::size_t kUsual = std::size_t{4} << 10U;
/// Maximum number of retries of an event.
constexpr int kTries = 30;
/// Maximum time for starts and changes in one call of apply(), so that requests are served.
constexpr std::chrono::milliseconds kAtOnce{200};
/// Maximum number of ends in one call of apply(), for the same reason.
constexpr int kEndsAtOnce = 16;

/// Bytes of an event's annotations.
std::size_t size_of(const DeferredEvent& deferred) {
  std::size_t size = 0;
  for (const auto& [key, value] : deferred.event.facts.annotations)
    size += key.size() + value.size();
  return size;
}

}  // namespace

void DeferredEvents::defer(DeferredEvent event) {
  Key key{event.event.facts.id, event.kind};
  events_.erase(key);
  const std::size_t size = size_of(event);
  std::size_t whole = size;
  for (const auto& [_, deferred] : events_)
    whole += size_of(deferred);
  if (size <= kUsual || whole <= kMost) {
    events_.emplace(std::move(key), std::move(event));
    return;
  }
  drop_(event,
        {ErrorCode::kTooLarge,
         cat("container ", printable(key.first), ": its annotations have ", size,
             " bytes, and with those of other events that are to be handled later more than ",
             kMost)});
}

void DeferredEvents::defer_end(const std::string& id) {
  DeferredEvent event{.kind = Kind::kEnded, .event = {}};
  event.event.facts.id = id;
  events_.try_emplace(Key{id, Kind::kEnded}, std::move(event));
}

void DeferredEvents::remove(const std::string& id) {
  events_.erase(events_.lower_bound(Key{id, Kind::kStarted}),
                events_.upper_bound(Key{id, Kind::kEnded}));
}

void DeferredEvents::keep_changes() {
  std::erase_if(events_, [](const auto& entry) { return entry.first.second != Kind::kChanged; });
}

Status DeferredEvents::apply_before(const DeferredEvent& later, const app::Timeouts& timeouts) {
  const std::string& id = later.event.facts.id;
  events_.erase(Key{id, later.kind});
  const auto start = events_.find(Key{id, Kind::kStarted});
  if (start == events_.end()) return {};
  auto applied = apply_(start->second, timeouts);
  if (is_late(applied)) return fail(std::move(applied).error());
  static_cast<void>(keeps(start->second, applied));
  events_.erase(start);
  return {};
}

bool DeferredEvents::keeps(DeferredEvent& event, const Result<bool>& applied) const {
  if (applied) return !*applied;
  const bool is_end = event.kind == Kind::kEnded;
  // A start or change of a container that has ended meanwhile.
  if (applied.error().code == ErrorCode::kNotFound && !is_end) return false;
  if ((is_end || is_late(applied)) && ++event.tries < kTries) return true;
  drop_(event, applied.error());
  return false;
}

bool DeferredEvents::apply(const app::Timeouts& timeouts) {
  const auto end = clock_.now() + kAtOnce;
  int ends = kEndsAtOnce;
  for (auto next = events_.begin(); next != events_.end();) {
    if (clock_.now() >= timeouts.deadline) return false;
    DeferredEvent& event = next->second;
    const bool is_end = event.kind == Kind::kEnded;
    if (is_end ? ends == 0 : clock_.now() >= end) {
      ++next;
      continue;
    }
    const auto applied = apply_(event, timeouts);
    const bool held = applied && !*applied;
    if (is_end && !held) --ends;
    next = keeps(event, applied) ? std::next(next) : events_.erase(next);
    // The other events would time out as well.
    if (is_late(applied)) return false;
  }
  return true;
}

}  // namespace podqos::nri
