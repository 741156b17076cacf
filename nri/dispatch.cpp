#include "nri/dispatch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/arena.h>

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

/// An event without an answer: sent as StateChange up to NRI 0.11, from 0.12 on as a call.
struct Notification {
  api::Event event;
  Request request;
  Status (Handler::*notify)(const api::EventRequest&, Budget);
};
constexpr std::array kNotifications = {
    Notification{api::RUN_POD_SANDBOX, Request::kRunPodSandbox, &Handler::run_pod_sandbox},
    Notification{api::STOP_POD_SANDBOX, Request::kStopPodSandbox, &Handler::stop_pod_sandbox},
    Notification{api::REMOVE_POD_SANDBOX, Request::kRemovePodSandbox, &Handler::remove_pod_sandbox},
    Notification{api::POST_UPDATE_POD_SANDBOX, Request::kPostUpdatePodSandbox,
                 &Handler::post_update_pod_sandbox},
    Notification{api::POST_CREATE_CONTAINER, Request::kPostCreateContainer,
                 &Handler::post_create_container},
    Notification{api::START_CONTAINER, Request::kStartContainer, &Handler::start_container},
    Notification{api::POST_START_CONTAINER, Request::kPostStartContainer,
                 &Handler::post_start_container},
    Notification{api::POST_UPDATE_CONTAINER, Request::kPostUpdateContainer,
                 &Handler::post_update_container},
    Notification{api::REMOVE_CONTAINER, Request::kRemoveContainer, &Handler::remove_container},
};

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

/// The reply without a payload.
Reply reply_of(const Status& status) {
  if (!status) return failure(status.error());
  return std::string{};
}

/// The reply with a message.
template <class Response>
Reply reply_of(const Result<Response>& response) {
  if (!response) return failure(response.error());
  return response->SerializeAsString();
}

}  // namespace

template <class Function>
auto Dispatch::timed(Request request, const Function& call) {
  const auto begun = clock_->now();
  auto done = call();
  handler_->handled(request, clock_->now() - begun);
  return done;
}

template <class Message, class Answer>
Reply Dispatch::pass_on(Request request, const Call& call,
                        Answer (Handler::*function)(const Message&, Budget)) {
  // A message consists of many small allocations, which are freed at once; most fit in here.
  alignas(std::max_align_t) std::array<char, 4096> first;
  google::protobuf::ArenaOptions options;
  options.initial_block = first.data();
  options.initial_block_size = first.size();
  google::protobuf::Arena arena{options};
  auto& message = *google::protobuf::Arena::CreateMessage<Message>(&arena);
  if (!message.ParseFromString(call.payload)) return malformed(call);
  return reply_of(timed(request, [&] { return (handler_->*function)(message, call.budget); }));
}

Result<Reply> Dispatch::answer(Call call) {
  if (call.service != kService) return unimplemented(call);
  if (call.method == name_of(Request::kConfigure)) return configure(call);
  if (call.method == name_of(Request::kSynchronize)) return synchronize(std::move(call));
  // A runtime sends other calls only to plugins that it has synchronized.
  if (progress_ == Progress::kSynchronizing) progress_ = Progress::kSynchronized;
  if (call.method == "StateChange") return state_change(call);
  return request(call);
}

Reply Dispatch::request(const Call& call) {
  if (call.method == "Shutdown") {
    handler_->shutdown();
    return std::string{};
  }
  const auto* name = std::ranges::find(kRequestNames, call.method);
  if (name == kRequestNames.end()) return unimplemented(call);
  const auto request = static_cast<Request>(name - kRequestNames.begin());
  if (request == Request::kCreateContainer)
    return pass_on(request, call, &Handler::create_container);
  if (request == Request::kUpdateContainer)
    return pass_on(request, call, &Handler::update_container);
  if (request == Request::kStopContainer) return pass_on(request, call, &Handler::stop_container);
  if (request == Request::kUpdatePodSandbox)
    return pass_on(request, call, &Handler::update_pod_sandbox);
  const auto* found = std::ranges::find(kNotifications, request, &Notification::request);
  if (found == kNotifications.end()) return unimplemented(call);
  return pass_on(request, call, found->notify);
}

Reply Dispatch::configure(const Call& call) {
  api::ConfigureRequest request;
  if (!request.ParseFromString(call.payload)) return malformed(call);
  const Status done =
      timed(Request::kConfigure, [&] { return handler_->configure(request, call.budget); });
  if (!done) return failure(done.error());
  const EventMask events =
      events_ == EventChoice::kOldest ? EventMask::kOldest : events_known_to(request);
  api::ConfigureResponse response;
  response.set_events(static_cast<std::int32_t>(events));
  progress_ = Progress::kConfigured;
  return response.SerializeAsString();
}

Result<Reply> Dispatch::synchronize(Call call) {
  const auto start = clock_->now();
  progress_ = Progress::kSynchronizing;
  auto last = node_state_.add(std::move(call.payload));
  if (!last) {
    if (last.error().code == ErrorCode::kTooLarge) return fail(std::move(last).error());
    return malformed(call);
  }
  if (!*last) {
    // The runtime sends the next part only after an answer with `more` and without updates.
    api::SynchronizeResponse response;
    response.set_more(true);
    return response.SerializeAsString();
  }
  auto response = timed(Request::kSynchronize, [&] {
    return handler_->synchronize(std::exchange(node_state_, NodeState{limits_}), call.budget);
  });
  if (response) {
    response->clear_more();
    if (is_in_time(clock_->now() - start, call.budget)) progress_ = Progress::kSynchronized;
  }
  return reply_of(response);
}

Reply Dispatch::state_change(const Call& call) {
  api::StateChangeEvent change;
  if (!change.ParseFromString(call.payload)) return malformed(call);
  const auto* found = std::ranges::find(kNotifications, change.event(), &Notification::event);
  if (found == kNotifications.end()) return std::string{};
  api::EventRequest event;
  event.mutable_pod()->Swap(change.mutable_pod());
  if (change.has_container()) event.mutable_container()->Swap(change.mutable_container());
  return reply_of(
      timed(found->request, [&] { return (handler_->*found->notify)(event, call.budget); }));
}

}  // namespace podqos::nri
