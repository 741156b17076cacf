#include <sys/stat.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "common/sys/sandbox.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/child_process.h"
#include "tests/unit/emulation.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// When a connection ended of which it was not known yet who is there.
constexpr const char* kUnknown = "during authentication";

constexpr auto kDeadline = std::chrono::milliseconds{200};

/// @param clock  one that stands still: no time passes but that which a server takes
SystemdOptions only(const FakeSystemd& fake, const sys::Clock& clock) {
  return {.addresses = {{.address = fake.address()}},
          .deadline = kDeadline,
          .restart = std::chrono::milliseconds{0},
          .clock = &clock};
}

/// Serves one connection after the other.
template <class Serve>
auto for_ever(Serve serve) {
  return [serve](auto accept) {
    while (true) {
      try {
        serve(accept);
      } catch (const Session::Gone&) {
        continue;
      }
    }
  };
}

class SystemdFaults : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.path("private"); }

  /// Expects that the server keeps a call waiting until its deadline. That it is not for longer is
  /// that this returns.
  template <class Serve>
  void expect_timeout(Serve serve) const {
    const FakeSystemd fake{path(), serve};
    Systemd systemd{only(fake, clock_)};
    const auto start = clock_.now();
    const auto done = systemd.start("a.slice");
    const auto took = clock_.now() - start;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(),
              (Error{ErrorCode::kTimeout,
                     "StartUnit a.slice at " + fake.address() +
                         ": no reply before the deadline (org.freedesktop.DBus.Error.NoReply); the "
                         "timeout is 200 ms; if systemd hangs, check `systemctl "
                         "is-system-running` and the journal of PID 1"}));
    EXPECT_GE(took, kDeadline);
  }

  /// Expects that the connection to such a server ends, `when`, each time that it is made.
  template <class Serve>
  void expect_broken(Serve serve, const char* when) const {
    const FakeSystemd fake{path(), for_ever(serve)};
    Systemd systemd{only(fake, clock_)};
    const auto done = systemd.start("a.slice");
    ASSERT_FALSE(done);
    EXPECT_EQ(
        done.error(),
        (Error{ErrorCode::kIo, "StartUnit a.slice at " + fake.address() + ": connection closed " +
                                   when + " (org.freedesktop.DBus.Error.Disconnected)"}));
  }

  SharedClock clock_;
  TemporaryDirectory directory_;
};

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

constexpr const char* kUnanswered = "before the reply";

TEST_F(SystemdFaults, GoneAtOnce) {
  expect_broken([](auto accept) { accept(); }, kUnknown);
}
TEST_F(SystemdFaults, GoneInTheAuthentication) {
  expect_broken([](auto accept) { static_cast<void>(accept().line()); }, kUnknown);
}
TEST_F(SystemdFaults, RefusingWhoWeAre) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        static_cast<void>(session.line());
        session.send("REJECTED EXTERNAL\r\n");
        session.wait();
      },
      kUnknown);
}
TEST_F(SystemdFaults, GarbageInsteadOfAuthentication) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        static_cast<void>(session.line());
        // Longer than any line of the authentication.
        session.send(std::string(20'000, '\xff'));
        session.wait();
      },
      kUnknown);
}
TEST_F(SystemdFaults, GoneInMidCall) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
      },
      kUnanswered);
}
TEST_F(SystemdFaults, GarbageInsteadOfAnAnswer) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
        session.send(std::string(64, '\xff'));
        session.wait();
      },
      kUnanswered);
}
TEST_F(SystemdFaults, AnAnswerThatIsTooLarge) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
        // A little-endian reply whose body has 32 MiB.
        session.send(std::string_view{"l\2\1\1\0\0\0\2\1\0\0\0\0\0\0\0", 16});
        session.wait();
      },
      kUnanswered);
}

TEST_F(SystemdFaults, NeverAnsweringTheAuthentication) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    clock_.pass(kDeadline);
    session.wait();
  });
}
TEST_F(SystemdFaults, NeverEndingTheAuthentication) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    static_cast<void>(session.line());
    session.send("OK 0123456789abcdef0123456789abcdef\r\n");
    clock_.pass(kDeadline);
    session.wait();
  });
}
TEST_F(SystemdFaults, NeverAnsweringTheCall) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    session.authenticate();
    static_cast<void>(session.receive());
    clock_.pass(kDeadline);
    session.wait();
  });
}
TEST_F(SystemdFaults, AnsweringAnotherCall) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    session.authenticate();
    const auto call = session.receive();
    dbus_message_set_serial(call.get(), 4711);
    session.answer_job(call.get());
    clock_.pass(kDeadline);
    session.wait();
  });
}
TEST_F(SystemdFaults, ChattingWithoutAnAnswer) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    session.authenticate();
    while (true) {
      session.send(
          TestMessage{dbus_message_new_signal("/org/freedesktop/systemd1",
                                              "org.freedesktop.systemd1.Manager", "UnitNew")}
              .get());
      clock_.pass(1ms);
    }
  });
}
TEST_F(SystemdFaults, TellingTheAnswerByteByByte) {
  expect_timeout([this](auto accept) {
    Session session = accept();
    for (const char byte : std::string(1000, 'x')) {
      session.send(std::string(1, byte));
      clock_.pass(1ms);
    }
  });
}

