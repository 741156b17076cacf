#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/session_fixture.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::call;
using test::frame;
using test::kRequest;
using test::kResponse;
using test::message;
using test::SessionTest;
using test::u32;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ValuesIn;

template <class Request>
std::string about(const std::string& pod, const std::string& container) {
  Request request;
  request.mutable_pod()->set_name(pod);
  if (!container.empty()) request.mutable_container()->set_name(container);
  return request.SerializeAsString();
}

TEST_F(SessionTest, AnswersCreateContainer) {
  handler_.create_answer->mutable_adjust()->mutable_linux()->set_cgroups_path("/a");
  const auto answered = answer("CreateContainer", about<api::CreateContainerRequest>("p", "c"));
  EXPECT_EQ(answered, "\n\x06\x32\x04\x1a\x02/a");
  EXPECT_THAT(handler_.heard, ElementsAre("create p/c"));
  EXPECT_THAT(handler_.budgets, ElementsAre(Budget{2s}));
}

TEST_F(SessionTest, AnswersUpdateContainer) {
  api::UpdateContainerRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_container()->set_name("c");
  request.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(512);
  EXPECT_EQ(answer("UpdateContainer", request.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update p/c shares 512"));
}

TEST_F(SessionTest, AnswersStopContainer) {
  EXPECT_EQ(answer("StopContainer", about<api::StopContainerRequest>("p", "c")), "");
  EXPECT_THAT(handler_.heard, ElementsAre("stop p/c"));
}

TEST_F(SessionTest, AnswersUpdatePodSandbox) {
  api::UpdatePodSandboxRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(77);
  EXPECT_EQ(answer("UpdatePodSandbox", request.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update-pod p limit 77"));
}

TEST_F(SessionTest, AnswersAShutdown) {
  EXPECT_EQ(answer("Shutdown", ""), "");
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, SendsAHandlersErrorAsItsText) {
  handler_.create_answer = fail(ErrorCode::kRefused, "pod \xff: no");
  EXPECT_TRUE(
      session_.feed(call(1, "CreateContainer", about<api::CreateContainerRequest>("p", "c")))
          .has_value());
  EXPECT_EQ(session_.output(), frame(1, message(1, kResponse, "\n\x0d\x08\x02\x12\x09pod ?: no")));
}

TEST_F(SessionTest, SendsErrorsOfEveryOtherKindOfCall) {
  handler_.answer = fail(ErrorCode::kIo, "broken");
  handler_.synchronize_answer = fail(ErrorCode::kIo, "broken");
  for (const std::string method : {"Configure", "Synchronize", "UpdateContainer", "StopContainer",
                                   "UpdatePodSandbox", "StartContainer"}) {
    const auto answered = answer(method, "");
    ASSERT_FALSE(answered.has_value()) << method;
    EXPECT_EQ(answered.error().message, "refused with code 2: \"broken\"") << method;
  }
}

struct EventCase {
  std::string method;
  api::Event event;
  std::string want;
};
class SessionEvents : public SessionTest, public ::testing::WithParamInterface<EventCase> {};

TEST_P(SessionEvents, ReachOneFunctionHoweverTheyCome) {
  const bool of_container = GetParam().want.contains('/');
  const std::string container = of_container ? "c" : "";
  EXPECT_EQ(answer(GetParam().method, about<api::EventRequest>("p", container)), "");
  api::StateChangeEvent change;
  change.set_event(GetParam().event);
  change.mutable_pod()->set_name("p");
  if (of_container) change.mutable_container()->set_name("c");
  EXPECT_EQ(answer("StateChange", change.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre(GetParam().want, GetParam().want));

  handler_.answer = fail(ErrorCode::kIo, "broken");
  EXPECT_FALSE(answer(GetParam().method, about<api::EventRequest>("p", container)).has_value());
  EXPECT_FALSE(answer("StateChange", change.SerializeAsString()).has_value());
}

INSTANTIATE_TEST_SUITE_P(Table, SessionEvents,
                         ValuesIn<EventCase>({
                             {"RunPodSandbox", api::RUN_POD_SANDBOX, "run-pod p"},
                             {"StopPodSandbox", api::STOP_POD_SANDBOX, "stop-pod p"},
                             {"RemovePodSandbox", api::REMOVE_POD_SANDBOX, "remove-pod p"},
                             {"PostUpdatePodSandbox", api::POST_UPDATE_POD_SANDBOX,
                              "post-update-pod p"},
                             {"PostCreateContainer", api::POST_CREATE_CONTAINER, "post-create p/c"},
                             {"StartContainer", api::START_CONTAINER, "start p/c"},
                             {"PostStartContainer", api::POST_START_CONTAINER, "post-start p/c"},
                             {"PostUpdateContainer", api::POST_UPDATE_CONTAINER, "post-update p/c"},
                             {"RemoveContainer", api::REMOVE_CONTAINER, "remove p/c"},
                         }),
                         [](const auto& c) { return c.param.method; });

TEST_F(SessionTest, AnswersAStateChangeThatIsNewerThanItself) {
  for (const int event : {0, 4, 12, 14, 15, 1000, -1}) {
    api::StateChangeEvent change;
    change.set_event(static_cast<api::Event>(event));
    EXPECT_EQ(answer("StateChange", change.SerializeAsString()), "") << event;
  }
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, SkipsFieldsThatAreNewerThanItself) {
  const std::string unknown =
      "\xfa\x3f\x03"
      "new";
  const std::string payload = about<api::CreateContainerRequest>("p", "c") + unknown;
  EXPECT_TRUE(answer("CreateContainer", payload).has_value());
  EXPECT_THAT(handler_.heard, ElementsAre("create p/c"));
}

TEST_F(SessionTest, SaysWhatItDoesNotImplement) {
  const auto answered = answer("ValidateContainerAdjustment", "");
  ASSERT_FALSE(answered.has_value());
  EXPECT_EQ(answered.error().message,
            "refused with code 12: \"unknown method "
            "nri.pkg.api.v1alpha1.Plugin/ValidateContainerAdjustment\"");
  const auto other = encode_request(3, {.service = "grpc.health.v1.Health",
                                        .method = "Configure",
                                        .payload = "",
                                        .budget = std::nullopt});
  const auto heard = answers(frame(1, *other));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(parse_answer(heard[0].payload).error().message,
            "refused with code 12: \"unknown method grpc.health.v1.Health/Configure\"");
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, RefusesAPayloadThatItCannotRead) {
  for (const std::string method :
       {"Configure", "Synchronize", "CreateContainer", "UpdateContainer", "StopContainer",
        "UpdatePodSandbox", "StateChange", "RunPodSandbox", "RemoveContainer"}) {
    const auto answered = answer(method, "\x0a\x7f");
    ASSERT_FALSE(answered.has_value()) << method;
    EXPECT_EQ(answered.error().message,
              "refused with code 13: \"" + method + ": cannot parse the payload\"");
  }
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, RefusesAnEnvelopeThatItCannotRead) {
  const auto heard = answers(frame(1, message(1, kRequest, "\x0a\x7f")));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(parse_answer(heard[0].payload).error().message,
            "refused with code 3: \"not a ttrpc request\"");
}

TEST_F(SessionTest, RefusesAnOversizedCallAndGoesOn) {
  EXPECT_THAT(answers(frame(1, u32(kMaxMessageSize + 1) + u32(1) + "\x01\x00"s)), IsEmpty());
  EXPECT_THAT(answers(frame(1, std::string(kMaxMessageSize, 'x'))), IsEmpty());
  const auto heard = answers(frame(1, "x"));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].stream, 1U);
  EXPECT_EQ(parse_answer(heard[0].payload).error().message,
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

}  // namespace
}  // namespace podqos::nri
