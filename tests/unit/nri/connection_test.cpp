#include "nri/connection.h"

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
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
using namespace std::string_literals;
using test::call;
using test::frame;
using test::hear;
using test::kRequest;
using test::kResponse;
using test::message;
using test::part;
using test::podqos_plugin;
using test::RecordingHandler;
using test::SessionTest;
using test::SlowHandler;
using test::small_limits;
using test::u32;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(SessionTest, BeginsWithTheRegistration) {
  session_.begin();
  EXPECT_EQ(session_.output(),
            u32(2) + u32(70) + u32(60) + u32(1) +
                "\x01\x00\n\x1cnri.pkg.api.v1alpha1.Runtime\x12\x0eRegisterPlugin"
                "\x1a\x0c\n\x06podqos\x12\x02"
                "10"s);
}

TEST_F(SessionTest, EndsWhenItIsRefused) {
  session_.begin();
  const Status fed = session_.feed(frame(2, message(1, kResponse,
                                                    "\n\x07\x08\x02\x12\x03"
                                                    "bad")));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, ErrorCode::kConflict);
  EXPECT_EQ(fed.error().message,
            "the runtime rejected the plugin's registration: refused with code 2: \"bad\"");
}

TEST_F(SessionTest, IgnoresWhatItDidNotAskFor) {
  EXPECT_TRUE(session_.feed(frame(2, message(1, kResponse, ""))).has_value());
  session_.begin();
  const std::string noise =
      frame(2, message(3, kResponse, "")) + frame(2, message(1, kRequest, "")) +
      frame(2, message(1, kResponse, "")) + frame(2, message(1, kResponse, "\n\x02\x08\x02")) +
      frame(1, message(1, kResponse, "")) + frame(1, message(1, 3, "streamed")) +
      frame(1, message(1, 255, ""));
  EXPECT_TRUE(session_.feed(noise).has_value());
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, IsConfiguredBeforeTheRegistrationIsAnswered) {
  session_.begin();
  session_.sent(session_.output().size());
  api::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version("v2.2.1");
  const std::string whole = call(1, "Configure", request.SerializeAsString());
  // The answer comes between two frames of the same message.
  const std::string_view bytes = std::string_view{whole}.substr(8);
  const auto heard = answers(frame(1, bytes.substr(0, 20)) + frame(2, message(1, kResponse, "")) +
                             frame(1, bytes.substr(20)));
  EXPECT_THAT(handler_.heard, ElementsAre("configure containerd v2.2.1"));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].payload, "\x12\x03\x10\xaf\x1d");
}

TEST_F(SessionTest, AsksForTheOldestEventsWhenToldUnlessTheRuntimeKnowsTheNewest) {
  ConnectionOptions options = podqos_plugin();
  options.newest_events = false;
  Connection session{{}, options, handler_};
  EXPECT_TRUE(session.feed(call(1, "Configure", "")).has_value());
  EXPECT_EQ(session.output(), frame(1, message(1, kResponse, "\x12\x03\x10\xaf\x0d")));
  session.sent(session.output().size());
  api::ConfigureRequest request;
  request.set_nri_version("0.0.0-unknown");  // as some builds of 0.12 say
  EXPECT_TRUE(session.feed(call(3, "Configure", request.SerializeAsString())).has_value());
  EXPECT_EQ(session.output(), frame(1, message(3, kResponse, "\x12\x03\x10\xaf\x1d")));
}

TEST_F(SessionTest, HandsOnTheBudget) {
  EXPECT_TRUE(session_.feed(call(1, "StopContainer", "", 1500ms)).has_value());
  EXPECT_TRUE(session_.feed(call(3, "StopContainer", "")).has_value());
  EXPECT_THAT(handler_.budgets, ElementsAre(Budget{1500ms}, Budget{}));
}

template <class Request>
std::string about(const std::string& pod, const std::string& container) {
  Request request;
  request.mutable_pod()->set_name(pod);
  if (!container.empty()) request.mutable_container()->set_name(container);
  return request.SerializeAsString();
}

TEST_F(SessionTest, AnswersCreateContainer) {
  handler_.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path("/a");
  const auto answered = answer("CreateContainer", about<api::EventRequest>("p", "c"));
  EXPECT_EQ(answered, "\n\x06\x32\x04\x1a\x02/a");
  EXPECT_THAT(handler_.heard, ElementsAre("create p/c"));
  EXPECT_THAT(handler_.budgets, ElementsAre(Budget{2s}));
}

