#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_faults.h"
#include "tests/unit/child_process.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using faults::for_ever;
using faults::SystemdFaults;
using ::testing::HasSubstr;

TEST_F(SystemdFaults, NobodyListensAnywhere) {
  const std::string left_behind = directory_.path("left-behind");
  ::close(FakeSystemd::listen_at(left_behind, 1));
  Systemd systemd{
      {.addresses = {{.address = "unix:path=" + path()}, {.address = "unix:path=" + left_behind}}}};
  const auto done = systemd.stop("a.slice");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(done.error().message,
            "StopUnit a.slice: cannot connect to systemd: Failed to connect to socket " + path() +
                ": No such file or directory; Failed to connect to socket " + left_behind +
                ": Connection refused" + kNoSystemdRemedy);
  EXPECT_EQ(systemd.round_trips(), 0);
}

TEST_F(SystemdFaults, TheSecondAddressIsTakenWhereNobodyListensAtTheFirst) {
  const std::string left_behind = directory_.path("left-behind");
  ::close(FakeSystemd::listen_at(left_behind, 1));
  for (const std::string& first : {directory_.path("absent"), left_behind}) {
    const std::string second = first + ".second";
    const FakeSystemd fake{second, kAnswersJobs};
    Systemd systemd{
        {.addresses = {{.address = "unix:path=" + first}, {.address = fake.address()}}}};
    const auto done = systemd.start("a.slice");
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(systemd.round_trips(), 1);
  }
}

TEST_F(SystemdFaults, TheSecondAddressIsNotTakenWhereTheFirstAnswersBadly) {
  const FakeSystemd first{path(), for_ever([](auto accept) { accept(); })};
  const FakeSystemd second{directory_.path("second"), kAnswersJobs};
  Systemd systemd{
      {.addresses = {{.address = first.address()}, {.address = second.address()}}, .restart = 0ms}};
  const auto done = systemd.start("a.slice");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kIo);
}

TEST_F(SystemdFaults, ASocketThatIsNotForUsIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a socket that it may not use as nobody";
  const FakeSystemd fake{path(), kAnswersJobs};
  const int status = run_in_child([&] {
    ASSERT_EQ(::setuid(65534), 0);
    const auto done = Systemd{{.addresses = {{.address = fake.address()}}}}.start("a.slice");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kPermission);
    EXPECT_THAT(done.error().message, HasSubstr("Permission denied"));
    EXPECT_THAT(done.error().message, HasSubstr("run as root"));
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SystemdFaults, AnAddressThatIsNoneIsAnError) {
  for (const char* address : {"", "/run/systemd/private", "unix:", "nonsense:path=/x"}) {
    const auto done = Systemd{{.addresses = {{.address = address}}}}.start("a.slice");
    ASSERT_FALSE(done) << address;
    EXPECT_EQ(done.error().code, ErrorCode::kIo) << done.error().message;
  }
}

TEST_F(SystemdFaults, ABusThatDoesNotWelcomeUs) {
  const FakeSystemd fake{path(), [](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           session.refuse(session.receive().get(),
                                          "org.freedesktop.DBus.Error.LimitsExceeded",
                                          "The maximum number of active connections is reached");
                           session.wait();
                         }};
  Systemd systemd{{.addresses = {{.address = fake.address(), .peer = Peer::kMessageBus}}}};
  const auto done = systemd.start("a.slice");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(),
            (Error{ErrorCode::kIo, "StartUnit a.slice at " + fake.address() +
                                       ": The maximum number of active connections is reached "
                                       "(org.freedesktop.DBus.Error.LimitsExceeded)"}));
}

}  // namespace
}  // namespace podqos::cgroup
