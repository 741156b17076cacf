#include "nri/service.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_fixture.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::call;
using test::frame;
using test::kAllEvents;
using test::kOldestEvents;
using test::kResponse;
using test::message;
using test::RuntimePeer;
using test::ServiceTest;
using test::u32;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ServiceTest, ServesARuntimeUntilItIsToldToStop) {
  start_synchronized();
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(connection_->ends());
  EXPECT_THAT(handler_.heard, ElementsAre("configure  ", "synchronize 0 0", "start "));
  EXPECT_EQ(status_.connections, 1U);
  EXPECT_EQ(logged("connected to the runtime at " + options_.socket + " (process "), 1);
  EXPECT_EQ(logged("synchronized with the runtime at " + options_.socket), 1);
  EXPECT_THAT(recorded_, ElementsAre(StartsWith("connected to the runtime at " + options_.socket),
                                     StartsWith("synchronized with the runtime at ")));
  EXPECT_EQ(logged(" ended: "), 0);
}

TEST_F(ServiceTest, StandsByUntilTheOtherHasEnded) {
  held_at_ = 4;
  runtime_.emplace(options_.socket);
  start();
  clock_.pass(50ms);
  clock_.pass(50ms);
  EXPECT_EQ(clock_.left(), 50ms);
  clock_.pass(50ms);
  welcome();
  close_and_pass(10ms);
  turn_away();
  EXPECT_TRUE(stop());
  EXPECT_EQ(attempts_to_hold_, 4);  // it stays the only one
  EXPECT_EQ(status_.connections, 2U);
  EXPECT_EQ(logged("another plugin; standing by until that one ends"), 1);
  ASSERT_THAT(recorded_, Not(IsEmpty()));
  EXPECT_THAT(recorded_.front(), StartsWith("waiting for a runtime"));
}

TEST_F(ServiceTest, IsNotReadyToFollowWithoutARuntimesSocket) {
  held_at_ = 3;
  start();
  clock_.pass(50ms);
  clock_.pass(50ms);
  EXPECT_TRUE(stop());
  EXPECT_FALSE(status_.standby);
}

/// Nothing tells who serves the runtime: what has started it starts it again.
TEST_F(ServiceTest, EndsWhereTheLockCannotBeTaken) {
  held_at_ = 3;
  hold_refusal_ = ErrorCode::kPermission;
  start();
  const Status ended = join();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kPermission);
}

TEST_F(ServiceTest, EndsAtSigint) {
  start();
  send(SIGINT);
  EXPECT_TRUE(join());
}

TEST_F(ServiceTest, IsNotKeptAwakeByAClientThatSaysNothing) {
  const std::string path = temporary_.path("http.sock");
  listener_ = *listen_at(core::UnixSocket{path});
  start();
  const auto alone = clock_.left();
  const auto client = connect_to(path);
  ASSERT_TRUE(client);
  EXPECT_EQ(clock_.left(), alone) << "it waits, and as long as before";
  EXPECT_TRUE(stop());
  char byte = 0;
  EXPECT_EQ(::read(client->get(), &byte, 1), 0);
}

TEST_F(ServiceTest, LooksForWhatTheRuntimeDoesNotTell) {
  options_.times.housekeeping = 10ms;
  start_synchronized();
  clock_.pass(9ms);
  clock_.pass(1ms);
  clock_.pass(10ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 3);
}

TEST_F(ServiceTest, ServesTheRuntimeBetweenPiecesOfLongWork) {
  options_.times.housekeeping = kLong;
  options_.times.piece = 0ms;
  wanted_housekeepings_ = std::numeric_limits<int>::max();
  start_synchronized();
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  connection_->close();
  EXPECT_TRUE(stop());
  EXPECT_GE(housekeepings_, 3);
}

TEST_F(ServiceTest, LooksForNothingBeforeARuntimeHasSynchronizedIt) {
  options_.times.housekeeping = 10ms;
  start_registered();
  clock_.pass(100ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 0);
}

TEST_F(ServiceTest, TakesFramesByteByByte) {
  start_registered();
  for (const char byte : call(1, "Configure", "\x12\x01x"))
    ASSERT_TRUE(connection_->send({&byte, 1}));
  const auto answer = connection_->next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->payload, "\x12\x03\x10\xaf\x1d");
  // Half a frame is left behind without harm.
  EXPECT_TRUE(connection_->send(call(3, "Synchronize", "").substr(0, 7)));
  close_and_pass(10ms);
  welcome();
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, EndsAConnectionThatBreaksALimit) {
  start_synchronized();
  EXPECT_TRUE(connection_->send(u32(1) + u32(5U << 20U)));
  expect_left(" ended: a frame of 5242880 bytes for connection 1, at most 4194314");
}

