#include "nri/deferred_events.h"

#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

using Kind = ContainerEvent::Kind;

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
std::size_t size_of(const ContainerEvent& event) {
  std::size_t size = 0;
  for (const auto& [key, value] : event.facts.annotations)
    size += key.size() + value.size();
  return size;
}

/// Whether a later attempt can succeed, because a lock or systemd may be free then.
bool is_timeout(const Error& error) {
  return error.code == ErrorCode::kTimeout;
}

}  // namespace

bool is_late(const Status& done) {
  return !done && is_timeout(done.error());
}

Status DeferredEvents::defer(ContainerEvent event) {
  Key key{event.facts.id, event.kind};
  events_.erase(key);
  const std::size_t size = size_of(event);
  std::size_t whole = size;
  for (const auto& [_, deferred] : events_)
    whole += size_of(deferred.event);
  if (size > kUsual && whole > kMost) {
    return fail(
        ErrorCode::kTooLarge,
        cat("container ", printable(event.facts.id), ": its annotations have ", size,
            " bytes, and with those of other events that are to be handled later more than ",
            kMost));
  }
  events_.emplace(std::move(key), Deferred{.event = std::move(event)});
  return {};
}

void DeferredEvents::defer_end(const std::string& id) {
  ContainerEvent event{.kind = Kind::kEnded, .facts = {}};
  event.facts.id = id;
  events_.try_emplace(Key{id, Kind::kEnded}, Deferred{.event = std::move(event)});
}

void DeferredEvents::remove(const std::string& id) {
  events_.erase(events_.lower_bound(Key{id, Kind::kStarted}),
                events_.upper_bound(Key{id, Kind::kEnded}));
}

Status DeferredEvents::apply_before(const ContainerEvent& later, const Apply& apply,
                                    const Drop& drop) {
  events_.erase(Key{later.facts.id, later.kind});
  const auto start = events_.find(Key{later.facts.id, Kind::kStarted});
  if (start == events_.end()) return {};
  auto applied = apply(start->second.event);
  if (!applied && is_timeout(applied.error())) return fail(std::move(applied).error());
  static_cast<void>(keeps(start->second, applied, drop));
  events_.erase(start);
  return {};
}

bool DeferredEvents::keeps(Deferred& deferred, const Result<Applied>& applied, const Drop& drop) {
  if (applied == Applied::kDone) return false;
  if (applied == Applied::kHeld) return true;
  const ContainerEvent& event = deferred.event;
  const bool is_end = event.kind == Kind::kEnded;
  // A start or change of a container that has ended meanwhile.
  if (!applied && applied.error().code == ErrorCode::kNotFound && !is_end) return false;
  const bool again = applied || is_timeout(applied.error()) || is_end;
  if (again && ++deferred.tries < kTries) return true;
  drop(event, applied ? Error{ErrorCode::kBusy, cat("container ", printable(event.facts.id),
                                                    " has not ended after ", kTries, " attempts")}
                      : applied.error());
  return false;
}

bool DeferredEvents::apply(const Apply& apply, const Drop& drop, sys::Clock::TimePoint deadline) {
  const auto end = clock_.now() + kAtOnce;
  int ends = kEndsAtOnce;
  for (auto next = events_.begin(); next != events_.end();) {
    if (clock_.now() >= deadline) return false;
    const ContainerEvent& event = next->second.event;
    const bool is_end = event.kind == Kind::kEnded;
    if (is_end ? ends == 0 : clock_.now() >= end) {
      ++next;
      continue;
    }
    const auto applied = apply(event);
    if (is_end && applied != Applied::kHeld) --ends;
    const bool kept = keeps(next->second, applied, drop);
    next = kept ? std::next(next) : events_.erase(next);
    // The other events would time out as well.
    if (!applied && is_timeout(applied.error())) return false;
  }
  return true;
}

void DeferredEvents::keep_changes() {
  std::erase_if(events_, [](const auto& entry) { return entry.first.second != Kind::kChanged; });
}

}  // namespace podqos::nri
