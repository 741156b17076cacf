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

#include "common/base/text.h"
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

  SharedClock clock_;
  TemporaryDirectory directory_;
};

TEST_F(SystemdFaults, NobodyListensAnywhere) {
  const std::string left_behind = directory_.path("left-behind");
  ::close(FakeSystemd::listen_at(left_behind, 1));
  Systemd systemd{
      {.addresses = {{.address = "unix:path=" + path()}, {.address = "unix:path=" + left_behind}}}};
  EXPECT_EQ(error_of(systemd.stop("a.slice")),
            (Error{ErrorCode::kNotFound,
                   "StopUnit a.slice: cannot connect to systemd: Failed to connect to socket " +
                       path() + ": No such file or directory; Failed to connect to socket " +
                       left_behind + ": Connection refused" + kNoSystemdRemedy}));
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
  EXPECT_EQ(error_of(systemd.start("a.slice")).code, ErrorCode::kIo);
}

TEST_F(SystemdFaults, ASocketThatIsNotForUsIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a socket that it may not use as nobody";
  const FakeSystemd fake{path(), kAnswersJobs};
  expect_in_child([&] {
    ASSERT_EQ(::setuid(65534), 0);
    const Error error =
        error_of(Systemd{{.addresses = {{.address = fake.address()}}}}.start("a.slice"));
    EXPECT_EQ(error.code, ErrorCode::kPermission);
    EXPECT_THAT(error.message, HasSubstr("Permission denied"));
    EXPECT_THAT(error.message, HasSubstr("run as root"));
  });
}

TEST_F(SystemdFaults, AnAddressThatIsNoneIsAnError) {
  for (const char* address : {"", "/run/systemd/private", "unix:", "nonsense:path=/x"}) {
    const Error error = error_of(Systemd{{.addresses = {{.address = address}}}}.start("a.slice"));
    EXPECT_EQ(error.code, ErrorCode::kIo) << address << ": " << error.message;
  }
}

TEST_F(SystemdFaults, ABusThatDoesNotWelcomeUs) {
  const FakeSystemd fake{path(), [](auto accept) {
                           Session session = authenticated(accept);
                           session.refuse(session.receive().get(),
                                          "org.freedesktop.DBus.Error.LimitsExceeded",
                                          "The maximum number of active connections is reached");
                           session.wait();
                         }};
  Systemd systemd{{.addresses = {{.address = fake.address(), .peer = Peer::kMessageBus}}}};
  EXPECT_EQ(error_of(systemd.start("a.slice")),
            (Error{ErrorCode::kIo, "StartUnit a.slice at " + fake.address() +
                                       ": The maximum number of active connections is reached "
                                       "(org.freedesktop.DBus.Error.LimitsExceeded)"}));
}

constexpr const char* kUnanswered = "before the reply";

struct BrokenCase {
  const char* name;
  const char* when;
  void (*serve)(Session&);
};

class SystemdBroken : public SystemdFaults, public ::testing::WithParamInterface<BrokenCase> {};

TEST_P(SystemdBroken, EndsTheCallEachTime) {
  const FakeSystemd fake{path(), for_ever([](auto accept) {
                           Session session = accept();
                           GetParam().serve(session);
                         })};
  EXPECT_EQ(
      error_of(Systemd{only(fake, clock_)}.start("a.slice")),
      (Error{ErrorCode::kIo, cat("StartUnit a.slice at ", fake.address(), ": connection closed ",
                                 GetParam().when, " (org.freedesktop.DBus.Error.Disconnected)")}));
}

