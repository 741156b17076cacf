#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_faults.h"
#include "tests/unit/test_clock.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using faults::kDeadline;
using faults::only;
using faults::SystemdFaults;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace podqos::cgroup
