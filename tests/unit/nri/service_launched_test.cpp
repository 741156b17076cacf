#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_fixture.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::connected_pair;
using test::kAllEvents;
using test::kOldestEvents;
using test::ServiceTest;

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
  options_.times.configure = 50ms;
  options_.times.synchronize = 50ms;
  ASSERT_NO_FATAL_FAILURE(start_launched());
  EXPECT_EQ(connection_->configure(), kAllEvents);
  clock_.pass(150ms);
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
}

TEST_F(ServiceTest, LooksForWhatARuntimeThatDoesNotSynchronizeItDoesNotTell) {
  options_.times.housekeeping = 10ms;
  ASSERT_NO_FATAL_FAILURE(start_launched());
  EXPECT_EQ(connection_->configure(), kAllEvents);
  clock_.pass(10ms);
  clock_.pass(10ms);
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 2);
}

TEST_F(ServiceTest, AsksForNoEventThatEndsTheConnectionToTheRuntimeThatStartsIt) {
  for (const auto& [version, events] : {std::pair{"", kOldestEvents}, {"v0.12.0", kAllEvents}}) {
    ASSERT_NO_FATAL_FAILURE(start_launched());
    EXPECT_EQ(connection_->configure(version), events);
    EXPECT_TRUE(stop());
  }
}

TEST_F(ServiceTest, LeavesTimeToSynchronizeToARuntimeThatStartsIt) {
  options_.times.housekeeping = kLong;
  ASSERT_NO_FATAL_FAILURE(start_launched());
  EXPECT_EQ(connection_->configure(), kAllEvents);
  EXPECT_TRUE(connection_->ask("StartContainer", ""));
  EXPECT_TRUE(stop());
  EXPECT_EQ(housekeepings_, 0);
}

}  // namespace
}  // namespace podqos::nri
