#include "nri/sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
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

TEST(InheritedSocket, RefusesWhatIsNoDescriptor) {
  const std::string no_number =
      "expected a file descriptor number as set by a runtime; unset it to connect by path";
  for (const auto& [socket, want] : {std::pair{"", no_number},
                                     {"x3", no_number},
                                     {"2", no_number},
                                     {"-1", no_number},
                                     {"4294967299", no_number},
                                     {"1000000", std::string{"Bad file descriptor"}}}) {
    const auto launch = launched(socket);
    ASSERT_FALSE(launch);
    EXPECT_EQ(launch.error().message, std::string{"NRI_PLUGIN_SOCKET="} + socket + ": " + want);
  }
}

TEST(RuntimeAt, NamesTheProcessAtTheOtherEndOfASocket) {
  const auto [plugin, runtime] = connected_pair();
  const auto peer = runtime_at(plugin.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->value(), ::getpid());
  const sys::UniqueFd file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  EXPECT_FALSE(runtime_at(file.get()));
}

bool connects(const std::string& path) {
  return connect_to(path).has_value();
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

}  // namespace
}  // namespace podqos::nri
