#include "nri/service.h"

#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
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
using test::connected_pair;
using test::frame;
using test::kResponse;
using test::message;
using test::PeerConnection;
using test::RuntimePeer;
using test::ServiceTest;
using test::u32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int32_t kOldestEvents = 0x7ff;
constexpr std::int32_t kAllEvents = 0x1fff;
constexpr const char* kMorePieces = "\x18\x01";  ///< SynchronizeRequest with `more` set

TEST_F(ServiceTest, ServesARuntimeUntilItIsToldToStop) {
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection);
  ASSERT_TRUE(connection->welcomes());
  EXPECT_TRUE(connection->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(connection->ends());
  EXPECT_THAT(handler_.heard,
              ElementsAre("registered", "configure  ", "synchronize 0 0", "start "));
  EXPECT_EQ(status_.connections, 1U);
  EXPECT_EQ(logged("connected to the runtime at " + options_.socket + " (process "), 1);
  EXPECT_EQ(logged("synchronized with the runtime at " + options_.socket), 1);
  EXPECT_EQ(logged(" ended: "), 0);
}

TEST_F(ServiceTest, EndsAtSigint) {
  start();
  send(SIGINT);
  EXPECT_TRUE(join());
}

TEST_F(ServiceTest, WaitsForARuntimeThatIsNotThereYet) {
  start();
  for (int attempt = 0; attempt < 10; ++attempt)
    clock_.pass(40ms);
  RuntimePeer runtime{options_.socket};
  clock_.pass(40ms);
  auto connection = runtime.accept();
  ASSERT_TRUE(connection);
  EXPECT_TRUE(connection->welcomes());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("connect to " + options_.socket +
                   ": No such file or directory; waiting for a runtime with NRI enabled, see"),
            1);
}

TEST_F(ServiceTest, ComesBackWhenTheRuntimeDoes) {
  std::optional<RuntimePeer> runtime{options_.socket};
  start();
  for (int life = 0; life < 3; ++life) {
    auto connection = runtime->accept();
    ASSERT_TRUE(connection) << life;
    ASSERT_TRUE(connection->welcomes()) << life;
    // A runtime that is killed leaves its socket's file behind.
    runtime.reset();
    connection->close();
    clock_.pass(40ms);
    runtime.emplace(options_.socket);
    clock_.pass(40ms);
  }
  const auto last = runtime->accept();
  ASSERT_TRUE(last);
  EXPECT_TRUE(stop());
  EXPECT_EQ(status_.connections, 4U);
  EXPECT_EQ(logged(" ended: closed by the runtime; retrying in "), 3);
  EXPECT_EQ(logged("connect to " + options_.socket + ": Connection refused"), 3);
  EXPECT_EQ(logged(" warning: "), 3);
}

TEST_F(ServiceTest, TriesAgainEverMoreSlowly) {
  options_.timeouts.first_retry = 50ms;
  options_.timeouts.longest_retry = 200ms;
  RuntimePeer runtime{options_.socket};
  start();
  std::vector<std::chrono::nanoseconds> pauses;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(runtime.accept());
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
  RuntimePeer runtime{options_.socket};
  start();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(runtime.accept());
    clock_.pass(40ms);
  }
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  clock_.pass(40ms);
  connection->close();
  clock_.pass(10ms);
  ASSERT_TRUE(runtime.accept());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("retrying in 10 ms"), 2);
}

TEST_F(ServiceTest, DoesNotHurryAfterOneThatEndsAtOnce) {
  RuntimePeer runtime{options_.socket};
  options_.timeouts.longest_retry = kLong;
  start();
  for (const auto pause : {10ms, 20ms, 40ms}) {
    auto connection = runtime.accept();
    ASSERT_TRUE(connection && connection->welcomes());
    connection->close();
    clock_.pass(pause);
  }
  ASSERT_TRUE(runtime.accept());
  EXPECT_TRUE(stop());
  for (const std::string pause : {"10", "20", "40"})
    EXPECT_EQ(logged("retrying in " + pause + " ms"), 1) << pause;
}

