#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

/// Several byte streams over one socket, as in containerd/nri, pkg/net/multiplex/mux.go. A frame is
/// u32 connection, u32 length, and that many bytes; both numbers are big-endian. Connections are
/// neither opened nor closed: they exist as long as the socket.
namespace podqos::nri {

/// The connections that NRI uses.
enum class Connection : std::uint8_t {
  kPlugin = 1,   ///< the runtime calls the plugin
  kRuntime = 2,  ///< the plugin calls the runtime
};

constexpr std::size_t kFrameHeaderSize = 8;
/// The largest payload of a frame that is accepted: a ttrpc message of 4 MiB with its header.
constexpr std::uint32_t kMaxFrameSize = (std::uint32_t{4} << 20U) + 10;

/// Bytes received on one connection.
struct ConnectionBytes {
  Connection connection = Connection::kPlugin;
  std::string_view bytes;

  friend bool operator==(const ConnectionBytes&, const ConnectionBytes&) = default;
};

/// Splits the bytes of the socket, in pieces of any size, by connection. Buffers at most one frame
/// header.
class MuxReader {
 public:
  /// Removes the next bytes of a known connection from the front of `input`; the result points into
  /// `input`. Bytes for unknown connections are discarded.
  /// @return nullopt when `input` is used up; kTooLarge for a frame above kMaxFrameSize, which ends
  ///         all reading from the socket.
  [[nodiscard]] Result<std::optional<ConnectionBytes>> next(std::string_view& input);

 private:
  std::string header_;  ///< of the current frame, so far
  std::uint32_t connection_ = 0;
  std::uint32_t left_ = 0;  ///< bytes of the current frame still to be read
};

/// Appends one complete ttrpc message, including its header, as frames.
/// @note The Go side reads a frame with one Read into a buffer of 4096 bytes, and rejects a longer
/// frame that starts with a ttrpc header ("cannot allocate memory"). A longer message is therefore
/// sent as a frame with the header and one with the payload. The payload is not split further,
/// because the Go side queues at most 256 frames.
void append_frames(std::string& out, Connection connection, std::string_view message);

}  // namespace podqos::nri