TEST_F(ServiceTest, SendsALargeAnswerToARuntimeThatReadsSlowly) {
  handler_.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path(
      std::string(4'000'000, 'x'));
  start_synchronized();
  ASSERT_TRUE(connection_->send(call(101, "CreateContainer", "")));
  clock_.settle();  // it has sent what there is room for
  const auto answer = connection_->next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(parse_answer(answer->payload).value_or("").size(), 4'000'015U);
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, StopsWhileTheRuntimeHangs) {
  // Connected as far as the kernel is concerned, and accepted by nobody.
  const RuntimePeer runtime{options_.socket};
  start();
  clock_.settle();
  EXPECT_TRUE(stop());
  EXPECT_EQ(status_.connections, 1U);
}

TEST_F(ServiceTest, ReloadsAtSighupBetweenRequests) {
  start_synchronized();
  for (int i = 0; i < 3; ++i) {
    send(SIGHUP);
    // Its answer says that the signal has been taken: it was there first.
    EXPECT_TRUE(connection_->ask("StartContainer", ""));
  }
  EXPECT_TRUE(stop());
  EXPECT_EQ(reloads_, 3);
  EXPECT_EQ(status_.connections, 1U);
}

TEST_F(ServiceTest, ObeysRootAndItsOwnUserOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can listen as somebody else";
  ASSERT_EQ(::chmod(temporary_.path().c_str(), 0777), 0);
  const Pipe listens;
  const pid_t stranger = start_child([&] {
    ASSERT_EQ(::setreuid(65534, 65534), 0);
    const RuntimePeer runtime{options_.socket};
    listens.tell();
    ::pause();
  });
  listens.await();
  start();
  clock_.settle();
  EXPECT_TRUE(stop());
  ::kill(stranger, SIGKILL);
  static_cast<void>(wait_for(stranger));
  EXPECT_EQ(status_.connections, 0U);
  EXPECT_EQ(logged("of user 65534 is listening there, but podqos accepts only a runtime of root"),
            1);
}

TEST_F(ServiceTest, WaitsForARuntimeThatIsNotThereYet) {
  start();
  for (int attempt = 0; attempt < 10; ++attempt)
    clock_.pass(40ms);
  runtime_.emplace(options_.socket);
  clock_.pass(40ms);
  welcome();
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("connect to " + options_.socket +
                   ": No such file or directory; waiting for a runtime with NRI enabled, see"),
            1);
}

TEST_F(ServiceTest, ComesBackWhenTheRuntimeDoes) {
  start_at_runtime();
  for (int life = 0; life < 3; ++life) {
    welcome();
    // A runtime that is killed leaves its socket's file behind.
    runtime_.reset();
    connection_->close();
    clock_.pass(40ms);
    runtime_.emplace(options_.socket);
    clock_.pass(40ms);
  }
  accept();
  EXPECT_TRUE(stop());
  EXPECT_EQ(status_.connections, 4U);
  EXPECT_EQ(logged(" ended: closed by the runtime; retrying in "), 3);
  EXPECT_EQ(logged("connect to " + options_.socket + ": Connection refused"), 3);
  EXPECT_EQ(logged(" warning: "), 3);
}

TEST_F(ServiceTest, TriesAgainEverMoreSlowly) {
  options_.times.first_retry = 50ms;
  options_.times.longest_retry = 200ms;
  start_at_runtime();
  std::vector<std::chrono::nanoseconds> pauses;
  for (int i = 0; i < 5; ++i) {
    turn_away();
    pauses.push_back(clock_.left().value());
    clock_.pass(pauses.back());
  }
  EXPECT_TRUE(stop());
  EXPECT_THAT(pauses, ElementsAre(50ms, 100ms, 200ms, 200ms, 200ms));
  for (const std::string pause : {"50", "100"})
    EXPECT_EQ(logged("retrying in " + pause + " ms"), 1) << pause;
  EXPECT_EQ(logged("retrying in 200 ms"), 3);
}

TEST_F(ServiceTest, TriesSoonAgainAfterAConnectionThatWasGood) {
  start_at_runtime();
  for (int i = 0; i < 4; ++i) {
    turn_away();
    clock_.pass(40ms);
  }
  welcome();
  clock_.pass(40ms);
  close_and_pass(10ms);
  turn_away();
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("retrying in 10 ms"), 2);
}

/// An engine that is restarted again and again: no pod of the gaps is placed.
TEST_F(ServiceTest, HurriesAfterARuntimeThatHadSynchronizedItHoweverShortly) {
  options_.times.longest_retry = kLong;
  start_at_runtime();
  for (int restart = 0; restart < 5; ++restart) {
    welcome();
    connection_->close();
    ASSERT_EQ(clock_.left(), 10ms) << restart;
    clock_.pass(10ms);
  }
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("retrying in 10 ms"), 5);
}

