#include "nri/connect.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/temporary_variable.h"

namespace podqos::nri {
namespace {

using test::connected_pair;
using test::RuntimePeer;
using ::testing::HasSubstr;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

TEST(ConnectTo, GivesASocketThatNeverWaits) {
  const TemporaryDirectory temporary;
  RuntimePeer runtime{temporary.path("sock")};
  const auto socket = connect_to(temporary.path("sock"));
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(::fcntl(socket->get(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_EQ(::fcntl(socket->get(), F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(runtime.accept());
}

TEST(ConnectTo, FindsNoSocket) {
  const TemporaryDirectory temporary;
  const auto socket = connect_to(temporary.path("sock"));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(socket.error().message,
            "connect to " + temporary.path("sock") + ": No such file or directory");
}

TEST(ConnectTo, FindsASocketThatWasLeftBehind) {
  const TemporaryDirectory temporary;
  {
    const RuntimePeer runtime{temporary.path("sock")};
  }
  const auto socket = connect_to(temporary.path("sock"));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(socket.error().message, HasSubstr("Connection refused"));
}

TEST(ConnectTo, DoesNotWaitForRoom) {
  const TemporaryDirectory temporary;
  const RuntimePeer runtime{temporary.path("sock")};
  std::vector<sys::UniqueFd> waiting;
  Result<sys::UniqueFd> socket;
  // The backlog of the peer is 8.
  for (int i = 0; i < 20 && socket; ++i) {
    socket = connect_to(temporary.path("sock"));
    if (socket) waiting.push_back(std::move(*socket));
  }
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::kBusy);
}

TEST(ConnectTo, RefusesWhatIsNoAddress) {
  EXPECT_EQ(connect_to("nri.sock").error().code, ErrorCode::kInvalidArgument);
}

/// The socket of a plugin that is started with this variable; nullptr: not set.
Result<std::optional<sys::UniqueFd>> launched(const char* socket) {
  const TemporaryVariable variable{"NRI_PLUGIN_SOCKET", socket};
  return inherited_socket();
}

TEST(InheritedSocket, IsNotOneWithoutTheVariable) {
  const auto launch = launched(nullptr);
  ASSERT_TRUE(launch);
  EXPECT_FALSE(*launch);
}

TEST(InheritedSocket, TakesTheSocketOver) {
  auto [plugin, runtime] = connected_pair();
  const int fd = plugin.release();
  ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
  ASSERT_EQ(::fcntl(fd, F_SETFD, 0), 0);
  const std::string number = std::to_string(fd);
  {
    const auto launch = launched(number.c_str());
    ASSERT_TRUE(launch) << launch.error().message;
    ASSERT_TRUE(*launch);
    EXPECT_EQ((*launch)->get(), fd);
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

struct LaunchCase {
  std::string name;
  std::string socket;
  std::string want;
};
class InheritedSocketRefuses : public TestWithParam<LaunchCase> {};

TEST_P(InheritedSocketRefuses, WhatIsNoSocketOfARuntime) {
  const auto launch = launched(GetParam().socket.c_str());
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().message,
            "NRI_PLUGIN_SOCKET=" + GetParam().socket + ": " + GetParam().want);
}

const std::string kNoNumber =
    "expected a file descriptor number as set by a runtime; unset it to connect by path";

INSTANTIATE_TEST_SUITE_P(Table, InheritedSocketRefuses,
                         ValuesIn<LaunchCase>({
                             {"Empty", "", kNoNumber},
                             {"Word", "x3", kNoNumber},
                             {"Stderr", "2", kNoNumber},
                             {"Negative", "-1", kNoNumber},
                             {"Large", "4294967299", kNoNumber},
                             {"Closed", "1000000", "SO_TYPE: Bad file descriptor"},
                         }),
                         [](const auto& c) { return c.param.name; });

/// Why this descriptor is none of a runtime.
std::string fault_of(const sys::UniqueFd& fd) {
  const std::string number = std::to_string(fd.get());
  const auto launch = launched(number.c_str());
  return launch ? "" : launch.error().message.substr(launch.error().message.find(": ") + 2);
}

TEST(InheritedSocket, LooksAtWhatTheDescriptorIs) {
  EXPECT_EQ(fault_of(sys::UniqueFd{::open("/dev/null", O_RDWR | O_CLOEXEC)}),
            "SO_TYPE: Socket operation on non-socket");
  EXPECT_EQ(fault_of(sys::UniqueFd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}),
            "get its peer address: Transport endpoint is not connected");
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const sys::UniqueFd other{ends[1]};
  EXPECT_EQ(fault_of(sys::UniqueFd{ends[0]}), "not a unix stream socket");
}

TEST(PeerOf, NamesTheProcessAtTheOtherEnd) {
  const auto [plugin, runtime] = connected_pair();
  const auto peer = peer_of(plugin.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
}

TEST(PeerOf, NeedsASocket) {
  EXPECT_FALSE(peer_of(-1));
}

}  // namespace
}  // namespace podqos::nri