INSTANTIATE_TEST_SUITE_P(
    Table, SystemdBroken,
    ::testing::Values(BrokenCase{"GoneAtOnce", kUnknown, [](Session&) {}},
                      BrokenCase{"GoneInTheAuthentication", kUnknown,
                                 [](Session& session) { static_cast<void>(session.line()); }},
                      BrokenCase{"RefusingWhoWeAre", kUnknown,
                                 [](Session& session) {
                                   static_cast<void>(session.line());
                                   session.send("REJECTED EXTERNAL\r\n");
                                   session.wait();
                                 }},
                      BrokenCase{"GarbageInsteadOfAuthentication", kUnknown,
                                 [](Session& session) {
                                   static_cast<void>(session.line());
                                   // Longer than any line of the authentication.
                                   session.send(std::string(20'000, '\xff'));
                                   session.wait();
                                 }},
                      BrokenCase{"GoneInMidCall", kUnanswered,
                                 [](Session& session) {
                                   session.authenticate();
                                   static_cast<void>(session.receive());
                                 }},
                      BrokenCase{
                          "GarbageInsteadOfAnAnswer", kUnanswered,
                          [](Session& session) { session.reply_with(std::string(64, '\xff')); }},
                      // A little-endian reply whose body has 32 MiB.
                      BrokenCase{"AnAnswerThatIsTooLarge", kUnanswered,
                                 [](Session& session) {
                                   session.reply_with({"l\2\1\1\0\0\0\2\1\0\0\0\0\0\0\0", 16});
                                 }}),
    [](const auto& param) { return param.param.name; });

struct SilentCase {
  const char* name;
  void (*serve)(Session&, const SharedClock&);
};

class SystemdSilent : public SystemdFaults, public ::testing::WithParamInterface<SilentCase> {};

/// That it is not waited for longer is that this returns.
TEST_P(SystemdSilent, IsWaitedForUntilTheDeadline) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = accept();
                           GetParam().serve(session, clock_);
                           clock_.pass(kDeadline);
                           session.wait();
                         }};
  const auto start = clock_.now();
  EXPECT_EQ(error_of(Systemd{only(fake, clock_)}.start("a.slice")),
            (Error{ErrorCode::kTimeout,
                   "StartUnit a.slice at " + fake.address() +
                       ": no reply before the deadline (org.freedesktop.DBus.Error.NoReply); the "
                       "timeout is 200 ms; if systemd hangs, check `systemctl is-system-running` "
                       "and the journal of PID 1"}));
  EXPECT_GE(clock_.now() - start, kDeadline);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SystemdSilent,
    ::testing::Values(SilentCase{"NeverAnsweringTheAuthentication",
                                 [](Session&, const SharedClock&) {}},
                      SilentCase{"NeverEndingTheAuthentication",
                                 [](Session& session, const SharedClock&) {
                                   static_cast<void>(session.line());
                                   session.send("OK 0123456789abcdef0123456789abcdef\r\n");
                                 }},
                      SilentCase{"NeverAnsweringTheCall",
                                 [](Session& session, const SharedClock&) {
                                   session.authenticate();
                                   static_cast<void>(session.receive());
                                 }},
                      SilentCase{"AnsweringAnotherCall",
                                 [](Session& session, const SharedClock&) {
                                   session.authenticate();
                                   const auto call = session.receive();
                                   dbus_message_set_serial(call.get(), 4711);
                                   session.answer_job(call.get());
                                 }},
                      SilentCase{"ChattingWithoutAnAnswer",
                                 [](Session& session, const SharedClock& clock) {
                                   session.authenticate();
                                   for (;; clock.pass(1ms))
                                     session.broadcast("UnitNew");
                                 }},
                      SilentCase{"TellingTheAnswerByteByByte",
                                 [](Session& session, const SharedClock& clock) {
                                   for (int i = 0; i < 1000; ++i, clock.pass(1ms))
                                     session.send("x");
                                 }}),
    [](const auto& param) { return param.param.name; });

/// A megabyte, more than a socket holds.
std::vector<core::UnitProperty> large_properties() {
  return {256, {"Description", std::string(4000, 'x')}};
}

TEST_F(SystemdFaults, ALargeCallArrivesInPiecesOrIsNeverRead) {
  const FakeSystemd good{path(), kAnswersJobs};
  EXPECT_TRUE(Systemd{only(good, clock_)}.set_properties("a.slice", large_properties()));
  const FakeSystemd deaf{directory_.path("deaf"), [this](auto accept) {
                           Session session = authenticated(accept);
                           clock_.pass(kDeadline);
                           ::pause();
                         }};
  Systemd systemd{only(deaf, clock_)};
  EXPECT_EQ(error_of(systemd.set_properties("a.slice", large_properties())).code,
            ErrorCode::kTimeout);
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
  EXPECT_EQ(error_of(Systemd{options}.start("a.slice")).code, ErrorCode::kTimeout);
  EXPECT_EQ(clock.now() - start, kDeadline);
}

TEST_F(SystemdFaults, EachCallHasTheWholeDeadline) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = authenticated(accept);
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
                           Session session = authenticated(accept);
                           clock_.pass(kDeadline);
                           session.wait();
                         }};
  Systemd systemd{only(fake, clock_)};
  EXPECT_FALSE(systemd.start("a.slice"));
  const int before = systemd.round_trips();
  const auto start = clock_.now();
  const Error late = error_of(systemd.stop("a.slice"));
  EXPECT_EQ(clock_.now(), start);
  EXPECT_EQ(late.code, ErrorCode::kTimeout);
  EXPECT_THAT(late.message, StartsWith("StopUnit a.slice: not called, since an earlier call timed "
                                       "out after 200 ms; "));
  EXPECT_EQ(systemd.round_trips(), before);
}

