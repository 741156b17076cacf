#include "nri/dispatch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

/// The service of plugins in containerd/nri, pkg/api/api.proto.
constexpr std::string_view kService = "nri.pkg.api.v1alpha1.Plugin";

/// Percentage of the budget within which an answer counts as in time; the rest is for transmission,
/// since the runtime's timeout starts before the call is sent. NRI up to 0.6 keeps the connection
/// of a plugin whose Synchronize was late, but sends it no events.
constexpr int kPunctualPercent = 80;

/// Whether a runtime counts an answer as in time.
bool is_in_time(std::chrono::nanoseconds taken, Budget budget) {
  return !budget || taken <= *budget / 100 * kPunctualPercent;
}

/// An error of the handler, as the Go side answers one.
Reply failure(Error error) {
  return std::unexpected(CallError{.code = StatusCode::kUnknown, .text = std::move(error.message)});
}

/// The answer to a payload that is not the method's message.
Reply malformed(const Call& call) {
  return std::unexpected(CallError{.code = StatusCode::kInternal,
                                   .text = cat(call.method, ": cannot parse the payload")});
}

/// The answer to an unknown service or method.
Reply unimplemented(const Call& call) {
  return std::unexpected(CallError{
      .code = StatusCode::kUnimplemented,
      .text = cat("unknown method ", printable(call.service), "/", printable(call.method))});
}

}  // namespace

template <class Function>
auto Dispatch::timed(Request request, const Function& call) {
  const auto begun = clock_->now();
  auto done = call();
  handler_->handled(request, clock_->now() - begun);
  return done;
}

Result<Reply> Dispatch::answer(const Call& call) {
  if (call.service != kService) return unimplemented(call);
  if (call.method == kind_of(Request::kConfigure).name) return configure(call);
  if (call.method == kind_of(Request::kSynchronize).name) return synchronize(call);
  // A runtime sends other calls only to plugins that it has synchronized.
  if (progress_ == Progress::kSynchronizing) progress_ = Progress::kSynchronized;
  if (call.method == "StateChange") return state_change(call);
  // No version up to 0.12 sends it; the end of the connection says the same.
  if (call.method == "Shutdown") return std::string{};
  const auto* kind = std::ranges::find(kRequests, call.method, &RequestKind::name);
  if (kind == kRequests.end()) return unimplemented(call);
  const auto parsed = parse_event(call.payload, kind->fields);
  if (!parsed) return malformed(call);
  return handle(static_cast<Request>(kind - kRequests.begin()), parsed->event, call.budget);
}

Reply Dispatch::handle(Request request, const PodEvent& event, Budget budget) {
  auto answer = timed(request, [&] { return handler_->handle(request, event, budget); });
  if (!answer) return failure(std::move(answer).error());
  return std::move(*answer);
}

Reply Dispatch::configure(const Call& call) {
  const auto request = parse_configure_request(call.payload);
  if (!request) return malformed(call);
  Status done =
      timed(Request::kConfigure, [&] { return handler_->configure(*request, call.budget); });
  if (!done) return failure(std::move(done).error());
  const EventMask events =
      events_ == EventChoice::kOldest ? EventMask::kOldest : events_known_to(*request);
  progress_ = Progress::kConfigured;
  return format_configure_response(static_cast<std::int32_t>(events));
}

Result<Reply> Dispatch::synchronize(const Call& call) {
  const auto start = clock_->now();
  progress_ = Progress::kSynchronizing;
  auto last = node_state_.add(call.payload);
  if (!last) {
    if (last.error().code == ErrorCode::kTooLarge) return fail(std::move(last).error());
    return malformed(call);
  }
  // The runtime sends the next part only after an answer with `more` and without updates.
  if (!*last) return format_more_response();
  Status done = timed(Request::kSynchronize,
                      [&] { return handler_->synchronize(node_state_.release(), call.budget); });
  if (!done) return failure(std::move(done).error());
  if (is_in_time(clock_->now() - start, call.budget)) progress_ = Progress::kSynchronized;
  return std::string{};
}

Reply Dispatch::state_change(const Call& call) {
  const auto parsed = parse_event(call.payload, kStateChange);
  if (!parsed) return malformed(call);
  const auto* kind = std::ranges::find(kRequests, parsed->number, &RequestKind::event);
  if (parsed->number == 0 || kind == kRequests.end()) return std::string{};
  return handle(static_cast<Request>(kind - kRequests.begin()), parsed->event, call.budget);
}

}  // namespace podqos::nri
