#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

/// What goes over the socket between runtime and plugin: the frames of several byte streams
/// (containerd/nri, pkg/net/multiplex/mux.go), and in each stream messages of ttrpc
/// (containerd/ttrpc, PROTOCOL.md). All numbers are big-endian.
///
/// A frame is u32 channel, u32 length, and that many bytes. Channels are neither opened nor closed:
/// they exist as long as the socket. A message is u32 length, u32 stream, u8 type, u8 flags, and
/// that many bytes: an envelope in protobuf. A stream is one call with its answer; the caller
/// chooses its number.
namespace podqos::nri {

/// The channels that NRI uses, of all that a number of 32 bits can name.
// NOLINTNEXTLINE(performance-enum-size): a MessageReader has such a number in it
enum class Channel : std::uint32_t {
  kPlugin = 1,   ///< the runtime calls the plugin
  kRuntime = 2,  ///< the plugin calls the runtime
};

constexpr std::size_t kMessageHeaderSize = 10;
/// Maximum length of a message without the header (containerd/ttrpc, channel.go, messageLengthMax).
constexpr std::uint32_t kMaxMessageSize = std::uint32_t{4} << 20U;

constexpr std::size_t kFrameHeaderSize = 8;
/// The largest payload of a frame that is accepted: a message of that size with its header.
constexpr std::uint32_t kMaxFrameSize = kMaxMessageSize + kMessageHeaderSize;

/// The types of unary messages.
enum class MessageType : std::uint8_t {
  kRequest = 1,
  kResponse = 2,
};

/// The gRPC status codes that the plugin sends.
enum class StatusCode : std::uint8_t {
  kUnknown = 2,  ///< as for a plain error of a Go handler
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
};

/// The error of a failed call.
struct CallError {
  StatusCode code = StatusCode::kUnknown;
  std::string text;
};

/// The payload of an answer, or why there is none.
using Reply = std::expected<std::string, CallError>;

/// The caller's timeout, from the time it sent the call; nullopt: none given.
using Budget = std::optional<std::chrono::nanoseconds>;

/// A request.
struct Call {
  std::string service;  ///< "nri.pkg.api.v1alpha1.Plugin"
  std::string method;   ///< bare name: "CreateContainer"
  std::string payload;  ///< a protobuf message
  Budget budget = {};

  friend bool operator==(const Call&, const Call&) = default;
};

/// A message as received.
struct Message {
  Channel channel;
  MessageType type;  ///< or one of another number
  std::uint32_t stream = 0;
  std::string payload;     ///< the envelope
  bool oversized = false;  ///< it has more than kMaxMessageSize, and is not kept
  friend bool operator==(const Message&, const Message&) = default;
};

/// Splits the bytes of the socket, in pieces of any size, into messages. Buffers one message for
/// each channel; bytes for unknown channels are discarded.
class MessageReader {
 public:
  /// Removes bytes from the front of `input` up to the end of the next message.
  /// @return nullopt when `input` is used up; kTooLarge for a frame above kMaxFrameSize, which ends
  ///         all reading from the socket.
  [[nodiscard]] Result<std::optional<Message>> next(std::string_view& input);

 private:
  /// A message, so far.
  struct Partial {
    std::string header;
    std::string payload;
    std::uint32_t skipped = 0;  ///< bytes of an oversized message
  };
  /// Moves bytes from the front of `input` to the message of the current frame's channel.
  /// @return the message if it is complete.
  [[nodiscard]] std::optional<Message> take(std::string_view& input);

  std::string header_;  ///< of the current frame, so far
  Channel channel_{};
  std::uint32_t left_ = 0;  ///< bytes of the current frame still to be read
  Partial to_plugin_;       ///< of Channel::kPlugin
  Partial to_runtime_;      ///< of Channel::kRuntime
};

/// Encodes a request as a complete message.
[[nodiscard]] std::string encode_request(std::uint32_t stream, const Call& call);
/// Encodes a response as a complete message. The text of an error becomes UTF-8 of at most 4096
/// bytes: the Go side fails a call with other bytes.
[[nodiscard]] std::string encode_response(std::uint32_t stream, const Reply& reply);

/// Appends one complete ttrpc message, including its header, as frames.
/// @note The Go side reads a frame with one Read into a buffer of 4096 bytes, and rejects a longer
/// frame that starts with a ttrpc header ("cannot allocate memory"). A longer message is therefore
/// sent as a frame with the header and one with the payload. The payload is not split further,
/// because the Go side queues at most 256 frames.
void append_frames(std::string& out, Channel channel, std::string_view message);

/// Parses the envelope of a request.
/// @return kInvalidArgument if it is not one.
[[nodiscard]] Result<Call> parse_call(std::string_view payload);
/// The payload of a response.
/// @return kIo: the response is an error, with its code and text; kInvalidArgument: it is not one.
[[nodiscard]] Result<std::string> parse_answer(std::string_view payload);

}  // namespace podqos::nri
