#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_fixture.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::kAllEvents;
using test::kOldestEvents;
using test::RuntimePeer;
using test::ServiceTest;
using ::testing::ElementsAre;

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
  options_.times.first_retry = 50ms;
  options_.times.longest_retry = 200ms;
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
  options_.times.longest_retry = kLong;
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
    EXPECT_EQ(connection->configure(""), events);
    connection->close();
    clock_.pass(40ms);
  }
  // A drop at any other time changes nothing.
  ASSERT_TRUE(runtime.accept());
  clock_.pass(40ms);
  auto connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(""), kOldestEvents);
  EXPECT_TRUE(connection->synchronize());
  connection->close();
  clock_.pass(40ms);
  connection = runtime.accept();
  ASSERT_TRUE(connection && connection->accepts_registration());
  EXPECT_EQ(connection->configure(""), kAllEvents);
  EXPECT_TRUE(stop());
  EXPECT_EQ(logged("closed by the runtime after Configure; requesting another set of events"), 3);
}

}  // namespace
}  // namespace podqos::nri