TEST_F(ServiceTest, AsksForOtherEventsAfterADropAtConfigure) {
  RuntimePeer runtime{options_.socket};
  start();
  for (const std::int32_t events : {kAllEvents, kOldestEvents, kAllEvents}) {
    auto connection = runtime.accept();
    ASSERT_TRUE(connection && connection->accepts_registration());
    EXPECT_EQ(connection->configure(), events);
    connection->close();
    clock_.pass(40ms);
  }
  // A drop at any other time changes nothing.
  ASSERT_TRUE(runtime.accept());
  clock_.pass(40ms);
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(), kOldestEvents);
  EXPECT_TRUE(connection->synchronize());
  connection->close();
  clock_.pass(40ms);
  connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(), kAllEvents);
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("closed by the runtime after Configure; requesting another set of events"), 3);
}

TEST_F(ServiceTest, LeavesARuntimeThatDoesNotSynchronize) {
  options_.timeouts.synchronize = 50ms;
  RuntimePeer runtime{options_.socket};
  start();
  for (int i = 0; i < 2; ++i) {
    auto connection = runtime.accept();
    ASSERT_TRUE(connection && connection->accepts_registration());
    EXPECT_EQ(connection->configure(), kAllEvents);
    clock_.pass(49ms);
    EXPECT_EQ(logged(" ended: the runtime did not synchronize the plugin in time"), i);
    clock_.pass(1ms);
    EXPECT_TRUE(connection->ends());
    clock_.pass(40ms);
  }
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: the runtime did not synchronize the plugin in time"), 2);
}

TEST_F(ServiceTest, LeavesARuntimeWhoseSynchronizeItCouldNotAnswer) {
  options_.timeouts.synchronize = 50ms;
  handler_.synchronize_answer = fail(ErrorCode::kIo, "no");
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(), kAllEvents);
  EXPECT_FALSE(connection->synchronize());
  clock_.pass(50ms);
  EXPECT_TRUE(connection->ends());
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, StaysWithARuntimeThatHasSynchronizedIt) {
  options_.timeouts.synchronize = 1s;
  options_.timeouts.configure = 1s;
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  clock_.pass(1200ms);
  EXPECT_TRUE(connection->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, LooksForWhatTheRuntimeDoesNotTell) {
  options_.timeouts.housekeeping = 10ms;
  RuntimePeer runtime{options_.socket};
  start();
  {
    auto connection = runtime.accept();
    ASSERT_TRUE(connection && connection->welcomes());
    clock_.pass(9ms);
    clock_.pass(1ms);
    clock_.pass(10ms);
    EXPECT_TRUE(stop());
  }
  EXPECT_EQ(housekeepings_, 3);
}

TEST_F(ServiceTest, ServesTheRuntimeBetweenPiecesOfLongWork) {
  options_.timeouts.housekeeping = kLong;
  options_.timeouts.piece = 0ms;
  wanted_housekeepings_ = std::numeric_limits<int>::max();
  RuntimePeer runtime{options_.socket};
  start();
  {
    auto connection = runtime.accept();
    ASSERT_TRUE(connection && connection->welcomes());
    EXPECT_TRUE(connection->ask("StartContainer", ""));
    EXPECT_TRUE(connection->ask("StartContainer", ""));
  }
  EXPECT_TRUE(stop());
  EXPECT_GE(housekeepings_, 3);
}

TEST_F(ServiceTest, LooksForNothingBeforeARuntimeHasSynchronizedIt) {
  options_.timeouts.housekeeping = 10ms;
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  clock_.pass(100ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 0);
}

/// A busy runtime of a full node: each piece comes in time, all of them together do not.
TEST_F(ServiceTest, WaitsWhilePiecesOfASynchronizationCome) {
  options_.timeouts.synchronize = 400ms;
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(), kAllEvents);
  for (int piece = 0; piece < 6; ++piece) {
    clock_.pass(399ms);
    ASSERT_TRUE(connection->ask("Synchronize", kMorePieces)) << piece;
  }
  EXPECT_TRUE(connection->synchronize());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("in time"), 0);
}

TEST_F(ServiceTest, LeavesARuntimeThatSaysNothing) {
  options_.timeouts.configure = 50ms;
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection);
  clock_.pass(50ms);
  EXPECT_TRUE(connection->ends());
  clock_.pass(10ms);
  EXPECT_TRUE(runtime.accept());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: the runtime did not configure the plugin in time"), 1);
}

