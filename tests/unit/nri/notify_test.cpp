#include "nri/notify.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "common/sys/unix_address.h"
#include "tests/unit/nri/service_fixture.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The socket at which systemd listens.
class Systemd {
 public:
  explicit Systemd(const std::string& address)
      : fd_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
    const auto made = sys::UnixAddress::make(address);
    EXPECT_TRUE(made.has_value());
    EXPECT_EQ(::bind(fd_.get(), made->get(), made->size()), 0);
  }
  /// The next message, "" if there is none.
  std::string next() {
    std::array<char, 4096> message{};
    const ssize_t size = ::recv(fd_.get(), message.data(), message.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string{message.data(), static_cast<std::size_t>(size)};
  }

 private:
  sys::UniqueFd fd_;
};

class NotifyTest : public ::testing::Test {
 protected:
  /// Sends a word by each of the functions.
  static void say_all(const Notify& notify) {
    notify.ready("all is well");
    notify.stopping();
    notify.status("two\nlines");
    notify.watchdog();
  }

  TemporaryDirectory temporary_;
  std::string address_ = temporary_.path("notify");
};

TEST_F(NotifyTest, SpeaksAsSdNotifyDoes) {
  Systemd systemd{address_};
  const auto notify = Notify::open({.socket = address_.c_str()});
  ASSERT_TRUE(notify) << notify.error().message;
  say_all(*notify);
  EXPECT_EQ(systemd.next(), "READY=1\nSTATUS=all is well");
  EXPECT_EQ(systemd.next(), "STOPPING=1");
  EXPECT_EQ(systemd.next(), "STATUS=two\\x0alines");
  EXPECT_EQ(systemd.next(), "WATCHDOG=1");
}

TEST_F(NotifyTest, SaysWhenAReloadBegan) {
  Systemd systemd{address_};
  const auto notify = Notify::open({.socket = address_.c_str()});
  ASSERT_TRUE(notify);
  timespec before{};
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &before), 0);
  notify->reloading();
  const std::string said = systemd.next();
  const std::string front = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_THAT(said, StartsWith(front));
  const long long usec = std::stoll(said.substr(front.size()));
  timespec after{};
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &after), 0);
  const auto usec_of = [](const timespec& time) {
    return time.tv_sec * 1'000'000LL + time.tv_nsec / 1000;
  };
  EXPECT_GE(usec, usec_of(before));
  EXPECT_LE(usec, usec_of(after));
}

TEST_F(NotifyTest, KnowsAbstractAddresses) {
  const std::string address = "@podqos-test-" + std::to_string(::getpid());
  Systemd systemd{address};
  const auto notify = Notify::open({.socket = address.c_str()});
  ASSERT_TRUE(notify) << notify.error().message;
  notify->watchdog();
  EXPECT_EQ(systemd.next(), "WATCHDOG=1");
}

TEST_F(NotifyTest, IsSilentWithoutSystemd) {
  for (const char* socket : {static_cast<const char*>(nullptr), ""}) {
    const auto notify = Notify::open({.socket = socket, .watchdog_usec = "1000000"});
    ASSERT_TRUE(notify);
    EXPECT_FALSE(notify->watchdog_interval());
    say_all(*notify);
  }
}

TEST_F(NotifyTest, SurvivesASystemdThatIsGone) {
  const auto notify = Notify::open({.socket = address_.c_str()});
  ASSERT_TRUE(notify);
  say_all(*notify);
  Systemd systemd{address_};
  notify->watchdog();
  EXPECT_EQ(systemd.next(), "WATCHDOG=1");
}

/// It would not end if one of these waited for room.
TEST_F(NotifyTest, DoesNotWaitForASystemdThatHangs) {
  const Systemd systemd{address_};
  const auto notify = Notify::open({.socket = address_.c_str()}, 1h);
  ASSERT_TRUE(notify);
  for (int i = 0; i < 10'000; ++i) {
    notify->watchdog();
    notify->status("all is well");
  }
}

/// Nor this one if it waited for more than it may.
TEST_F(NotifyTest, GivesUpOnASystemdThatHangs) {
  const Systemd systemd{address_};
  const auto notify = Notify::open({.socket = address_.c_str()}, 1us);
  ASSERT_TRUE(notify);
  for (int i = 0; i < 1000; ++i)
    notify->stopping();
}

TEST_F(NotifyTest, HalvesTheWatchdogsTime) {
  const auto notify = Notify::open({.socket = address_.c_str(), .watchdog_usec = "3000000"});
  ASSERT_TRUE(notify);
  EXPECT_EQ(notify->watchdog_interval(), 1500ms);
}

TEST_F(NotifyTest, LeavesAnotherProcessItsWatchdog) {
  const std::string own = std::to_string(::getpid());
  EXPECT_TRUE(
      Notify::open(
          {.socket = address_.c_str(), .watchdog_usec = "3000000", .watchdog_pid = own.c_str()})
          ->watchdog_interval());
  EXPECT_FALSE(
      Notify::open({.socket = address_.c_str(), .watchdog_usec = "3000000", .watchdog_pid = "1"})
          ->watchdog_interval());
}

TEST_F(NotifyTest, RefusesWhatSystemdDoesNotSet) {
  EXPECT_THAT(Notify::open({.socket = "vsock:2:1"}).error().message,
              StartsWith("NOTIFY_SOCKET: \"vsock:2:1\" is not a socket address"));
  for (const char* usec : {"", "x", "0", "-5"}) {
    const auto refused = Notify::open({.socket = address_.c_str(), .watchdog_usec = usec});
    ASSERT_FALSE(refused) << usec;
    EXPECT_THAT(refused.error().message, HasSubstr("expected a positive number of microseconds"));
  }
}

class NotifyingServiceTest : public test::ServiceTest {
 protected:
  void open(const char* watchdog_usec) {
    auto notify = Notify::open({.socket = address_.c_str(), .watchdog_usec = watchdog_usec});
    ASSERT_TRUE(notify);
    notify_ = std::move(*notify);
  }
  std::string address_ = temporary_.path("notify");
  Systemd systemd_{address_};
};

TEST_F(NotifyingServiceTest, IsReadyBeforeTheRuntimeIs) {
  open(nullptr);
  start();
  clock_.settle();
  EXPECT_EQ(systemd_.next(), "READY=1\nSTATUS=waiting for a runtime at " + options_.socket);
  test::RuntimePeer runtime{options_.socket};
  clock_.pass(10ms);
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  clock_.settle();
  EXPECT_THAT(systemd_.next(), StartsWith("STATUS=connected to the runtime at "));
  EXPECT_THAT(systemd_.next(), StartsWith("STATUS=synchronized with the runtime at "));
  send(SIGHUP);
  clock_.settle();
  EXPECT_THAT(systemd_.next(), StartsWith("RELOADING=1\n"));
  EXPECT_THAT(systemd_.next(), StartsWith("READY=1\nSTATUS=synchronized with the runtime at "));
  EXPECT_TRUE(stop());
  EXPECT_EQ(systemd_.next(), "STOPPING=1");
  EXPECT_EQ(systemd_.next(), "");
}

TEST_F(NotifyingServiceTest, KeepsTheWatchdogQuiet) {
  open("40000");
  start();
  clock_.settle();
  EXPECT_THAT(systemd_.next(), StartsWith("READY=1"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(systemd_.next(), "WATCHDOG=1");
    clock_.pass(19ms);
    EXPECT_EQ(systemd_.next(), "");
    clock_.pass(1ms);
  }
  EXPECT_TRUE(stop());
}

}  // namespace
}  // namespace podqos::nri