/// Whatever has happened before: a runtime that listens again is another one.
TEST_F(ServiceTest, LooksForAnAbsentRuntimeAtAConstantPace) {
  const std::chrono::milliseconds pace = ServiceTimes{}.absent;
  EXPECT_EQ(pace, 200ms);
  options_.times = {};
  start_at_runtime();
  for (const auto pause : {100ms, 200ms, 400ms, 800ms}) {
    turn_away();
    ASSERT_EQ(clock_.left(), pause);
    clock_.pass(pause);
  }
  turn_away();
  runtime_.reset();  // it leaves a file at which nothing listens
  clock_.pass(1600ms);
  for (int attempt = 0; attempt < 20; ++attempt) {
    ASSERT_EQ(clock_.left(), pace) << attempt;
    clock_.pass(pace);
    if (attempt == 10) {
      EXPECT_EQ(::unlink(options_.socket.c_str()), 0);
    }
  }
  runtime_.emplace(options_.socket);
  clock_.pass(pace);
  turn_away();
  EXPECT_EQ(clock_.left(), 100ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("connect to " + options_.socket + ": Connection refused"), 1);
  EXPECT_EQ(logged("connect to " + options_.socket + ": No such file or directory"), 1);
}

/// A runtime that is there again after a long time does not wait for the events that it knows.
TEST_F(ServiceTest, AsksForTheOldestEventsAtOnce) {
  start();
  for (int attempt = 0; attempt < 3; ++attempt)
    clock_.pass(40ms);
  runtime_.emplace(options_.socket);
  clock_.pass(40ms);
  accept_registration();
  EXPECT_EQ(connection_->configure(""), kAllEvents);
  close_and_pass(10ms);
  accept_registration();
  EXPECT_EQ(connection_->configure(""), kOldestEvents);
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, AsksForOtherEventsAfterADropAtConfigure) {
  start_at_runtime();
  for (const std::int32_t events : {kAllEvents, kOldestEvents, kAllEvents}) {
    accept_registration();
    EXPECT_EQ(connection_->configure(""), events);
    close_and_pass(40ms);
  }
  // A drop at any other time changes nothing.
  turn_away();
  clock_.pass(40ms);
  accept_registration();
  EXPECT_EQ(connection_->configure(""), kOldestEvents);
  EXPECT_TRUE(connection_->synchronize());
  close_and_pass(40ms);
  accept_registration();
  EXPECT_EQ(connection_->configure(""), kAllEvents);
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("closed by the runtime after Configure; requesting another set of events"), 3);
}

constexpr const char* kMorePieces = "\x18\x01";  ///< SynchronizeRequest with `more` set

TEST_F(ServiceTest, LeavesARuntimeThatDoesNotSynchronize) {
  options_.times.synchronize = 50ms;
  start_at_runtime();
  for (int i = 0; i < 2; ++i) {
    accept_registration();
    EXPECT_EQ(connection_->configure(), kAllEvents);
    clock_.pass(49ms);
    EXPECT_EQ(logged(" ended: the runtime did not synchronize the plugin in time"), i);
    clock_.pass(1ms);
    EXPECT_TRUE(connection_->ends());
    clock_.pass(40ms);
  }
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: the runtime did not synchronize the plugin in time"), 2);
}

TEST_F(ServiceTest, LeavesARuntimeWhoseSynchronizeItCouldNotAnswer) {
  options_.times.synchronize = 50ms;
  handler_.synchronize_answer = fail(ErrorCode::kIo, "no");
  start_configured();
  EXPECT_FALSE(connection_->synchronize());
  clock_.pass(50ms);
  expect_left(" ended: the runtime did not synchronize the plugin in time");
}

TEST_F(ServiceTest, StaysWithARuntimeThatHasSynchronizedIt) {
  options_.times.synchronize = 1s;
  options_.times.configure = 1s;
  start_synchronized();
  clock_.pass(1200ms);
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

/// A busy runtime of a full node: each piece comes in time, all of them together do not.
TEST_F(ServiceTest, WaitsWhilePiecesOfASynchronizationCome) {
  options_.times.synchronize = 400ms;
  start_configured();
  for (int piece = 0; piece < 6; ++piece) {
    clock_.pass(399ms);
    ASSERT_TRUE(connection_->ask("Synchronize", kMorePieces)) << piece;
  }
  EXPECT_TRUE(connection_->synchronize());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("in time"), 0);
}

TEST_F(ServiceTest, LeavesARuntimeThatSaysNothing) {
  options_.times.configure = 50ms;
  start_at_runtime();
  accept();
  clock_.pass(50ms);
  expect_left(" ended: the runtime did not configure the plugin in time");
}

TEST_F(ServiceTest, LeavesARuntimeThatRefusesIt) {
  start_at_runtime();
  accept();
  const auto registration = connection_->next();
  ASSERT_TRUE(registration);
  // code 2, "bad"
  EXPECT_TRUE(connection_->send(frame(2, message(1, kResponse,
                                                 "\n\x07\x08\x02\x12\x03"
                                                 "bad"))));
  expect_left(
      " ended: the runtime rejected the plugin's registration: refused with code 2: \"bad\"");
}

}  // namespace
}  // namespace podqos::nri
