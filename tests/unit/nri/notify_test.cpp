#include "nri/notify.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "common/sys/unix_address.h"
#include "tests/unit/nri/service_fixture.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/temporary_variable.h"

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

/// What a service with these variables reports by.
Result<Notify> opened(const char* socket, const char* watchdog_usec = nullptr,
                      const char* watchdog_pid = nullptr) {
  const TemporaryVariable first{"NOTIFY_SOCKET", socket};
  const TemporaryVariable second{"WATCHDOG_USEC", watchdog_usec};
  const TemporaryVariable third{"WATCHDOG_PID", watchdog_pid};
  return Notify::open();
}

/// Sends a word by each of the functions.
void say_all(const Notify& notify) {
  notify.ready("all is well");
  notify.reloading();
  notify.stopping();
  notify.status("two\nlines");
  notify.watchdog();
}

class NotifyTest : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  std::string address_ = temporary_.path("notify");
};

TEST_F(NotifyTest, SpeaksAsSdNotifyDoes) {
  for (const std::string& address :
       {address_, "@podqos-test-" + std::to_string(::getpid())}) {  // abstract
    Systemd systemd{address};
    const auto notify = opened(address.c_str());
    ASSERT_TRUE(notify) << notify.error().message;
    say_all(*notify);
    for (const char* said : {"READY=1\nSTATUS=all is well", "RELOADING=1", "STOPPING=1",
                             "STATUS=two\\x0alines", "WATCHDOG=1", ""})
      EXPECT_EQ(systemd.next(), said);
  }
}

TEST_F(NotifyTest, IsSilentWithoutSystemd) {
  for (const char* socket : {static_cast<const char*>(nullptr), ""}) {
    const auto notify = opened(socket, "1000000");
    ASSERT_TRUE(notify);
    EXPECT_FALSE(notify->watchdog_interval());
    say_all(*notify);
  }
}

TEST_F(NotifyTest, SurvivesASystemdThatIsGone) {
  const auto notify = opened(address_.c_str());
  ASSERT_TRUE(notify);
  say_all(*notify);
  Systemd systemd{address_};
  notify->watchdog();
  EXPECT_EQ(systemd.next(), "WATCHDOG=1");
}

/// It would take hours if the first ones waited for room, and for ever if the last one did so for
/// more than a second.
TEST_F(NotifyTest, DoesNotWaitLongForASystemdThatHangs) {
  const Systemd systemd{address_};
  const auto notify = opened(address_.c_str());
  ASSERT_TRUE(notify);
  for (int i = 0; i < 10'000; ++i) {
    notify->watchdog();
    notify->status("all is well");
  }
  notify->stopping();
}

TEST_F(NotifyTest, HalvesTheTimeOfItsOwnWatchdog) {
  const std::string own = std::to_string(::getpid());
  for (const char* pid : {static_cast<const char*>(nullptr), own.c_str()})
    EXPECT_EQ(opened(address_.c_str(), "3000000", pid)->watchdog_interval(), 1500ms);
  EXPECT_FALSE(opened(address_.c_str(), "3000000", "1")->watchdog_interval());
}

TEST_F(NotifyTest, RefusesWhatSystemdDoesNotSet) {
  EXPECT_THAT(opened("vsock:2:1").error().message,
              StartsWith("NOTIFY_SOCKET: \"vsock:2:1\" is not a socket address"));
  for (const char* usec : {"", "x", "0", "-5"}) {
    const auto refused = opened(address_.c_str(), usec);
    ASSERT_FALSE(refused) << usec;
    EXPECT_THAT(refused.error().message, HasSubstr("expected a positive number of microseconds"));
  }
}

class NotifyingServiceTest : public test::ServiceTest {
 protected:
  void start_notifying(const char* watchdog_usec) {
    notify_ = *opened(address_.c_str(), watchdog_usec);
    start();
    clock_.settle();
  }
  std::string address_ = temporary_.path("notify");
  Systemd systemd_{address_};
};

TEST_F(NotifyingServiceTest, IsReadyBeforeTheRuntimeIs) {
  start_notifying(nullptr);
  EXPECT_EQ(systemd_.next(), "READY=1\nSTATUS=waiting for a runtime at " + options_.socket);
  runtime_.emplace(options_.socket);
  clock_.pass(40ms);
  welcome();
  clock_.settle();
  EXPECT_THAT(systemd_.next(), StartsWith("STATUS=connected to the runtime at "));
  EXPECT_THAT(systemd_.next(), StartsWith("STATUS=synchronized with the runtime at "));
  send(SIGHUP);
  clock_.settle();
  EXPECT_THAT(systemd_.next(), StartsWith("RELOADING=1"));
  EXPECT_THAT(systemd_.next(), StartsWith("READY=1\nSTATUS=synchronized with the runtime at "));
  EXPECT_TRUE(stop());
  EXPECT_EQ(systemd_.next(), "STOPPING=1");
  EXPECT_EQ(systemd_.next(), "");
}

TEST_F(NotifyingServiceTest, KeepsTheWatchdogQuiet) {
  start_notifying("40000");
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