TEST_F(ServiceTest, LeavesARuntimeThatRefusesIt) {
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection);
  const auto registration = connection->next();
  ASSERT_TRUE(registration);
  // code 2, "bad"
  EXPECT_TRUE(connection->send(frame(2, message(1, kResponse,
                                                "\n\x07\x08\x02\x12\x03"
                                                "bad"))));
  EXPECT_TRUE(connection->ends());
  clock_.pass(10ms);
  EXPECT_TRUE(runtime.accept());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: the runtime rejected the plugin's registration"), 1);
}

TEST_F(ServiceTest, TakesFramesByteByByte) {
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  for (const char byte : call(1, "Configure", "\x12\x01x"))
    ASSERT_TRUE(connection->send({&byte, 1}));
  const auto answer = connection->next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->payload, "\x12\x03\x10\xff\x0f");
  // Half a frame is left behind without harm.
  EXPECT_TRUE(connection->send(call(3, "Synchronize", "").substr(0, 7)));
  connection->close();
  clock_.pass(10ms);
  connection = runtime.accept();
  ASSERT_TRUE(connection);
  EXPECT_TRUE(connection->welcomes());
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, EndsAConnectionThatBreaksALimit) {
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  EXPECT_TRUE(connection->send(u32(1) + u32(5U << 20U)));
  EXPECT_TRUE(connection->ends());
  clock_.pass(10ms);
  connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged(" ended: a frame of 5242880 bytes for connection 1, at most 4194314"), 1);
}

TEST_F(ServiceTest, EndsAConnectionWhoseAnswersNobodyReads) {
  options_.session.unsent_bytes = 1U << 20U;
  handler_.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path(
      std::string(100'000, 'x'));
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  std::uint32_t stream = 101;
  while (connection->send(call(stream, "CreateContainer", "")))
    stream += 2;
  clock_.pass(10ms);
  EXPECT_TRUE(runtime.accept());
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("bytes wait for the runtime to read them, at most 1048576"), 1);
}

TEST_F(ServiceTest, SendsALargeAnswerToARuntimeThatReadsSlowly) {
  handler_.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path(
      std::string(4'000'000, 'x'));
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  ASSERT_TRUE(connection->send(call(101, "CreateContainer", "")));
  clock_.settle();  // it has sent what there is room for
  const auto answer = connection->next();
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
  RuntimePeer runtime{options_.socket};
  start();
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->welcomes());
  for (int i = 0; i < 3; ++i) {
    send(SIGHUP);
    // Its answer says that the signal has been taken: it was there first.
    EXPECT_TRUE(connection->ask("StartContainer", ""));
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

TEST_F(ServiceTest, EndsWithTheRuntimeThatStartedIt) {
  auto [plugin, connection] = connected_pair();
  start(std::move(plugin));
  ASSERT_TRUE(connection.welcomes());
  connection.close();
  EXPECT_TRUE(join());
  EXPECT_EQ(status_.connections, 1U);
  EXPECT_EQ(logged("exiting, because that runtime started this plugin"), 1);
}

TEST_F(ServiceTest, ServesARuntimeThatStartsItAndDoesNotSynchronizeIt) {
  options_.timeouts.configure = 50ms;
  options_.timeouts.synchronize = 50ms;
  auto [plugin, connection] = connected_pair();
  start(std::move(plugin));
  ASSERT_TRUE(connection.accepts_registration());
  EXPECT_EQ(connection.configure(), kAllEvents);
  clock_.pass(150ms);
  EXPECT_TRUE(connection.ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, LooksForWhatARuntimeThatDoesNotSynchronizeItDoesNotTell) {
  options_.timeouts.housekeeping = 10ms;
  auto [plugin, connection] = connected_pair();
  start(std::move(plugin));
  ASSERT_TRUE(connection.accepts_registration());
  EXPECT_EQ(connection.configure(), kAllEvents);
  clock_.pass(10ms);
  clock_.pass(10ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 2);
}

TEST_F(ServiceTest, LeavesTimeToSynchronizeToARuntimeThatStartsIt) {
  options_.timeouts.housekeeping = kLong;
  auto [plugin, connection] = connected_pair();
  start(std::move(plugin));
  ASSERT_TRUE(connection.accepts_registration());
  EXPECT_EQ(connection.configure(), kAllEvents);
  EXPECT_TRUE(connection.ask("StartContainer", ""));
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 0);
}

}  // namespace
}  // namespace podqos::nri