TEST_F(SystemdFaults, NeverReadingALargeCall) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           clock_.pass(kDeadline);
                           ::pause();
                         }};
  Systemd systemd{only(fake, clock_)};
  // A megabyte, more than a socket holds.
  const std::vector<core::UnitProperty> large(256, {"Description", std::string(4000, 'x')});
  const auto done = systemd.set_properties("a.slice", large);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTimeout) << done.error().message;
}

TEST_F(SystemdFaults, ALargeCallArrivesInPieces) {
  const FakeSystemd fake{path(), kAnswersJobs};
  Systemd systemd{only(fake, clock_)};
  const std::vector<core::UnitProperty> large(256, {"Description", std::string(4000, 'x')});
  EXPECT_TRUE(systemd.set_properties("a.slice", large));
}

/// A PID 1 that is frozen accepts no connection; each client that has given up stays in the queue.
TEST_F(SystemdFaults, AFullQueueOfConnections) {
  const sys::UniqueFd listener{FakeSystemd::listen_at(path(), 0)};
  const LeapingClock clock;
  const SystemdOptions options{
      .addresses = {{.address = "unix:path=" + path()}}, .deadline = kDeadline, .clock = &clock};
  // The queue of a backlog of 0 takes one.
  EXPECT_FALSE(Systemd{options}.start("a.slice"));
  const auto start = clock.now();
  const auto done = Systemd{options}.start("a.slice");
  const auto took = clock.now() - start;
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTimeout) << done.error().message;
  EXPECT_EQ(took, kDeadline);
}

TEST_F(SystemdFaults, EachCallHasTheWholeDeadline) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           while (true) {
                             const auto call = session.receive();
                             clock_.pass(kDeadline - 50ms);
                             session.answer_job(call.get());
                           }
                         }};
  // A node may have any number of pods.
  Systemd systemd{only(fake, clock_)};
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(systemd.start("a.slice"));
}

TEST_F(SystemdFaults, NoCallIsMadeAfterOneThatWasLetPass) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           clock_.pass(kDeadline);
                           session.wait();
                         }};
  Systemd systemd{only(fake, clock_)};
  EXPECT_FALSE(systemd.start("a.slice"));
  const int before = systemd.round_trips();
  const auto start = clock_.now();
  const auto late = systemd.stop("a.slice");
  ASSERT_FALSE(late);
  EXPECT_EQ(clock_.now(), start);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(
      late.error().message,
      StartsWith("StopUnit a.slice: not called, since an earlier call timed out after 200 ms; "));
  EXPECT_EQ(systemd.round_trips(), before);
}

/// The deadline of a request, which its runtime waits for.
TEST_F(SystemdFaults, OneThatIsSilentIsWaitedForUntilTheEndAtMost) {
  const FakeSystemd fake{path(), [](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           session.wait();
                         }};
  const LeapingClock clock;
  const auto start = clock.now();
  SystemdOptions options = only(fake, clock);
  options.end = start + 120ms;
  Systemd systemd{options};
  const auto silent = systemd.start("a.slice");
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kTimeout) << silent.error().message;
  EXPECT_EQ(clock.now() - start, 120ms);
  EXPECT_FALSE(systemd.stop("a.slice"));
  const auto late = Systemd{options}.stop("a.slice");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error(), (Error{ErrorCode::kTimeout,
                                 "StopUnit a.slice: not called, since the deadline for the "
                                 "reply to the runtime has passed"}));
  EXPECT_EQ(clock.now() - start, 120ms);
}

TEST_F(SystemdFaults, TheEndBoundsAllRepliesTogether) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = accept();
                           session.authenticate();
                           for (int i = 0; i < 2; ++i) {
                             const auto call = session.receive();
                             clock_.pass(150ms);
                             session.answer_job(call.get());
                           }
                           static_cast<void>(session.receive());
                           // Less than a call may take.
                           clock_.pass(150ms);
                           session.wait();
                         }};
  SystemdOptions options = only(fake, clock_);
  options.end = clock_.now() + 400ms;
  Systemd systemd{options};
  EXPECT_TRUE(systemd.start("a.slice"));
  EXPECT_TRUE(systemd.start("b.slice"));
  const auto late = systemd.start("c.slice");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout) << late.error().message;
}

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
