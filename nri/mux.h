#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

/// Several byte streams over one socket, as containerd/nri does it (pkg/net/multiplex). A frame is
/// u32 connection, u32 length, that many bytes; both numbers are big endian. Nothing opens or
/// closes a connection: all live and die with the socket.
namespace podqos::nri {

/// The connections that NRI uses.
enum class Connection : std::uint8_t {
  kPlugin = 1,   ///< the runtime calls the plugin
  kRuntime = 2,  ///< the plugin calls the runtime
};

constexpr std::size_t kFrameHeaderSize = 8;
/// The largest frame that is written or accepted: a ttrpc message of 4 MiB and its header.
constexpr std::uint32_t kMaxFrameSize = (std::uint32_t{4} << 20U) + 10;

/// Bytes that came over one connection.
struct ConnectionBytes {
  Connection connection = Connection::kPlugin;
  std::string_view bytes;

  friend bool operator==(const ConnectionBytes&, const ConnectionBytes&) = default;
};

/// Takes a trunk's bytes apart, in pieces of any size. Holds no more than one frame's header.
class MuxReader {
 public:
  /// Takes the next bytes of a known connection off the front of `input`, which they point into.
  /// What came for any other connection is thrown away.
  /// @return nullopt when `input` is used up; kTooLarge for a frame above kMaxFrameSize, after
  /// which the trunk cannot be read any further.
  [[nodiscard]] Result<std::optional<ConnectionBytes>> next(std::string_view& input);

 private:
  std::string header_;  ///< of the frame that begins
  std::uint32_t connection_ = 0;
  std::uint32_t left_ = 0;  ///< bytes of the current frame that are still to come
};

/// Appends one whole ttrpc message, header included, as frames.
/// @note The Go side wants a message's header and payload in one Read of 4096 bytes, or the payload
/// by itself: longer messages are rejected ("cannot allocate memory") unless their header has a
/// frame of its own. It queues 256 frames only, so the payload is not cut any further.
void append_frames(std::string& out, Connection connection, std::string_view message);

}  // namespace podqos::nri
