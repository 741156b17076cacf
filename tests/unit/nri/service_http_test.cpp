#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/unix_address.h"
#include "nri/service.h"
#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_fixture.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::RuntimePeer;
using test::ServiceTest;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ServiceHttpTest : public ServiceTest {
 protected:
  void SetUp() override {
    auto opened = Listener::open(core::UnixSocket{path_});
    ASSERT_TRUE(opened) << opened.error().message;
    listener_.emplace(std::move(*opened));
  }
  [[nodiscard]] sys::UniqueFd connect() const {
    sys::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto address = sys::UnixAddress::make(path_);
    EXPECT_EQ(::connect(socket.get(), address->get(), address->size()), 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return socket;
  }
  /// The whole answer of a service that runs.
  [[nodiscard]] std::string get(const std::string& path) const {
    const auto socket = connect();
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string text;
    std::array<char, 4096> piece{};
    ssize_t size = 0;
    while ((size = ::read(socket.get(), piece.data(), piece.size())) > 0)
      text.append(piece.data(), static_cast<std::size_t>(size));
    return text;
  }
  /// Asks until the answer has `text` in it.
  [[nodiscard]] bool comes_to_show(std::string_view text) const {
    const auto deadline = steady_clock::now() + test::kTestPatience;
    while (steady_clock::now() < deadline) {
      if (get("/").contains(text)) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  std::string path_ = temporary_.path("http.sock");
};

TEST_F(ServiceHttpTest, ShowsHowItStandsWithTheRuntime) {
  start();
  EXPECT_TRUE(comes_to_show("connect to " + options_.socket + ": No such file or directory"));
  {
    RuntimePeer runtime{options_.socket};
    auto connection = runtime.accept();
    ASSERT_TRUE(connection);
    EXPECT_TRUE(comes_to_show("which has not synchronized the plugin yet"));
    ASSERT_TRUE(connection->welcomes());
    EXPECT_THAT(get("/where"), EndsWith("\r\n\r\n/where: "));  // nothing stands in the way
  }
  EXPECT_TRUE(comes_to_show(": Connection refused"));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, AnswersTheRuntimeWhoeverElseAsks) {
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  // As many as there is room for, who say nothing, half of it, or do not read; and more behind.
  std::vector<sys::UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connect());
    const std::string_view text = i % 3 == 0 ? "GET / HTTP/1.0\r\n\r\n" : "GET / HT";
    if (i % 3 != 2) ::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(connection->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, LetsNoOneKeepItAwake) {
  start();
  const auto stranger = connect();
  std::this_thread::sleep_for(50ms);
  timespec before{};
  clockid_t clock{};
  ASSERT_EQ(::clock_getcpuclockid(0, &clock), 0);
  ASSERT_EQ(::clock_gettime(clock, &before), 0);
  std::this_thread::sleep_for(500ms);
  timespec after{};
  ASSERT_EQ(::clock_gettime(clock, &after), 0);
  const auto used = std::chrono::seconds{after.tv_sec - before.tv_sec} +
                    std::chrono::nanoseconds{after.tv_nsec - before.tv_nsec};
  EXPECT_LT(used, 250ms);
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, EndsWithConnectionsOpen) {
  start();
  const auto stranger = connect();
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(stop());
  char byte = 0;
  EXPECT_EQ(::read(stranger.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace podqos::nri
