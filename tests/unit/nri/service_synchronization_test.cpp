#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_fixture.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::frame;
using test::kAllEvents;
using test::kResponse;
using test::message;
using test::RuntimePeer;
using test::ServiceTest;

constexpr const char* kMorePieces = "\x18\x01";  ///< SynchronizeRequest with `more` set

TEST_F(ServiceTest, LeavesARuntimeThatDoesNotSynchronize) {
  options_.times.synchronize = 50ms;
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
  options_.times.synchronize = 50ms;
  handler_.synchronize_answer = fail(ErrorCode::kIo, "no");
  ASSERT_NO_FATAL_FAILURE(start_registered());
  EXPECT_EQ(connection_->configure(), kAllEvents);
  EXPECT_FALSE(connection_->synchronize());
  clock_.pass(50ms);
  EXPECT_TRUE(connection_->ends());
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, StaysWithARuntimeThatHasSynchronizedIt) {
  options_.times.synchronize = 1s;
  options_.times.configure = 1s;
  ASSERT_NO_FATAL_FAILURE(start_synchronized());
  clock_.pass(1200ms);
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

/// A busy runtime of a full node: each piece comes in time, all of them together do not.
TEST_F(ServiceTest, WaitsWhilePiecesOfASynchronizationCome) {
  options_.times.synchronize = 400ms;
  ASSERT_NO_FATAL_FAILURE(start_registered());
  EXPECT_EQ(connection_->configure(), kAllEvents);
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
  EXPECT_EQ(
      logged(
          " ended: the runtime rejected the plugin's registration: refused with code 2: \"bad\""),
      1);
}

}  // namespace
}  // namespace podqos::nri
