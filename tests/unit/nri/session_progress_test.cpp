#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/session_fixture.h"
#include "tests/unit/nri/wire.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::call;
using test::podqos_plugin;
using test::SessionTest;
using test::SlowHandler;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

TEST(SessionTimes, EachRequestThatIsHandled) {
  LeapingClock clock;
  SlowHandler handler{clock, 3ms};
  handler.answer = fail(ErrorCode::kBusy, "busy");
  ConnectionOptions options = podqos_plugin();
  options.clock = &clock;
  Connection session{{}, options, handler};
  std::vector<std::pair<Request, std::chrono::nanoseconds>> want;
  std::uint32_t stream = 1;
  for (std::size_t i = 0; i < kRequests.size(); ++i) {
    const auto request = static_cast<Request>(i);
    EXPECT_TRUE(session.feed(call(stream, std::string{kRequests.at(i).name}, "")));
    want.emplace_back(request, request == Request::kSynchronize ? 3ms : 0ms);
    stream += 2;
  }
  EXPECT_EQ(handler.times, want);
}

TEST_F(SessionTest, TimesAStateChangeAsTheRequestThatItIs) {
  api::StateChangeEvent change;
  change.set_event(api::STOP_POD_SANDBOX);
  EXPECT_TRUE(answer("StateChange", change.SerializeAsString()));
  EXPECT_THAT(handler_.times, ElementsAre(Pair(Request::kStopPodSandbox, _)));
}

TEST_F(SessionTest, TimesNothingThatIsNotHandled) {
  static_cast<void>(answers(call(1, "Shutdown", "") + call(3, "Nothing", "") +
                            call(5, "StateChange", "") + call(7, "StartContainer", "\xff")));
  EXPECT_TRUE(handler_.times.empty());
}

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
  EXPECT_TRUE(session.begin().has_value());
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

}  // namespace
}  // namespace podqos::nri
