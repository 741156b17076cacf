#include "nri/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "nri/messages.h"

namespace podqos::nri {

namespace {

/// The registration is the only call to the runtime.
constexpr std::uint32_t kRegistrationStream = 1;
/// Sent bytes that may stay at the front of the buffer before the unsent ones are moved.
constexpr std::size_t kMaxGap = std::size_t{64} << 10U;

/// Whether `c` is an ASCII digit.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether `c` is allowed in a plugin's name (containerd/nri, pkg/api/plugin.go, CheckPluginName).
bool is_of_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view{"_.+-"}.contains(c);
}

}  // namespace

Status check_identity(const SessionOptions& options) {
  if (options.index.size() != 2 || !std::ranges::all_of(options.index, is_digit)) {
    return fail(ErrorCode::kInvalidArgument, cat("expected a plugin index of two digits, found \"",
                                                 printable(options.index), "\""));
  }
  if (options.name.empty() || !std::ranges::all_of(options.name, is_of_name)) {
    return fail(ErrorCode::kInvalidArgument,
                cat("expected a plugin name of letters, digits and _.+-, found \"",
                    printable(options.name), "\""));
  }
  return {};
}

Session::Session(SessionOptions options, Handler& handler)
    : options_{std::move(options)},
      handler_{&handler},
      dispatch_{options_.events, options_.node_state, handler, *options_.clock} {}

Status Session::begin() {
  if (auto good = check_identity(options_); !good) return good;
  const auto message = encode_request(
      kRegistrationStream, {.service = "nri.pkg.api.v1alpha1.Runtime",
                            .method = "RegisterPlugin",
                            .payload = format_registration(options_.name, options_.index),
                            .budget = std::nullopt});
  if (!message) return fail(message.error());
  registering_ = true;
  return send(Connection::kRuntime, *message);
}

Status Session::feed(std::string_view bytes) {
  if (state_) state_ = read(bytes);
  return state_;
}

Status Session::read(std::string_view bytes) {
  while (true) {
    auto run = mux_.next(bytes);
    if (!run) return fail(std::move(run).error());
    if (!*run) return {};
    std::string_view piece = (*run)->bytes;
    if ((*run)->connection == Connection::kRuntime) {
      while (const auto message = answers_.next(piece))
        read_answer(*message);
      continue;
    }
    while (const auto message = calls_.next(piece)) {
      if (auto done = handle_call(*message); !done) return done;
    }
  }
}

Status Session::handle_call(const Message& message) {
  if (message.type != MessageType::kRequest) return {};
  const auto refuse = [&](StatusCode code, std::string text) {
    return send(Connection::kPlugin,
                encode_response(message.stream,
                                std::unexpected(CallError{.code = code, .text = std::move(text)})));
  };
  if (!message.payload) {
    return refuse(StatusCode::kResourceExhausted,
                  cat("a message of more than ", kMaxMessageSize, " bytes"));
  }
  if (auto opened = streams_.open(message.stream); !opened)
    return refuse(StatusCode::kInvalidArgument, std::move(opened).error().message);
  auto call = parse_call(*message.payload);
  if (!call) return refuse(StatusCode::kInvalidArgument, call.error().message);
  auto reply = dispatch_.answer(*call);
  if (!reply) return fail(std::move(reply).error());
  return send(Connection::kPlugin, encode_response(message.stream, std::move(*reply)));
}

void Session::read_answer(const Message& message) {
  const bool awaited = registering_ && message.type == MessageType::kResponse &&
                       message.stream == kRegistrationStream;
  if (!awaited) return;
  registering_ = false;
  const auto answer =
      message.payload
          ? parse_answer(*message.payload)
          : fail(ErrorCode::kIo, cat("an answer of more than ", kMaxMessageSize, " bytes"));
  refused_ = !answer;
  if (answer)
    handler_->registered({});
  else
    handler_->registered(fail(Error{answer.error()}.with_context("RegisterPlugin")));
}

Status Session::send(Connection connection, std::string_view message) {
  append_frames(output_, connection, message);
  const std::size_t unsent = output_.size() - sent_;
  if (unsent <= options_.unsent_bytes) return {};
  return fail(
      ErrorCode::kTooLarge,
      cat(unsent, " bytes wait for the runtime to read them, at most ", options_.unsent_bytes));
}

std::string_view Session::output() const {
  return std::string_view{output_}.substr(sent_);
}

void Session::sent(std::size_t size) {
  sent_ += size;
  if (sent_ >= output_.size()) {
    sent_ = 0;
    output_.clear();
    if (output_.capacity() > kMaxGap) output_.shrink_to_fit();
  } else if (sent_ > kMaxGap) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
}

Progress Session::progress() const {
  return refused_ ? Progress::kRefused : dispatch_.progress();
}

}  // namespace podqos::nri
