#include "nri/mux.h"

#include "common/base/text.h"
#include "nri/big_endian.h"
#include "nri/ttrpc.h"

namespace podqos::nri {

namespace {

static_assert(kMaxFrameSize == kMaxMessageSize + kMessageHeaderSize);

/// Largest message that is sent as one frame: the read buffer of the Go side.
constexpr std::size_t kLargestWholeMessage = 4096;

/// Whether NRI uses the connection.
bool is_known(std::uint32_t connection) {
  return connection == static_cast<std::uint32_t>(Connection::kPlugin) ||
         connection == static_cast<std::uint32_t>(Connection::kRuntime);
}

/// Appends one frame with its header.
void append_frame(std::string& out, Connection connection, std::string_view bytes) {
  append_u32(out, static_cast<std::uint32_t>(connection));
  append_u32(out, static_cast<std::uint32_t>(bytes.size()));
  out += bytes;
}

}  // namespace

Result<std::optional<ConnectionBytes>> MuxReader::next(std::string_view& input) {
  while (true) {
    if (left_ > 0) {
      if (input.empty()) return std::nullopt;
      const std::string_view bytes = input.substr(0, left_);
      input.remove_prefix(bytes.size());
      left_ -= static_cast<std::uint32_t>(bytes.size());
      if (!is_known(connection_)) continue;
      return ConnectionBytes{.connection = static_cast<Connection>(connection_), .bytes = bytes};
    }
    if (!fill_up(header_, kFrameHeaderSize, input)) return std::nullopt;
    const std::uint32_t size = read_u32(std::string_view{header_}.substr(4));
    if (size > kMaxFrameSize) {
      return fail(ErrorCode::kTooLarge, cat("a frame of ", size, " bytes for connection ",
                                            read_u32(header_), ", at most ", kMaxFrameSize));
    }
    connection_ = read_u32(header_);
    left_ = size;
    header_.clear();
  }
}

void append_frames(std::string& out, Connection connection, std::string_view message) {
  if (message.size() <= kLargestWholeMessage) {
    append_frame(out, connection, message);
    return;
  }
  append_frame(out, connection, message.substr(0, kMessageHeaderSize));
  append_frame(out, connection, message.substr(kMessageHeaderSize));
}

}  // namespace podqos::nri
