#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
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
using test::RuntimePeer;
using test::ServiceTest;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ServiceHttpTest : public ServiceTest {
 protected:
  void SetUp() override {
    auto opened = listen_at(core::UnixSocket{path_});
    ASSERT_TRUE(opened) << opened.error().message;
    listener_ = std::move(*opened);
  }
  [[nodiscard]] sys::UniqueFd connect() const {
    sys::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto address = sys::UnixAddress::make(path_);
    EXPECT_EQ(::connect(socket.get(), address->get(), address->size()), 0);
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

  std::string path_ = temporary_.path("http.sock");
};

TEST_F(ServiceHttpTest, ShowsHowItStandsWithTheRuntime) {
  start();
  clock_.settle();
  EXPECT_THAT(get("/"), HasSubstr("connect to " + options_.socket + ": No such file or directory"));
  {
    RuntimePeer runtime{options_.socket};
    clock_.pass(10ms);
    auto connection = runtime.accept();
    ASSERT_TRUE(connection);
    EXPECT_THAT(get("/"), HasSubstr("which has not synchronized the plugin yet"));
    ASSERT_TRUE(connection->welcomes());
    EXPECT_THAT(get("/where"), EndsWith("\r\n\r\n/where: "));  // nothing stands in the way
  }
  clock_.pass(40ms);
  EXPECT_THAT(get("/"), HasSubstr(": Connection refused"));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, AnswersTheRuntimeWhoeverElseAsks) {
  ASSERT_NO_FATAL_FAILURE(start_synchronized());
  // As many as there is room for, who say nothing, half of it, or do not read; and more behind.
  std::vector<sys::UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connect());
    const std::string_view text = i % 3 == 0 ? "GET / HTTP/1.0\r\n\r\n" : "GET / HT";
    if (i % 3 != 2) ::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, LetsNoOneKeepItAwake) {
  start();
  clock_.settle();
  const auto alone = clock_.left();
  const auto stranger = connect();
  EXPECT_EQ(clock_.left(), alone) << "it waits, and as long as before";
  EXPECT_TRUE(stop());
}

TEST_F(ServiceHttpTest, EndsWithConnectionsOpen) {
  start();
  const auto stranger = connect();
  clock_.settle();
  EXPECT_TRUE(stop());
  char byte = 0;
  EXPECT_EQ(::read(stranger.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace podqos::nri
