#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "nri/connection.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

/// A runtime at the other end of the socket.
class LinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    runtime_ = sys::UniqueFd{ends[0]};
    plugin_fd_ = ends[1];
    ConnectionOptions options;
    options.index = "10";
    options.name = "podqos";
    link_.emplace(sys::UniqueFd{ends[1]}, options, handler_);
    ASSERT_TRUE(link_->begin());
    ASSERT_TRUE(link_->serve(POLLOUT));
    static_cast<void>(heard());
  }

  void say(std::string_view bytes) {
    ASSERT_EQ(::write(runtime_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  /// What the runtime has been sent.
  [[nodiscard]] std::string heard() {
    std::array<char, 4096> text{};
    const ssize_t size = ::read(runtime_.get(), text.data(), text.size());
    return size < 0 ? "" : std::string{text.data(), static_cast<std::size_t>(size)};
  }
  [[nodiscard]] bool has_unread() const {
    char byte = 0;
    return ::recv(plugin_fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }

  test::RecordingHandler handler_;
  sys::UniqueFd runtime_;
  int plugin_fd_ = -1;
  std::optional<Connection> link_;
};

/// A call that is answered at once.
std::string call(std::uint32_t stream) {
  return test::call(stream, "Configure", "");
}

TEST_F(LinkTest, TakesWhatItHasAnswered) {
  say(call(1) + call(3));
  ASSERT_TRUE(link_->serve(POLLIN));
  EXPECT_NE(heard(), "");
  EXPECT_FALSE(has_unread());
}

TEST_F(LinkTest, TakesEachByteOnce) {
  for (const char byte : call(1)) {
    EXPECT_EQ(heard(), "");
    say({&byte, 1});
    ASSERT_TRUE(link_->serve(POLLIN));
    EXPECT_FALSE(has_unread());
  }
  EXPECT_NE(heard(), "");
}

TEST_F(LinkTest, HasNothingToDoWhenNothingHasCome) {
  EXPECT_TRUE(link_->serve(POLLIN));
  EXPECT_EQ(heard(), "");
}

TEST_F(LinkTest, EndsWithTheRuntime) {
  say(call(1));
  runtime_ = {};
  const auto ended = link_->serve(POLLIN | POLLHUP);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace podqos::nri
