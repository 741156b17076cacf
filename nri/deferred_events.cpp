#include "nri/deferred_events.h"

#include <cstddef>
#include <iterator>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

using Kind = DeferredEvent::Kind;

/// Maximum size of all annotations of deferred events, in bytes.
constexpr std::size_t kMostKept = std::size_t{8} << 20U;
/// Annotations of this size, in bytes, are kept beyond that too, so that long ones of some pods do
/// not harm other pods.
constexpr std::size_t kUsualSize = std::size_t{4} << 10U;
/// Maximum number of retries of an event.
constexpr int kTries = 30;

/// Bytes of an event's annotations.
std::size_t size_of(const DeferredEvent& deferred) {
  std::size_t size = 0;
  for (const auto& [key, value] : deferred.event.facts.annotations)
    size += key.size() + value.size();
  return size;
}

}  // namespace

void DeferredEvents::defer(const DeferredEvent& event) {
  Key key{event.event.facts.id, event.kind};
  if (event.kind != Kind::kEnded) events_.erase(key);
  const std::size_t size = size_of(event);
  std::size_t whole = size;
  for (const auto& [_, deferred] : events_)
    whole += size_of(deferred);
  if (size <= kUsualSize || whole <= kMostKept) {
    events_.try_emplace(std::move(key), event);
    return;
  }
  drop_(event,
        {ErrorCode::kTooLarge,
         cat("container ", printable(key.first), ": its annotations have ", size,
             " bytes, and with those of other events that are to be handled later more than ",
             kMostKept)});
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
  if (applied && *applied) return false;
  const Error error =
      applied ? Error{ErrorCode::kBusy,
                      cat("container ", printable(event.event.facts.id), " has not ended")}
              : applied.error();
  const bool is_end = event.kind == Kind::kEnded;
  // A start or change of a container that has ended meanwhile.
  if (error.code == ErrorCode::kNotFound && !is_end) return false;
  if ((is_end || is_late(applied)) && ++event.tries < kTries) return true;
  drop_(event, error);
  return false;
}

bool DeferredEvents::apply(const app::Timeouts& timeouts) {
  for (auto next = events_.begin(); next != events_.end();) {
    if (clock_.now() >= timeouts.deadline) return false;
    const auto applied = apply_(next->second, timeouts);
    next = keeps(next->second, applied) ? std::next(next) : events_.erase(next);
    // The other events would time out as well.
    if (is_late(applied)) return false;
  }
  return true;
}

}  // namespace podqos::nri
