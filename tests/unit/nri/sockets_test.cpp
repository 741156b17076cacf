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

namespace podqos::nri {
namespace {

using test::connected_pair;
using test::RuntimePeer;
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