/// The deadline of a request, which its runtime waits for.
TEST_F(SystemdFaults, OneThatIsSilentIsWaitedForUntilTheEndAtMost) {
  const FakeSystemd fake{path(), [](auto accept) {
                           Session session = authenticated(accept);
                           session.wait();
                         }};
  const LeapingClock clock;
  const auto start = clock.now();
  SystemdOptions options = only(fake, clock);
  options.end = start + 120ms;
  Systemd systemd{options};
  EXPECT_EQ(error_of(systemd.start("a.slice")).code, ErrorCode::kTimeout);
  EXPECT_EQ(clock.now() - start, 120ms);
  EXPECT_FALSE(systemd.stop("a.slice"));
  EXPECT_EQ(error_of(Systemd{options}.stop("a.slice")),
            (Error{ErrorCode::kTimeout,
                   "StopUnit a.slice: not called, since the deadline for the reply to the runtime "
                   "has passed"}));
  EXPECT_EQ(clock.now() - start, 120ms);
}

TEST_F(SystemdFaults, TheEndBoundsAllRepliesTogether) {
  const FakeSystemd fake{path(), [this](auto accept) {
                           Session session = authenticated(accept);
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
  EXPECT_EQ(error_of(systemd.start("c.slice")).code, ErrorCode::kTimeout);
}

TEST_F(SystemdFaults, SignalsAndTimersStayAsTheyWere) {
  const FakeSystemd fake{path(), [](auto accept) { static_cast<void>(accept().line()); }};
  expect_in_child([&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGALRM, SIG_IGN);
    EXPECT_FALSE(Systemd{only(fake, clock_)}.start("a.slice"));
    EXPECT_EQ(::signal(SIGPIPE, SIG_DFL), SIG_DFL);
    EXPECT_EQ(::signal(SIGALRM, SIG_DFL), SIG_IGN);
    itimerval timer{};
    ::getitimer(ITIMER_REAL, &timer);
    EXPECT_EQ(timer.it_value.tv_sec + timer.it_value.tv_usec, 0);
  });
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
  expect_in_child([&] {
    for (const char* name :
         {"DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS", "DBUS_STARTER_ADDRESS"}) {
      ::setenv(name, "unix:path=/nowhere", 1);
    }
    ::setenv("DBUS_STARTER_BUS_TYPE", "session", 1);
    ::setenv("DBUS_FATAL_WARNINGS", "1", 1);
    ::setenv("DBUS_VERBOSE", "1", 1);
    ::setenv("HOME", directory_.path().c_str(), 1);
    EXPECT_TRUE(Systemd{only(good, clock_)}.start("a.slice"));
    EXPECT_THAT(error_of(Systemd{only(odd, clock_)}.start("a.slice")).message, HasSubstr(kUnknown));
  });
}

TEST_F(SystemdFaults, UnderTheFilterEveryPathStaysOnTheList) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own syscalls are not on the list";
  if (!has_seccomp()) GTEST_SKIP() << "this kernel, or what emulates it, has no seccomp";
  const FakeSystemd good{path(), kAnswersJobs};
  const FakeSystemd gone{directory_.path("gone"), [](auto accept) {
                           Session session = authenticated(accept);
                           static_cast<void>(session.receive());
                         }};
  const FakeSystemd silent{directory_.path("silent"), [](auto accept) { accept().wait(); }};
  const FakeSystemd deaf{directory_.path("deaf"), [](auto accept) {
                           Session session = authenticated(accept);
                           ::pause();
                         }};
  const sys::UniqueFd full{FakeSystemd::listen_at(directory_.path("full"), 0)};
  expect_in_child([&] {
    ASSERT_TRUE(sys::install_filter(sys::Filter::kHook));
    EXPECT_TRUE(Systemd{only(good, clock_)}.set_properties("a.slice", large_properties()));
    EXPECT_FALSE(Systemd{only(gone, clock_)}.start("a.slice"));
    const LeapingClock leaps;
    EXPECT_FALSE(Systemd{only(silent, leaps)}.start("a.slice"));
    EXPECT_FALSE(Systemd{only(deaf, leaps)}.set_properties("a.slice", large_properties()));
    const SystemdOptions queue{.addresses = {{.address = "unix:path=" + directory_.path("full")}},
                               .deadline = kDeadline,
                               .clock = &leaps};
    EXPECT_FALSE(Systemd{queue}.start("a.slice"));
    EXPECT_FALSE(Systemd{queue}.start("a.slice"));
    EXPECT_FALSE(Systemd{{.addresses = {{.address = "unix:path=/nowhere"}}}}.start("a.slice"));
  });
}

}  // namespace
}  // namespace podqos::cgroup
