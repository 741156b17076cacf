#include "nri/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/temporary_variable.h"

namespace podqos::nri {
namespace {

using test::connected_pair;
using test::RuntimePeer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
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

TEST(ConnectTo, FindsNoSocketOrOneThatWasLeftBehind) {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path("sock");
  for (const std::string cause : {"No such file or directory", "Connection refused"}) {
    EXPECT_EQ(connect_to(path).error(), (Error{.code = ErrorCode::kNotFound,
                                               .message = "connect to " + path + ": " + cause}));
    const RuntimePeer runtime{path};
  }
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
Result<sys::UniqueFd> launched(const char* socket) {
  const TemporaryVariable variable{"NRI_PLUGIN_SOCKET", socket};
  return inherited_socket();
}

TEST(InheritedSocket, IsNotOneWithoutTheVariable) {
  const auto launch = launched(nullptr);
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->valid());
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
    EXPECT_EQ(launch->get(), fd);
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(InheritedSocket, LooksAtWhatTheDescriptorIs) {
  const auto fault_of = [](const sys::UniqueFd& fd) {
    const auto launch = launched(std::to_string(fd.get()).c_str());
    return launch ? "" : launch.error().message;
  };
  const sys::UniqueFd file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  EXPECT_THAT(fault_of(file),
              EndsWith("get the address of its peer: Socket operation on non-socket"));
  const sys::UniqueFd alone{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_THAT(fault_of(alone), EndsWith("Transport endpoint is not connected"));
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
                             {"Closed", "1000000", "Bad file descriptor"},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(RuntimeAt, NamesTheProcessAtTheOtherEnd) {
  const auto [plugin, runtime] = connected_pair();
  const auto peer = runtime_at(plugin.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->value(), ::getpid());
}

TEST(RuntimeAt, NeedsASocket) {
  const sys::UniqueFd file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  EXPECT_FALSE(runtime_at(file.get()));
}

bool connects(const std::string& path) {
  return connect_to(path).has_value();
}

/// A number that is free now.
std::uint16_t free_port() {
  const sys::UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

class ListenerTest : public ::testing::Test {
 protected:
  [[nodiscard]] Result<sys::UniqueFd> open() const { return listen_at(core::UnixSocket{path_}); }
  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path("metrics.sock");
};

TEST_F(ListenerTest, IsForOwnerAndGroup) {
  const auto listener = open();
  ASSERT_TRUE(listener) << listener.error().message;
  struct stat found{};
  ASSERT_EQ(::lstat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, S_IFSOCK | 0660U);
  EXPECT_TRUE(connects(path_));
  EXPECT_NE(::fcntl(listener->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::fcntl(listener->get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(ListenerTest, ReplacesWhatAnEarlierPluginHasLeft) {
  ASSERT_TRUE(open());
  ASSERT_TRUE(temporary_.has("metrics.sock"));
  ASSERT_FALSE(connects(path_));
  const auto listener = open();
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connects(path_));
}

TEST_F(ListenerTest, LeavesASocketToWhoListensThere) {
  const auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().message, "unix:" + path_ + ": another process is listening on " + path_ +
                                        ": choose another path");
  EXPECT_TRUE(connects(path_));
}

TEST_F(ListenerTest, LeavesFilesAlone) {
  temporary_.write("metrics.sock", "precious");
  const auto listener = open();
  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.error().message,
              HasSubstr(" exists and is not a socket: choose another path"));
  EXPECT_EQ(temporary_.read("metrics.sock"), "precious");
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", path_.c_str()), 0);
  EXPECT_FALSE(open());
  EXPECT_TRUE(temporary_.has("metrics.sock"));
}

TEST_F(ListenerTest, NeedsADirectory) {
  const auto listener = listen_at(core::UnixSocket{temporary_.path("none/metrics.sock")});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(listener.error().message, StartsWith("unix:/"));
}

TEST_F(ListenerTest, ListensOnLoopback) {
  const core::TcpPort port{.host = "127.0.0.1", .port = free_port()};
  const auto listener = listen_at(port);
  ASSERT_TRUE(listener) << listener.error().message;
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  EXPECT_EQ(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(ntohs(bound.sin_port), port.port);
  const auto second = listen_at(port);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("bind: Address already in use"));
}

TEST_F(ListenerTest, ListensOnLoopbackOfVersionSix) {
  const auto listener = listen_at(core::TcpPort{.host = "::1", .port = free_port()});
  if (!listener) GTEST_SKIP() << listener.error().message;
  sockaddr_in6 bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&bound.sin6_addr));
}

}  // namespace
}  // namespace podqos::nri
