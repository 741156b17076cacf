#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "common/sys/unix_address.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/wire.h"

/// A runtime that does what a test tells it, over real sockets.
namespace podqos::nri::test {

/// The runtime's end of one connection.
class PeerConnection {
 public:
  explicit PeerConnection(sys::UniqueFd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  void close() { fd_ = {}; }

  /// false: the plugin has closed the connection before all was sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }

  /// Reads until there is one more message; nullopt: the plugin has closed the connection.
  std::optional<Message> next() {
    while (true) {
      const auto heard = hear(received_);
      if (heard.size() > taken_) return heard[taken_++];
      if (!receive()) return std::nullopt;
    }
  }
  /// Has the plugin closed the connection?
  bool ends() {
    while (receive()) {
    }
    return ended_;
  }

  /// Calls the plugin and gives its answer's payload.
  Result<std::string> ask(const std::string& method, const std::string& payload) {
    static_cast<void>(send(call(stream_, method, payload)));
    const auto answer = next();
    if (!answer || answer->type != MessageType::kResponse || answer->stream != stream_)
      return fail(ErrorCode::kIo, "no answer");
    stream_ += 2;
    return parse_answer(answer->payload);
  }

  /// The plugin registers, and is told that it is welcome.
  bool accepts_registration() {
    const auto heard = next();
    return heard && heard->channel == Channel::kRuntime && heard->type == MessageType::kRequest &&
           send(frame(2, message(heard->stream, 2, "")));
  }
  /// The events that the plugin asks for.
  std::int32_t configure(const std::string& nri_version = "v0.12.2") {
    api::ConfigureRequest request;
    request.set_nri_version(nri_version);
    const auto answer = ask("Configure", request.SerializeAsString());
    api::ConfigureResponse response;
    return answer && response.ParseFromString(*answer) ? response.events() : -1;
  }
  bool synchronize() { return ask("Synchronize", "").has_value(); }
  /// All that a runtime does before the first event.
  bool welcomes() { return accepts_registration() && configure() > 0 && synchronize(); }

 private:
  bool receive() {
    std::array<char, 65536> piece{};
    const ssize_t size = ::read(fd_.get(), piece.data(), piece.size());
    // What it has not read itself when it closes is a reset.
    ended_ = size <= 0;
    if (!ended_) received_.append(piece.data(), static_cast<std::size_t>(size));
    return !ended_;
  }

  sys::UniqueFd fd_;
  std::string received_;
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::uint32_t stream_ = 1;
};

/// Listens at a path until the object goes; the socket's file stays, as a killed runtime leaves it.
class RuntimePeer {
 public:
  explicit RuntimePeer(const std::string& path)
      : fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    ::unlink(path.c_str());
    const auto address = sys::UnixAddress::make(path);
    EXPECT_TRUE(address.has_value());
    EXPECT_EQ(::bind(fd_.get(), address->get(), address->size()), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
  }

  /// Waits for the plugin to connect.
  std::optional<PeerConnection> accept() {
    return PeerConnection{sys::UniqueFd{::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)}};
  }

 private:
  sys::UniqueFd fd_;
};

/// A connected pair: the plugin's end, non-blocking, and the runtime's.
inline std::pair<sys::UniqueFd, PeerConnection> connected_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  return {sys::UniqueFd{ends[0]}, PeerConnection{sys::UniqueFd{ends[1]}}};
}

}  // namespace podqos::nri::test
