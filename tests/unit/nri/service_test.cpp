#include "nri/service.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string>

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
using test::RuntimePeer;
using test::ServiceTest;
using test::u32;
using ::testing::ElementsAre;

TEST_F(ServiceTest, ServesARuntimeUntilItIsToldToStop) {
  start_synchronized();
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(connection_->ends());
  EXPECT_THAT(handler_.heard, ElementsAre("configure  ", "synchronize 0 0", "start "));
  EXPECT_EQ(status_.connections, 1U);
  EXPECT_EQ(logged("connected to the runtime at " + options_.socket + " (process "), 1);
  EXPECT_EQ(logged("synchronized with the runtime at " + options_.socket), 1);
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
  connection_->close();
  clock_.pass(10ms);
  turn_away();
  EXPECT_TRUE(stop());
  EXPECT_EQ(attempts_to_hold_, 4);  // it stays the only one
  EXPECT_EQ(status_.connections, 2U);
  EXPECT_EQ(logged("another plugin; standing by until that one ends"), 1);
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
  connection_->close();
  clock_.pass(10ms);
  welcome();
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, EndsAConnectionThatBreaksALimit) {
  start_synchronized();
  EXPECT_TRUE(connection_->send(u32(1) + u32(5U << 20U)));
  EXPECT_TRUE(connection_->ends());
  clock_.pass(10ms);
  welcome();
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: a frame of 5242880 bytes for connection 1, at most 4194314"), 1);
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

TEST_F(ServiceTest, ObeysNoRuntimeWhosePidsAreNotItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a pid namespace";
  const Pipe listens;
  const pid_t outside = start_child([&] {
    ASSERT_EQ(::unshare(CLONE_NEWPID), 0);
    const pid_t first = start_child([&] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const RuntimePeer runtime{options_.socket};
      listens.tell();
      ::pause();
    });
    static_cast<void>(wait_for(first));
  });
  listens.await();
  start();
  clock_.settle();
  EXPECT_TRUE(stop());
  ::kill(outside, SIGKILL);
  static_cast<void>(wait_for(outside));
  EXPECT_EQ(status_.connections, 0U);
  EXPECT_EQ(logged(options_.socket + ": the runtime is in a different pid namespace "
                                     "than this plugin"),
            1);
  EXPECT_EQ(logged("hostPID: true"), 1);
}

}  // namespace
}  // namespace podqos::nri
