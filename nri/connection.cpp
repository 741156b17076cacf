#include "nri/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "common/base/text.h"
#include "nri/sockets.h"

namespace podqos::nri {

namespace {

/// The registration is the only call to the runtime.
constexpr std::uint32_t kRegistrationStream = 1;

/// The service of plugins in containerd/nri, pkg/api/api.proto.
constexpr std::string_view kPluginService = "nri.pkg.api.v1alpha1.Plugin";

/// Masks of events: 1 << (number in enum Event - 1). Not of those that follow an answer
/// (PostCreateContainer), for which runtimes would wait once more.
constexpr std::int32_t kOldestEvents = 0x06af;  ///< of NRI 0.2 to 0.9
constexpr std::int32_t kNewestEvents = 0x0eaf;  ///< and the updates of pods of NRI 0.10

/// Percentage of the budget within which an answer counts as in time; the rest is for transmission,
/// since the runtime's timeout starts before the call is sent. NRI up to 0.6 keeps the connection
/// of a plugin whose Synchronize was late, but sends it no events.
constexpr int kPunctualPercent = 80;

/// Whether a runtime counts an answer as in time.
bool is_in_time(std::chrono::nanoseconds taken, Budget budget) {
  return !budget || taken <= *budget / 100 * kPunctualPercent;
}

/// The answer to a failed call.
Reply refusal(StatusCode code, std::string text) {
  return std::unexpected(CallError{.code = code, .text = std::move(text)});
}

/// An error of the handler, as the Go side answers one.
Reply failure(Error error) {
  return refusal(StatusCode::kUnknown, std::move(error.message));
}

/// The answer to a payload that is not the method's message.
Reply malformed(const Call& call) {
  return refusal(StatusCode::kInternal, cat(call.method, ": cannot parse the payload"));
}

/// The answer to an unknown service or method.
Reply unimplemented(const Call& call) {
  return refusal(StatusCode::kUnimplemented,
                 cat("unknown method ", printable(call.service), "/", printable(call.method)));
}

/// Bytes of one read. Most messages fit; longer ones take several turns of the event loop, so that
/// signals and deadlines are handled in between.
constexpr std::size_t kPiece = std::size_t{64} << 10U;

/// Whether an errno means that the peer has closed the connection.
bool is_gone(int err) {
  return err == EPIPE || err == ECONNRESET;
}

/// The error for a connection that the runtime has closed.
Status ended() {
  return fail(ErrorCode::kNotFound, "closed by the runtime");
}

}  // namespace

Connection::Connection(sys::UniqueFd socket, ConnectionOptions options, Handler& handler)
    : socket_{std::move(socket)}, options_{std::move(options)}, handler_{&handler} {}

void Connection::begin() {
  registering_ = true;
  append_frames(output_, Channel::kRuntime,
                encode_request(kRegistrationStream,
                               {.service = "nri.pkg.api.v1alpha1.Runtime",
                                .method = "RegisterPlugin",
                                .payload = format_registration(options_.name, options_.index)}));
}

Status Connection::feed(std::string_view bytes) {
  while (true) {
    PODQOS_ASSIGN(const auto message, messages_.next(bytes));
    if (!message) return {};
    PODQOS_TRY(message->channel == Channel::kPlugin ? handle_call(*message)
                                                    : read_answer(*message));
  }
}

Status Connection::handle_call(const Message& message) {
  if (message.type != MessageType::kRequest) return {};
  Reply reply;
  if (message.oversized) {
    // Runtimes with NRI up to 0.6 send what authors of pods have made so large.
    reply = refusal(StatusCode::kResourceExhausted,
                    cat("a message of more than ", kMaxMessageSize, " bytes"));
  } else if (const auto call = parse_call(message.payload)) {
    PODQOS_ASSIGN(reply, answer(*call));
  } else {
    reply = refusal(StatusCode::kInvalidArgument, call.error().message);
  }
  append_frames(output_, Channel::kPlugin, encode_response(message.stream, reply));
  return {};
}

Status Connection::read_answer(const Message& message) {
  const bool awaited = registering_ && message.type == MessageType::kResponse &&
                       message.stream == kRegistrationStream && !message.oversized;
  if (!awaited) return {};
  registering_ = false;
  const auto answer = parse_answer(message.payload);
  if (answer) return {};
  return fail(ErrorCode::kConflict,
              cat("the runtime rejected the plugin's registration: ", answer.error().message));
}

void Connection::sent(std::size_t size) {
  output_.erase(0, size);
  if (output_.empty()) output_.shrink_to_fit();
}

short Connection::events() const {
  return output_.empty() ? POLLIN : POLLOUT;
}

Status Connection::serve(short ready) {
  // After POLLHUP or POLLERR, bytes that the runtime sent before can still be read.
  constexpr int kReadable = POLLIN | POLLHUP | POLLERR;
  if ((ready & kReadable) == 0) return send_output();
  std::array<char, kPiece> piece;
  const ssize_t size = ::read(socket_.get(), piece.data(), piece.size());
  const int err = errno;
  if (size == 0 || (size < 0 && is_gone(err))) return ended();
  if (size < 0 && !is_later(err)) return fail_errno(err, "read from the runtime");
  if (size > 0) PODQOS_TRY(feed({piece.data(), static_cast<std::size_t>(size)}));
  return send_output();
}

Status Connection::send_output() {
  while (!output_.empty()) {
    const ssize_t size = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    const int err = errno;
    if (size >= 0) {
      sent(static_cast<std::size_t>(size));
    } else if (is_later(err)) {
      return {};
    } else {
      return is_gone(err) ? ended() : Status{fail_errno(err, "write to the runtime")};
    }
  }
  return {};
}

Result<Reply> Connection::answer(const Call& call) {
  if (call.service != kPluginService) return unimplemented(call);
  if (call.method == kind_of(Request::kConfigure).name) return configure(call);
  if (call.method == kind_of(Request::kSynchronize).name) return synchronize(call);
  // A runtime sends other calls only to plugins that it has synchronized.
  if (progress_ == Progress::kSynchronizing) progress_ = Progress::kSynchronized;
  // The end of the connection says the same as a Shutdown. The others were not asked for.
  constexpr std::array<std::string_view, 5> kIgnored = {"Shutdown", "PostCreateContainer",
                                                        "PostStartContainer", "PostUpdateContainer",
                                                        "PostUpdatePodSandbox"};
  if (std::ranges::find(kIgnored, call.method) != kIgnored.end()) return std::string{};
  return handle(call);
}

Reply Connection::configure(const Call& call) {
  const auto request = parse_configure_request(call.payload);
  if (!request) return malformed(call);
  if (auto done = handler_->configure(*request); !done) return failure(std::move(done).error());
  progress_ = Progress::kConfigured;
  const bool newest = options_.newest_events || !request->nri_version.empty();
  return format_configure_response(newest ? kNewestEvents : kOldestEvents);
}

Result<Reply> Connection::synchronize(const Call& call) {
  const auto start = options_.clock->now();
  progress_ = Progress::kSynchronizing;
  auto last = node_state_.add(call.payload, options_.node_state_bytes);
  if (!last && last.error().code == ErrorCode::kTooLarge) return fail(std::move(last).error());
  if (!last) return malformed(call);
  // The runtime sends the next part only after an answer with `more` and without updates.
  if (!*last) return kMoreResponse;
  if (auto done = handler_->synchronize(std::exchange(node_state_, {})); !done)
    return failure(std::move(done).error());
  if (is_in_time(options_.clock->now() - start, call.budget)) progress_ = Progress::kSynchronized;
  return std::string{};
}

Reply Connection::handle(const Call& call) {
  const bool named = call.method == "StateChange";
  const auto* kind = std::ranges::find(kRequests, call.method, &RequestKind::name);
  if (!named && kind == kRequests.end()) return unimplemented(call);
  const auto event = parse_event(call.payload, named ? kStateChange : kind->fields);
  if (!event) return malformed(call);
  if (named) {
    kind = std::ranges::find(kRequests, event->number, &RequestKind::event);
    if (event->number == 0 || kind == kRequests.end()) return std::string{};
  }
  const auto request = static_cast<Request>(kind - kRequests.begin());
  auto answer = handler_->handle(request, *event, call.budget);
  if (!answer) return failure(std::move(answer).error());
  return std::move(*answer);
}

}  // namespace podqos::nri
