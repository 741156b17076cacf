// How far a runtime has come with a connection, and what it cannot do to it.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/session_fixture.h"
#include "tests/unit/nri/wire.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::call;
using test::frame;
using test::hear;
using test::message;
using test::part;
using test::podqos_plugin;
using test::RecordingHandler;
using test::SessionTest;
using test::SlowHandler;
using test::small_limits;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct ProgressCase {
  std::string name;
  std::vector<std::string> methods;
  Budget budget;
  std::chrono::nanoseconds takes;  ///< Synchronize
  Progress want;
};
class SessionProgress : public TestWithParam<ProgressCase> {};

TEST_P(SessionProgress, IsHowFarTheRuntimeHasCome) {
  LeapingClock clock;
  SlowHandler handler{clock, GetParam().takes};
  ConnectionOptions options = podqos_plugin();
  options.clock = &clock;
  Connection session{{}, options, handler};
  session.begin();
  std::uint32_t stream = 1;
  for (const std::string& method : GetParam().methods) {
    EXPECT_TRUE(session.feed(call(stream, method, "", GetParam().budget)).has_value());
    stream += 2;
  }
  EXPECT_EQ(session.progress(), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SessionProgress,
    ValuesIn<ProgressCase>({
        {"Nothing", {}, 2s, 0s, Progress::kRegistering},
        {"Configured", {"Configure"}, 2s, 0s, Progress::kConfigured},
        {"Synchronized", {"Configure", "Synchronize"}, 2s, 1600ms, Progress::kSynchronized},
        {"SynchronizedWithoutBudget",
         {"Configure", "Synchronize"},
         std::nullopt,
         1h,
         Progress::kSynchronized},
        {"TooLate", {"Configure", "Synchronize"}, 2s, 1601ms, Progress::kSynchronizing},
        {"LateAndCalledAllTheSame",
         {"Configure", "Synchronize", "StartContainer"},
         2s,
         1601ms,
         Progress::kSynchronized},
        {"CalledBeforeItWasSynchronized", {"StartContainer"}, 2s, 0s, Progress::kRegistering},
    }),
    [](const auto& c) { return c.param.name; });

TEST_F(SessionTest, IsNotSynchronizedByAPart) {
  EXPECT_TRUE(answer("Configure", ""));
  api::SynchronizeRequest part;
  part.set_more(true);
  EXPECT_TRUE(answer("Synchronize", part.SerializeAsString()));
  EXPECT_EQ(session_.progress(), Progress::kSynchronizing);
  EXPECT_TRUE(answer("Synchronize", ""));
  EXPECT_EQ(session_.progress(), Progress::kSynchronized);
}

TEST_F(SessionTest, IsNotSynchronizedByAnError) {
  handler_.synchronize_answer = fail(ErrorCode::kIo, "no");
  EXPECT_FALSE(answer("Synchronize", ""));
  EXPECT_EQ(session_.progress(), Progress::kSynchronizing);
}

TEST_F(SessionTest, IsNotConfiguredByAnError) {
  handler_.answer = fail(ErrorCode::kIo, "no");
  EXPECT_FALSE(answer("Configure", ""));
  EXPECT_EQ(session_.progress(), Progress::kRegistering);
}

class BoundsTest : public ::testing::Test {
 protected:
  /// The payload of the one answer to a Synchronize.
  std::string answer(const std::string& payload) {
    EXPECT_TRUE(session_.feed(call(stream_, "Synchronize", payload)).has_value());
    stream_ += 2;
    const auto heard = hear(session_.output());
    session_.sent(session_.output().size());
    EXPECT_THAT(heard, SizeIs(1));
    return heard.empty() ? "" : parse_answer(heard[0].payload).value_or("error");
  }
  /// Why the session ends at a Synchronize.
  std::string end(const std::string& payload) {
    const Status fed = session_.feed(call(stream_, "Synchronize", payload));
    EXPECT_FALSE(fed.has_value());
    if (fed) return "";
    EXPECT_EQ(fed.error().code, ErrorCode::kTooLarge);
    return fed.error().message;
  }

  RecordingHandler handler_;
  Connection session_{{}, small_limits(), handler_};
  std::uint32_t stream_ = 1;
};

constexpr std::string_view kMore = "\x10\x01";

TEST_F(BoundsTest, CollectsThePartsOfANodesState) {
  EXPECT_EQ(answer(part(1, 0, true)), kMore);
  EXPECT_EQ(answer(part(1, 2, true)), kMore);
  EXPECT_THAT(handler_.heard, IsEmpty());
  EXPECT_EQ(answer(part(0, 2, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 2 4"));
  EXPECT_EQ(handler_.state.containers.at(3).facts.id, "c1");
}

TEST_F(BoundsTest, BeginsAnewAfterTheLastPart) {
  EXPECT_EQ(answer(part(1, 2, true)), kMore);
  EXPECT_EQ(answer(part(1, 2, false)), "");
  EXPECT_EQ(answer(part(2, 4, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 2 4", "synchronize 2 4"));
}

TEST_F(BoundsTest, ForgetsThePartsBeforeOneThatCannotBeRead) {
  EXPECT_EQ(answer(part(1, 2, true)), kMore);
  EXPECT_EQ(answer("\x0a\x7f"), "error");
  EXPECT_EQ(answer(part(1, 1, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 1 1"));
}

TEST_F(BoundsTest, EndsWhereTheStateIsTooLarge) {
  const std::string message = "Synchronize: more than 10000 bytes of pods and containers";
  EXPECT_EQ(end(part(0, 100, false)), message);
  stream_ += 2;
  api::SynchronizeRequest request;
  request.add_pods()->set_name(std::string(3500, 'n'));
  request.set_more(true);
  EXPECT_EQ(answer(request.SerializeAsString()), kMore);
  EXPECT_EQ(answer(request.SerializeAsString()), kMore);
  EXPECT_EQ(end(request.SerializeAsString()), message);
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(BoundsTest, ReadsNothingWhileAnswersWait) {
  EXPECT_EQ(session_.events(), POLLIN);
  ASSERT_TRUE(session_.feed(call(1, "Shutdown", "")).has_value());
  EXPECT_EQ(session_.events(), POLLOUT);
  session_.sent(session_.output().size() - 1);
  EXPECT_EQ(session_.events(), POLLOUT);
  session_.sent(1);
  EXPECT_EQ(session_.events(), POLLIN);
}

TEST_F(BoundsTest, EndsAtAFrameThatIsTooLong) {
  const Status fed = session_.feed("\xff\xff\xff\xff\xff\xff\xff\xff");
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().code, ErrorCode::kTooLarge);
}

/// A message of `size` bytes, header included, to a session without small limits.
class MessageSizes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MessageSizes, PassInBothDirections) {
  RecordingHandler handler;
  Connection session{{}, podqos_plugin(), handler};
  // Around the payload: 28 + 17 bytes for service and method, up to 5 for its own tag and length.
  const std::size_t length = GetParam() - 100;
  api::EventRequest request;
  request.mutable_container()->set_name(std::string(length, 'n'));
  handler.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path(
      std::string(length, 'p'));
  const std::string bytes = call(1, "CreateContainer", request.SerializeAsString());
  for (std::size_t at = 0; at < bytes.size(); at += 1000)
    ASSERT_TRUE(session.feed(std::string_view{bytes}.substr(at, 1000)).has_value());
  ASSERT_THAT(handler.heard, SizeIs(1));
  EXPECT_EQ(handler.heard[0].size(), length + std::string_view{"create /"}.size());
  const auto heard = hear(session.output());
  ASSERT_THAT(heard, SizeIs(1));
  api::CreateContainerResponse response;
  EXPECT_TRUE(response.ParseFromString(parse_answer(heard[0].payload).value_or("")));
  EXPECT_EQ(response.adjust().linux().cgroups_path().size(), length);
}

INSTANTIATE_TEST_SUITE_P(Table, MessageSizes,
                         ::testing::Values(4095, 4096, 4097, 4200, 200'000, 4'194'304));

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

TEST(HostileBytes, ATruncatedLifeLeavesAWaitingSession) {
  const std::string life = a_life();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= life.size(); ++size) {
    RecordingHandler handler;
    Connection session{{}, small_limits(), handler};
    session.begin();
    EXPECT_TRUE(session.feed(std::string_view{life}.substr(0, size)).has_value()) << size;
    EXPECT_GE(handler.heard.size(), most);
    most = handler.heard.size();
  }
  EXPECT_EQ(most, 4U);
}

TEST(HostileBytes, AChangedByteEndsTheSessionOrIsAnswered) {
  const std::string life = a_life();
  for (std::size_t at = 0; at < life.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = life;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      RecordingHandler handler;
      Connection session{{}, small_limits(), handler};
      session.begin();
      const Status fed = session.feed(bytes);
      if (!fed) {
        EXPECT_TRUE(fed.error().code == ErrorCode::kTooLarge ||
                    fed.error().code == ErrorCode::kConflict);
      }
      EXPECT_LE(handler.heard.size(), 5U);
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
    Connection session{{}, small_limits(), handler};
    static_cast<void>(session.feed(frame(1, bytes)));
    static_cast<void>(session.feed(bytes));
    EXPECT_THAT(handler.heard, IsEmpty());
  }
}

}  // namespace
}  // namespace podqos::nri
