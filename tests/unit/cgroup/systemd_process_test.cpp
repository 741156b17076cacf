#include <sys/stat.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "common/sys/sandbox.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_faults.h"
#include "tests/unit/child_process.h"
#include "tests/unit/emulation.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/test_clock.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using faults::for_ever;
using faults::kDeadline;
using faults::kUnknown;
using faults::only;
using faults::SystemdFaults;
using ::testing::HasSubstr;

TEST_F(SystemdFaults, SignalsAndTimersStayAsTheyWere) {
  const FakeSystemd fake{path(), [](auto accept) { static_cast<void>(accept().line()); }};
  const int status = run_in_child([&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGALRM, SIG_IGN);
    EXPECT_FALSE(Systemd{only(fake, clock_)}.start("a.slice"));
    EXPECT_EQ(::signal(SIGPIPE, SIG_DFL), SIG_DFL);
    EXPECT_EQ(::signal(SIGALRM, SIG_DFL), SIG_IGN);
    itimerval timer{};
    ::getitimer(ITIMER_REAL, &timer);
    EXPECT_EQ(timer.it_value.tv_sec + timer.it_value.tv_usec, 0);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SystemdFaults, NoDescriptorStaysOpen) {
  const FakeSystemd fake{path(), for_ever([](auto accept) { static_cast<void>(accept().line()); })};
  const int before = ::dup(0);
  ::close(before);
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(Systemd{only(fake, clock_)}.start("a.slice"));
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(after, before);
}

/// A server that wants a cookie from the home directory instead of the user's id.
constexpr auto kWantsACookie = [](auto accept) {
  Session session = accept();
  static_cast<void>(session.line());
  session.send("REJECTED DBUS_COOKIE_SHA1\r\n");
  if (session.line() != "AUTH DBUS_COOKIE_SHA1 30") ::_exit(1);
  session.send("DATA 6f72675f74657374203120616263\r\n");  // "org_test 1 abc"
  // libdbus has looked for it, in vain.
  if (!session.line().starts_with("ERROR")) ::_exit(1);
  session.send("REJECTED\r\n");
  session.wait();
};

/// What an engine's environment may hold.
TEST_F(SystemdFaults, AHostileEnvironmentChangesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "the server expects root";
  const FakeSystemd good{path(), kAnswersJobs};
  const FakeSystemd odd{directory_.path("odd"), kWantsACookie};
  ::mkdir(directory_.path(".dbus-keyrings").c_str(), 0700);
  // A warning of libdbus's, which DBUS_FATAL_WARNINGS turns into abort(3).
  directory_.write(".dbus-keyrings/org_test", "\xff\xff\n");
  const int status = run_in_child([&] {
    for (const char* name :
         {"DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS", "DBUS_STARTER_ADDRESS"}) {
      ::setenv(name, "unix:path=/nowhere", 1);
    }
    ::setenv("DBUS_STARTER_BUS_TYPE", "session", 1);
    ::setenv("DBUS_FATAL_WARNINGS", "1", 1);
    ::setenv("DBUS_VERBOSE", "1", 1);
    ::setenv("HOME", directory_.path().c_str(), 1);
    EXPECT_TRUE(Systemd{only(good, clock_)}.start("a.slice"));
    const auto refused = Systemd{only(odd, clock_)}.start("a.slice");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(kUnknown));
  });
  EXPECT_EQ(status, 0);
}

class SystemdUnderTheFilter : public SystemdFaults {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the sanitizer's own syscalls are not on the list";
    if (!has_seccomp()) GTEST_SKIP() << "this kernel, or what emulates it, has no seccomp";
  }
};

TEST_F(SystemdUnderTheFilter, EveryPathStaysOnTheList) {
  const FakeSystemd good{path(), kAnswersJobs};
  const FakeSystemd gone{directory_.path("gone"), [](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           static_cast<void>(session.receive());
                         }};
  const FakeSystemd silent{directory_.path("silent"), [](auto accept) { accept().wait(); }};
  const FakeSystemd deaf{directory_.path("deaf"), [](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           ::pause();
                         }};
  const sys::UniqueFd full{FakeSystemd::listen_at(directory_.path("full"), 0)};
  const std::vector<core::UnitProperty> large(256, {"Description", std::string(4000, 'x')});
  const int status = run_in_child([&] {
    ASSERT_TRUE(sys::install_filter(sys::Filter::kHook));
    EXPECT_TRUE(Systemd{only(good, clock_)}.set_properties("a.slice", large));
    EXPECT_FALSE(Systemd{only(gone, clock_)}.start("a.slice"));
    const LeapingClock leaps;
    EXPECT_FALSE(Systemd{only(silent, leaps)}.start("a.slice"));
    EXPECT_FALSE(Systemd{only(deaf, leaps)}.set_properties("a.slice", large));
    const SystemdOptions queue{.addresses = {{.address = "unix:path=" + directory_.path("full")}},
                               .deadline = kDeadline,
                               .clock = &leaps};
    EXPECT_FALSE(Systemd{queue}.start("a.slice"));
    EXPECT_FALSE(Systemd{queue}.start("a.slice"));
    EXPECT_FALSE(Systemd{{.addresses = {{.address = "unix:path=/nowhere"}}}}.start("a.slice"));
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace podqos::cgroup
