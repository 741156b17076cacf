#include "nri/ttrpc.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "nri/big_endian.h"
#include "nri/ttrpc.pb.h"
#include "nri/utf8.h"

namespace podqos::nri {

namespace {

/// Offset of the type in a message header.
constexpr std::size_t kTypeOffset = 8;
/// Capacity of the buffer above which it is freed after use: a split Synchronize needs megabytes.
constexpr std::size_t kKeptCapacity = std::size_t{64} << 10U;
/// Maximum size of an error's text in bytes.
constexpr std::size_t kLongestErrorText = 4096;

/// Whether a type is that of a request or response.
bool is_call(std::uint8_t type) {
  return type == static_cast<std::uint8_t>(MessageType::kRequest) ||
         type == static_cast<std::uint8_t>(MessageType::kResponse);
}

/// Encodes a message. The envelope may be empty: an empty answer has no bytes.
std::string encode(std::uint32_t stream, MessageType type, std::string_view envelope) {
  std::string out;
  out.reserve(kMessageHeaderSize + envelope.size());
  append_u32(out, static_cast<std::uint32_t>(envelope.size()));
  append_u32(out, stream);
  out += static_cast<char>(type);
  out += '\0';  // flags: a call with one request and one response has none
  out += envelope;
  return out;
}

/// The envelope of an error response.
std::string envelope_of(const CallError& error) {
  ttrpc::Response response;
  response.mutable_status()->set_code(static_cast<std::int32_t>(error.code));
  response.mutable_status()->set_message(valid_utf8(error.text, kLongestErrorText));
  return response.SerializeAsString();
}

/// Parses a protobuf message; false for malformed bytes.
bool parse(google::protobuf::MessageLite& message, std::string_view bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::optional<Message> MessageReader::next(std::string_view& input) {
  while (true) {
    if (!in_payload_) {
      if (!fill_up(header_, kMessageHeaderSize, input)) return std::nullopt;
      left_ = read_u32(header_);
      in_payload_ = true;
      payload_.clear();
      if (payload_.capacity() > kKeptCapacity) payload_.shrink_to_fit();
    }
    const auto type = static_cast<std::uint8_t>(header_[kTypeOffset]);
    Message message{.type = MessageType{type},
                    .stream = read_u32(std::string_view{header_}.substr(4)),
                    .payload = std::nullopt};
    const bool kept = is_call(type) && read_u32(header_) <= kMaxMessageSize;
    if (kept) {
      message.payload = read_payload(input);
      if (!message.payload) return std::nullopt;
    } else if (!skip_payload(input)) {
      return std::nullopt;
    }
    in_payload_ = false;
    header_.clear();
    if (is_call(type)) return message;
  }
}

std::optional<std::string_view> MessageReader::read_payload(std::string_view& input) {
  const std::string_view piece = input.substr(0, left_);
  input.remove_prefix(piece.size());
  left_ -= static_cast<std::uint32_t>(piece.size());
  // Most messages arrive in one piece, which is not copied.
  if (left_ == 0 && payload_.empty()) return piece;
  // Reserves a bounded amount: the length is the peer's claim.
  constexpr std::size_t kMostAhead = std::size_t{1} << 20U;
  if (payload_.empty()) payload_.reserve(std::min(piece.size() + left_, kMostAhead));
  payload_ += piece;
  if (left_ > 0) return std::nullopt;
  return payload_;
}

bool MessageReader::skip_payload(std::string_view& input) {
  const std::size_t piece = std::min<std::size_t>(left_, input.size());
  input.remove_prefix(piece);
  left_ -= static_cast<std::uint32_t>(piece);
  return left_ == 0;
}

Status StreamOrder::open(std::uint32_t stream) {
  if (stream % 2 == 0) return fail(ErrorCode::kInvalidArgument, cat("stream ", stream, " is even"));
  if (stream <= last_)
    return fail(ErrorCode::kInvalidArgument, cat("stream ", stream, " is not above ", last_));
  last_ = stream;
  return {};
}

Result<std::string> encode_request(std::uint32_t stream, const Call& call) {
  ttrpc::Request request;
  request.set_service(call.service);
  request.set_method(call.method);
  request.set_payload(call.payload);
  if (call.budget) request.set_timeout_nano(call.budget->count());
  const std::string envelope = request.SerializeAsString();
  if (envelope.size() > kMaxMessageSize) {
    return fail(ErrorCode::kTooLarge, cat(call.method, ": a message of ", envelope.size(),
                                          " bytes, at most ", kMaxMessageSize));
  }
  return encode(stream, MessageType::kRequest, envelope);
}

std::string encode_response(std::uint32_t stream, Reply reply) {
  if (!reply) return encode(stream, MessageType::kResponse, envelope_of(reply.error()));
  ttrpc::Response response;
  response.set_payload(std::move(*reply));
  const std::string envelope = response.SerializeAsString();
  if (envelope.size() <= kMaxMessageSize) return encode(stream, MessageType::kResponse, envelope);
  const CallError error{
      .code = StatusCode::kResourceExhausted,
      .text = cat("an answer of ", envelope.size(), " bytes, at most ", kMaxMessageSize)};
  return encode(stream, MessageType::kResponse, envelope_of(error));
}

Result<Call> parse_call(std::string_view payload) {
  ttrpc::Request request;
  if (!parse(request, payload)) return fail(ErrorCode::kInvalidArgument, "not a ttrpc request");
  Call call{.service = std::move(*request.mutable_service()),
            .method = std::move(*request.mutable_method()),
            .payload = std::move(*request.mutable_payload()),
            .budget = std::nullopt};
  if (request.timeout_nano() > 0) call.budget = std::chrono::nanoseconds{request.timeout_nano()};
  return call;
}

Result<std::string> parse_answer(std::string_view payload) {
  ttrpc::Response response;
  if (!parse(response, payload)) return fail(ErrorCode::kIo, "not a ttrpc response");
  if (response.status().code() == 0) return std::move(*response.mutable_payload());
  return fail(ErrorCode::kIo, cat("refused with code ", response.status().code(), ": \"",
                                  printable(response.status().message(), kLongestErrorText), "\""));
}

}  // namespace podqos::nri
