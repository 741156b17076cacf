#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

/// Calls over one connection, as containerd/ttrpc does them. A message is u32 length, u32 stream,
/// u8 type, u8 flags, and that many bytes: an envelope in protobuf (nri/ttrpc.proto). A stream is
/// one call with its answer; the caller chooses its number, odd and higher than all before.
namespace podqos::nri {

constexpr std::size_t kMessageHeaderSize = 10;
/// Without the header. What is longer is neither sent nor kept.
constexpr std::uint32_t kMaxMessageSize = std::uint32_t{4} << 20U;

enum class MessageType : std::uint8_t {
  kRequest = 1,
  kResponse = 2,
};

/// The codes of gRPC that are sent.
enum class StatusCode : std::uint8_t {
  kUnknown = 2,  ///< what a Go handler's plain error becomes
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
};

/// A failed call, as it goes over the wire.
struct CallError {
  StatusCode code = StatusCode::kUnknown;
  std::string text;

  friend bool operator==(const CallError&, const CallError&) = default;
};

/// The payload of an answer, or why there is none.
using Reply = std::expected<std::string, CallError>;

/// How long the caller will wait from when it sent the call; nullopt: it did not say.
using Budget = std::optional<std::chrono::nanoseconds>;

struct Call {
  std::string service;
  std::string method;
  std::string payload;
  Budget budget;

  friend bool operator==(const Call&, const Call&) = default;
};

struct Message {
  MessageType type = MessageType::kRequest;
  std::uint32_t stream = 0;
  /// Valid until the reader is asked again; nullopt if it was longer than kMaxMessageSize.
  std::optional<std::string_view> payload;

  friend bool operator==(const Message&, const Message&) = default;
};

/// Takes a connection's bytes apart, in pieces of any size. Holds at most one message.
class MessageReader {
 public:
  /// Takes bytes off the front of `input` up to the end of the next request or response; messages
  /// of other types are stepped over. nullopt when `input` is used up.
  [[nodiscard]] std::optional<Message> next(std::string_view& input);

 private:
  /// The payload, once it is complete: in `input`, or collected.
  [[nodiscard]] std::optional<std::string_view> read_payload(std::string_view& input);
  /// Throws away what has come of the payload; true when that was all of it.
  [[nodiscard]] bool skip_payload(std::string_view& input);

  std::string header_;
  std::string payload_;
  std::uint32_t left_ = 0;  ///< bytes of the payload that are still to come
  bool in_payload_ = false;
};

/// Watches the numbers of the streams that a caller opens.
class StreamOrder {
 public:
  /// kInvalidArgument for one that is even, or not above all before.
  [[nodiscard]] Status open(std::uint32_t stream);

 private:
  std::uint32_t last_ = 0;
};

/// A whole message. @param call  its envelope may have at most kMaxMessageSize bytes: kTooLarge.
[[nodiscard]] Result<std::string> encode_request(std::uint32_t stream, const Call& call);
/// A whole message; one that is too large becomes an error's (kResourceExhausted). An error's text
/// becomes UTF-8 of at most 4096 bytes: the Go side fails a call for anything else.
[[nodiscard]] std::string encode_response(std::uint32_t stream, Reply reply);

/// The payload of a request. kInvalidArgument if it is none.
[[nodiscard]] Result<Call> parse_call(std::string_view payload);
/// The payload of a response. kIo: the callee answers with an error, or with nothing readable.
[[nodiscard]] Result<std::string> parse_answer(std::string_view payload);

}  // namespace podqos::nri