TEST_F(SessionTest, AnswersUpdates) {
  api::UpdateContainerRequest of_container;
  of_container.mutable_pod()->set_name("p");
  of_container.mutable_container()->set_name("c");
  of_container.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(512);
  EXPECT_EQ(answer("UpdateContainer", of_container.SerializeAsString()), "");
  api::UpdatePodSandboxRequest of_pod;
  of_pod.mutable_pod()->set_name("p");
  of_pod.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(77);
  EXPECT_EQ(answer("UpdatePodSandbox", of_pod.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update p/c shares 512", "update-pod p limit 77"));
}

TEST_F(SessionTest, AnswersWhatItDidNotAskForOrDoesNotKnow) {
  for (const char* method : {"Shutdown", "PostUpdatePodSandbox", "PostCreateContainer",
                             "PostStartContainer", "PostUpdateContainer"})
    EXPECT_EQ(answer(method, ""), "") << method;
  for (const int event : {0, 4, 7, 12, 14, 15, 1000, -1}) {
    api::StateChangeEvent change;
    change.set_event(static_cast<api::Event>(event));
    EXPECT_EQ(answer("StateChange", change.SerializeAsString()), "") << event;
  }
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, SendsAHandlersErrorAsItsText) {
  handler_.create_answer = fail(ErrorCode::kRefused, "pod \xff: no");
  EXPECT_TRUE(
      session_.feed(call(1, "CreateContainer", about<api::EventRequest>("p", "c"))).has_value());
  EXPECT_EQ(session_.output(), frame(1, message(1, kResponse, "\n\x0d\x08\x02\x12\x09pod ?: no")));
}

TEST_F(SessionTest, SendsErrorsOfEveryOtherKindOfCall) {
  handler_.answer = fail(ErrorCode::kIo, "broken");
  handler_.synchronize_answer = fail(ErrorCode::kIo, "broken");
  for (const std::string method : {"Configure", "Synchronize", "UpdateContainer", "StopContainer",
                                   "UpdatePodSandbox", "StartContainer"}) {
    EXPECT_EQ(refusal(call(1, method, "")), "refused with code 2: \"broken\"") << method;
  }
}

TEST_F(SessionTest, CallsOneFunctionHoweverAnEventComes) {
  for (const auto& [method, event, want] : std::vector<std::tuple<std::string, int, std::string>>{
           {"RunPodSandbox", api::RUN_POD_SANDBOX, "run-pod p"},
           {"StopPodSandbox", api::STOP_POD_SANDBOX, "stop-pod p"},
           {"RemovePodSandbox", api::REMOVE_POD_SANDBOX, "remove-pod p"},
           {"StartContainer", api::START_CONTAINER, "start p/c"},
           {"RemoveContainer", api::REMOVE_CONTAINER, "remove p/c"},
           {"StopContainer", api::UNKNOWN, "stop p/c"}}) {  // which no StateChange reports
    SCOPED_TRACE(method);
    const std::string container = want.contains('/') ? "c" : "";
    api::StateChangeEvent change;
    change.set_event(static_cast<api::Event>(event));
    change.mutable_pod()->set_name("p");
    if (!container.empty()) change.mutable_container()->set_name("c");
    for (const Status& done : {Status{}, Status{fail(ErrorCode::kIo, "broken")}}) {
      handler_.answer = done;
      handler_.heard.clear();
      const auto called = answer(method, about<api::EventRequest>("p", container));
      EXPECT_EQ(called.has_value(), done.has_value());
      EXPECT_THAT(handler_.heard, ElementsAre(want));
      if (event == api::UNKNOWN) continue;
      const auto told = answer("StateChange", change.SerializeAsString());
      EXPECT_EQ(told.has_value(), done.has_value());
      EXPECT_THAT(handler_.heard, ElementsAre(want, want));
    }
  }
}

TEST_F(SessionTest, SkipsFieldsThatAreNewerThanItself) {
  const std::string unknown =
      "\xfa\x3f\x03"
      "new";
  const std::string payload = about<api::EventRequest>("p", "c") + unknown;
  EXPECT_TRUE(answer("CreateContainer", payload).has_value());
  EXPECT_THAT(handler_.heard, ElementsAre("create p/c"));
}

TEST_F(SessionTest, SaysWhatItDoesNotImplement) {
  EXPECT_EQ(refusal(call(1, "ValidateContainerAdjustment", "")),
            "refused with code 12: \"unknown method "
            "nri.pkg.api.v1alpha1.Plugin/ValidateContainerAdjustment\"");
  const auto other =
      encode_request(3, {.service = "grpc.health.v1.Health", .method = "Configure", .payload = ""});
  EXPECT_EQ(refusal(frame(1, other)),
            "refused with code 12: \"unknown method grpc.health.v1.Health/Configure\"");
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, RefusesAPayloadThatItCannotRead) {
  for (const std::string method :
       {"Configure", "Synchronize", "CreateContainer", "UpdateContainer", "StopContainer",
        "UpdatePodSandbox", "StateChange", "RunPodSandbox", "RemoveContainer"}) {
    EXPECT_EQ(refusal(call(1, method, "\x0a\x7f")),
              "refused with code 13: \"" + method + ": cannot parse the payload\"");
  }
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, RefusesAnEnvelopeThatItCannotRead) {
  EXPECT_EQ(refusal(frame(1, message(1, kRequest, "\x0a\x7f"))),
            "refused with code 3: \"not a ttrpc request\"");
}

TEST_F(SessionTest, RefusesAnOversizedCallAndGoesOn) {
  EXPECT_THAT(answers(frame(1, u32(kMaxMessageSize + 1) + u32(1) + "\x01\x00"s)), IsEmpty());
  EXPECT_THAT(answers(frame(1, std::string(kMaxMessageSize, 'x'))), IsEmpty());
  EXPECT_EQ(refusal(frame(1, "x")),
            "refused with code 8: \"a message of more than 4194304 bytes\"");
  stream_ = 3;
  EXPECT_EQ(answer("Shutdown", ""), "");
}

TEST_F(SessionTest, AnswersSeveralCallsThatCameTogether) {
  const auto heard = answers(call(1, "Shutdown", "") + call(3, "Nothing", "") +
                             call(5, "StartContainer", about<api::EventRequest>("p", "c")));
  ASSERT_THAT(heard, SizeIs(3));
  EXPECT_EQ(heard[0].stream, 1U);
  EXPECT_EQ(heard[1].stream, 3U);
  EXPECT_EQ(heard[2].stream, 5U);
}

TEST(SessionProgress, IsHowFarTheRuntimeHasCome) {
  using enum Progress;
  struct Case {
    std::vector<std::string> methods;
    Budget budget;
    std::chrono::nanoseconds takes;  ///< Synchronize
    Progress want;
  };
  const std::string configure = "Configure";
  const std::string synchronize = "Synchronize";
  for (const auto& [methods, budget, takes, want] :
       std::vector<Case>{{{}, 2s, 0s, kRegistering},
                         {{configure}, 2s, 0s, kConfigured},
                         {{configure, synchronize}, 2s, 1600ms, kSynchronized},
                         {{configure, synchronize}, std::nullopt, 1h, kSynchronized},
                         {{configure, synchronize}, 2s, 1601ms, kSynchronizing},  // too late
                         // Too late, and called all the same.
                         {{configure, synchronize, "StartContainer"}, 2s, 1601ms, kSynchronized},
                         {{"StartContainer"}, 2s, 0s, kRegistering}}) {
    LeapingClock clock;
    SlowHandler handler{clock, takes};
    ConnectionOptions options = podqos_plugin();
    options.clock = &clock;
    Connection session{{}, options, handler};
    session.begin();
    std::uint32_t stream = 1;
    for (const std::string& method : methods) {
      EXPECT_TRUE(session.feed(call(stream, method, "", budget)).has_value());
      stream += 2;
    }
    EXPECT_EQ(session.progress(), want) << ::testing::PrintToString(methods);
  }
}

TEST_F(SessionTest, IsNotAdvancedByAnErrorOrAPart) {
  handler_.answer = handler_.synchronize_answer = fail(ErrorCode::kIo, "no");
  EXPECT_FALSE(answer("Configure", ""));
  EXPECT_EQ(session_.progress(), Progress::kRegistering);
  EXPECT_FALSE(answer("Synchronize", ""));
  EXPECT_EQ(session_.progress(), Progress::kSynchronizing);
  handler_.synchronize_answer = {};
  EXPECT_TRUE(answer("Synchronize", part(0, 0, true)));
  EXPECT_EQ(session_.progress(), Progress::kSynchronizing);
  EXPECT_TRUE(answer("Synchronize", ""));
  EXPECT_EQ(session_.progress(), Progress::kSynchronized);
}

/// With limits that a few pods reach.
class BoundsTest : public SessionTest {
 protected:
  BoundsTest() : SessionTest(small_limits()) {}
  /// Why the session ends at a Synchronize.
  std::string end(const std::string& payload) {
    const Status fed = session_.feed(call(stream_, "Synchronize", payload));
    stream_ += 2;
    EXPECT_FALSE(fed.has_value());
    if (fed) return "";
    EXPECT_EQ(fed.error().code, ErrorCode::kTooLarge);
    return fed.error().message;
  }
  std::string synchronize(const std::string& payload) {
    return answer("Synchronize", payload).value_or("error");
  }
};

constexpr std::string_view kMore = "\x10\x01";

TEST_F(BoundsTest, CollectsThePartsOfANodesState) {
  EXPECT_EQ(synchronize(part(1, 0, true)), kMore);
  EXPECT_EQ(synchronize(part(1, 2, true)), kMore);
  EXPECT_THAT(handler_.heard, IsEmpty());
  EXPECT_EQ(synchronize(part(0, 2, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 2 4"));
  EXPECT_EQ(handler_.state.containers.at(3).facts.id, "c1");
}

TEST_F(BoundsTest, BeginsAnewAfterTheLastPart) {
  EXPECT_EQ(synchronize(part(1, 2, true)), kMore);
  EXPECT_EQ(synchronize(part(1, 2, false)), "");
  EXPECT_EQ(synchronize(part(2, 4, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 2 4", "synchronize 2 4"));
}

TEST_F(BoundsTest, ForgetsThePartsBeforeOneThatCannotBeRead) {
  EXPECT_EQ(synchronize(part(1, 2, true)), kMore);
  EXPECT_EQ(synchronize("\x0a\x7f"), "error");
  EXPECT_EQ(synchronize(part(1, 1, false)), "");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 1 1"));
}

TEST_F(BoundsTest, EndsWhereTheStateIsTooLarge) {
  const std::string message = "Synchronize: more than 10000 bytes of pods and containers";
  EXPECT_EQ(end(part(0, 100, false)), message);
  api::SynchronizeRequest request;
  request.add_pods()->set_name(std::string(3500, 'n'));
  request.set_more(true);
  EXPECT_EQ(synchronize(request.SerializeAsString()), kMore);
  EXPECT_EQ(synchronize(request.SerializeAsString()), kMore);
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

/// A session that is fed bytes, whatever they are.
class HostileBytes : public ::testing::Test {
 protected:
  /// How the session ends, and how often it has called the handler.
  static std::pair<Status, std::size_t> fed(std::string_view bytes) {
    RecordingHandler handler;
    Connection session{{}, small_limits(), handler};
    session.begin();
    const Status done = session.feed(bytes);
    static_cast<void>(hear(session.output()));
    return {done, handler.heard.size()};
  }
  /// Everything a runtime says to a plugin in one short life.
  static std::string a_life() {
    const std::string event = about<api::EventRequest>("p", "c");
    return frame(2, message(1, 2, "")) + call(1, "Configure", "") +
           call(3, "Synchronize", part(1, 1, true)) + call(5, "Synchronize", part(1, 1, false)) +
           call(7, "CreateContainer", event) + call(9, "StateChange", "") +
           call(11, "RunPodSandbox", event);
  }
};

TEST_F(HostileBytes, ATruncatedLifeLeavesAWaitingSession) {
  const std::string life = a_life();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= life.size(); ++size) {
    const auto [done, heard] = fed(std::string_view{life}.substr(0, size));
    EXPECT_TRUE(done.has_value()) << size;
    EXPECT_GE(heard, most);
    most = heard;
  }
  EXPECT_EQ(most, 4U);
}

TEST_F(HostileBytes, AChangedByteEndsTheSessionOrIsAnswered) {
  const std::string life = a_life();
  for (std::size_t at = 0; at < life.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = life;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      const auto [done, heard] = fed(bytes);
      if (!done) {
        EXPECT_THAT(done.error().code, AnyOf(ErrorCode::kTooLarge, ErrorCode::kConflict));
      }
      EXPECT_LE(heard, 5U);
    }
  }
}

TEST_F(HostileBytes, GarbageIsNoCall) {
  std::uint32_t seed = 1;
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int i = 0; i < 3000; ++i) {
      seed = seed * 1664525U + 1013904223U;
      bytes += static_cast<char>(seed >> 24U);
    }
    EXPECT_EQ(fed(frame(1, bytes) + bytes).second, 0U);
  }
}

}  // namespace
}  // namespace podqos::nri
