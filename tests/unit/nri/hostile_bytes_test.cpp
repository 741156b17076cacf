#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/session_limits.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using test::call;
using test::frame;
using test::hear;
using test::message;
using test::part;
using test::RecordingHandler;
using test::small_limits;
using ::testing::IsEmpty;

/// Everything a runtime says to a plugin in one short life, and what may go wrong with it.
std::string a_life() {
  api::EventRequest event;
  event.mutable_pod()->set_name("p");
  event.mutable_container()->set_name("c");
  return frame(2, message(1, 2, "")) + call(1, "Configure", "") +
         call(3, "Synchronize", part(1, 1, true)) + call(5, "Synchronize", part(1, 1, false)) +
         call(7, "CreateContainer", event.SerializeAsString()) + call(9, "StateChange", "") +
         call(11, "RunPodSandbox", event.SerializeAsString());
}

ConnectionOptions usual_limits() {
  ConnectionOptions options = small_limits();
  options.unsent_bytes = 10'000;
  return options;
}

TEST(HostileBytes, ATruncatedLifeLeavesAWaitingSession) {
  const std::string life = a_life();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= life.size(); ++size) {
    RecordingHandler handler;
    Connection session{{}, usual_limits(), handler};
    ASSERT_TRUE(session.begin().has_value());
    EXPECT_TRUE(session.feed(std::string_view{life}.substr(0, size)).has_value()) << size;
    EXPECT_GE(handler.heard.size(), most);
    most = handler.heard.size();
  }
  EXPECT_EQ(most, 5U);
}

TEST(HostileBytes, AChangedByteEndsTheSessionOrIsAnswered) {
  const std::string life = a_life();
  for (std::size_t at = 0; at < life.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = life;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      RecordingHandler handler;
      Connection session{{}, usual_limits(), handler};
      ASSERT_TRUE(session.begin().has_value());
      const Status fed = session.feed(bytes);
      if (!fed) {
        EXPECT_EQ(fed.error().code, ErrorCode::kTooLarge);
      }
      EXPECT_LE(handler.heard.size(), 6U);
      static_cast<void>(hear(session.output()));
    }
  }
}

TEST(HostileBytes, GarbageIsNoCall) {
  std::uint32_t seed = 1;
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int i = 0; i < 3000; ++i) {
      seed = seed * 1664525U + 1013904223U;
      bytes += static_cast<char>(seed >> 24U);
    }
    RecordingHandler handler;
    Connection session{{}, usual_limits(), handler};
    static_cast<void>(session.feed(frame(1, bytes)));
    static_cast<void>(session.feed(bytes));
    EXPECT_THAT(handler.heard, IsEmpty());
  }
}

}  // namespace
}  // namespace podqos::nri
