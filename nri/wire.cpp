#include "nri/wire.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "nri/protobuf.h"

namespace podqos::nri {

namespace {

using protozero::pbf_reader;
using protozero::pbf_tag_type;
using protozero::pbf_writer;

/// The number in the first four bytes.
/// @param bytes  at least four
std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4))
    number = (number << 8U) | static_cast<unsigned char>(byte);
  return number;
}

/// Appends a number as four bytes.
void append_u32(std::string& out, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    out += static_cast<char>((number >> shift) & 0xffU);
}

/// Moves bytes from the front of `input` to the end of `out` until `out` has `size` bytes.
/// @param out  has at most `size` bytes
/// @return whether `out` is complete.
bool fill_up(std::string& out, std::size_t size, std::string_view& input) {
  const std::string_view taken = input.substr(0, size - out.size());
  out += taken;
  input.remove_prefix(taken.size());
  return out.size() == size;
}

/// Largest message that is sent as one frame: the read buffer of the Go side.
constexpr std::size_t kLargestWholeMessage = 4096;

/// Appends one frame with its header.
void append_frame(std::string& out, Channel channel, std::string_view bytes) {
  append_u32(out, static_cast<std::uint32_t>(channel));
  append_u32(out, static_cast<std::uint32_t>(bytes.size()));
  out += bytes;
}

/// Offset of the type in a message header.
constexpr std::size_t kTypeOffset = 8;
/// Maximum size of an error's text in bytes.
constexpr std::size_t kLongestErrorText = 4096;

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

/// The numbers of an envelope's fields (containerd/ttrpc, request.proto, and google.rpc.Status).
enum RequestField : std::uint8_t { kService = 1, kMethod = 2, kRequestPayload = 3, kTimeout = 4 };
enum ResponseField : std::uint8_t { kStatus = 1, kResponsePayload = 2 };
enum StatusField : std::uint8_t { kCode = 1, kErrorText = 2 };

/// `text` as valid UTF-8: each byte that is not part of a character becomes '?', and text beyond
/// kLongestErrorText is cut off between two characters.
std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t character = codec::utf8_length(text);
    const std::size_t size = std::max<std::size_t>(character, 1);
    if (out.size() + size > kLongestErrorText) break;
    out += character == 0 ? "?" : text.substr(0, size);
    text.remove_prefix(size);
  }
  return out;
}

/// The envelope of an error response.
std::string envelope_of(const CallError& error) {
  std::string out;
  pbf_writer response{out};
  pbf_writer status{response, kStatus};
  status.add_int32(kCode, static_cast<std::int32_t>(error.code));
  status.add_string(kErrorText, valid_utf8(error.text));
  status.commit();
  return out;
}

}  // namespace

Result<std::optional<Message>> MessageReader::next(std::string_view& input) {
  while (true) {
    if (left_ > 0) {
      if (input.empty()) return std::nullopt;
      const std::string_view all = input.substr(0, left_);
      std::string_view bytes = all;
      auto message = take(bytes);
      const std::size_t taken = all.size() - bytes.size();
      input.remove_prefix(taken);
      left_ -= static_cast<std::uint32_t>(taken);
      if (message) return message;
      continue;
    }
    if (!fill_up(header_, kFrameHeaderSize, input)) return std::nullopt;
    const std::uint32_t size = read_u32(std::string_view{header_}.substr(4));
    if (size > kMaxFrameSize) {
      return fail(ErrorCode::kTooLarge, cat("a frame of ", size, " bytes for connection ",
                                            read_u32(header_), ", at most ", kMaxFrameSize));
    }
    channel_ = Channel{read_u32(header_)};
    left_ = size;
    header_.clear();
  }
}

std::optional<Message> MessageReader::take(std::string_view& input) {
  if (channel_ != Channel::kPlugin && channel_ != Channel::kRuntime) {
    input = {};
    return std::nullopt;
  }
  Partial& partial = channel_ == Channel::kPlugin ? to_plugin_ : to_runtime_;
  if (!fill_up(partial.header, kMessageHeaderSize, input)) return std::nullopt;
  const std::uint32_t size = read_u32(partial.header);
  const bool oversized = size > kMaxMessageSize;
  if (oversized) {
    const std::size_t piece = std::min<std::size_t>(size - partial.skipped, input.size());
    input.remove_prefix(piece);
    partial.skipped += static_cast<std::uint32_t>(piece);
    if (partial.skipped < size) return std::nullopt;
  } else {
    partial.payload.reserve(size);
    if (!fill_up(partial.payload, size, input)) return std::nullopt;
  }
  Partial whole = std::exchange(partial, {});
  return Message{.channel = channel_,
                 .type = MessageType{static_cast<std::uint8_t>(whole.header[kTypeOffset])},
                 .stream = read_u32(std::string_view{whole.header}.substr(4)),
                 .payload = std::move(whole.payload),
                 .oversized = oversized};
}

void append_frames(std::string& out, Channel channel, std::string_view message) {
  if (message.size() <= kLargestWholeMessage) {
    append_frame(out, channel, message);
    return;
  }
  append_frame(out, channel, message.substr(0, kMessageHeaderSize));
  append_frame(out, channel, message.substr(kMessageHeaderSize));
}

std::string encode_request(std::uint32_t stream, const Call& call) {
  std::string envelope;
  pbf_writer request{envelope};
  request.add_string(kService, call.service);
  request.add_string(kMethod, call.method);
  if (!call.payload.empty()) request.add_bytes(kRequestPayload, call.payload);
  if (call.budget) request.add_int64(kTimeout, call.budget->count());
  return encode(stream, MessageType::kRequest, envelope);
}

std::string encode_response(std::uint32_t stream, const Reply& reply) {
  if (!reply) return encode(stream, MessageType::kResponse, envelope_of(reply.error()));
  std::string envelope;
  // An empty answer has no bytes.
  if (!reply->empty()) pbf_writer{envelope}.add_bytes(kResponsePayload, *reply);
  return encode(stream, MessageType::kResponse, envelope);
}

Result<Call> parse_call(std::string_view payload) {
  return parse_message("ttrpc request", payload, [](const pbf_reader& reader) {
    Call call;
    std::int64_t timeout = 0;
    read_fields(reader, text(kService, call.service), text(kMethod, call.method),
                text(kRequestPayload, call.payload), number(kTimeout, timeout));
    if (timeout > 0) call.budget = std::chrono::nanoseconds{timeout};
    return call;
  });
}

Result<std::string> parse_answer(std::string_view payload) {
  std::string answer;
  std::int32_t code = 0;
  std::string error;
  PODQOS_TRY(parse_message("ttrpc response", payload, [&](const pbf_reader& reader) {
    read_fields(reader,
                message(kStatus,
                        [&](const pbf_reader& status) {
                          read_fields(status, number(kCode, code), text(kErrorText, error));
                        }),
                text(kResponsePayload, answer));
    return true;
  }));
  if (code == 0) return answer;
  return fail(ErrorCode::kIo,
              cat("refused with code ", code, ": \"", printable(error, kLongestErrorText), "\""));
}

}  // namespace podqos::nri
