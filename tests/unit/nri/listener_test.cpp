#include "nri/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "common/sys/unix_address.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

bool connects(const std::string& path) {
  const sys::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto address = sys::UnixAddress::make(path);
  return ::connect(socket.get(), address->get(), address->size()) == 0;
}

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
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
  [[nodiscard]] Result<Listener> open() const { return Listener::open(core::UnixSocket{path_}); }
  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path("metrics.sock");
};

TEST_F(ListenerTest, IsForOwnerAndGroupAndGoesWithItsFile) {
  {
    const auto listener = open();
    ASSERT_TRUE(listener) << listener.error().message;
    struct stat found{};
    ASSERT_EQ(::lstat(path_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode, S_IFSOCK | 0660U);
    EXPECT_TRUE(connects(path_));
    const int flags = ::fcntl(listener->fd(), F_GETFL);
    EXPECT_NE(flags & O_NONBLOCK, 0);
    EXPECT_EQ(::fcntl(listener->fd(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_FALSE(exists(path_));
}

TEST_F(ListenerTest, ReplacesWhatAKilledPluginHasLeft) {
  {
    const auto address = sys::UnixAddress::make(path_);
    const sys::UniqueFd dead{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ASSERT_EQ(::bind(dead.get(), address->get(), address->size()), 0);
  }
  ASSERT_TRUE(exists(path_));
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
  EXPECT_TRUE(exists(path_));
}

TEST_F(ListenerTest, LeavesTheFileOfItsSuccessor) {
  auto first = open();
  ASSERT_TRUE(first);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const auto second = open();
  ASSERT_TRUE(second);
  {
    const Listener gone = std::move(*first);
  }
  EXPECT_TRUE(connects(path_));
}

TEST_F(ListenerTest, NeedsADirectory) {
  const auto listener = Listener::open(core::UnixSocket{temporary_.path("none/metrics.sock")});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(listener.error().message, StartsWith("unix:/"));
}

TEST_F(ListenerTest, ListensOnLoopback) {
  const core::TcpPort port{.host = "127.0.0.1", .port = free_port()};
  const auto listener = Listener::open(port);
  ASSERT_TRUE(listener) << listener.error().message;
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener->fd(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  EXPECT_EQ(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(ntohs(bound.sin_port), port.port);
  const auto second = Listener::open(port);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("bind: Address already in use"));
}

TEST_F(ListenerTest, ListensOnLoopbackOfVersionSix) {
  const auto listener = Listener::open(core::TcpPort{.host = "::1", .port = free_port()});
  if (!listener) GTEST_SKIP() << listener.error().message;
  sockaddr_in6 bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener->fd(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&bound.sin6_addr));
}

}  // namespace
}  // namespace podqos::nri
