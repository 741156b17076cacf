#include "nri/session.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/wire.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::call;
using test::frame;
using test::hear;
using test::Heard;
using test::kRequest;
using test::kResponse;
using test::message;
using test::RecordingHandler;
using test::u32;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

SessionOptions podqos_plugin() {
  SessionOptions options;
  options.index = "10";
  options.name = "podqos";
  return options;
}

class SessionTest : public ::testing::Test {
 protected:
  /// What the session sends for these bytes, as the runtime takes it.
  std::vector<Heard> answers(std::string_view bytes) {
    const Status fed = session_.feed(bytes);
    EXPECT_TRUE(fed.has_value()) << fed.error().message;
    const std::string out{session_.output()};
    session_.sent(out.size());
    return hear(out);
  }

  /// The one answer to a call: its payload, or the error's text.
  Result<std::string> answer(const std::string& method, const std::string& payload) {
    const auto heard = answers(call(stream_, method, payload, 2s));
    EXPECT_THAT(heard, SizeIs(1));
    if (heard.empty()) return fail(ErrorCode::kIo, "none");
    EXPECT_EQ(heard[0].connection, Connection::kPlugin);
    EXPECT_EQ(heard[0].type, MessageType::kResponse);
    EXPECT_EQ(heard[0].stream, stream_);
    stream_ += 2;
    return parse_answer(heard[0].payload);
  }

  RecordingHandler handler_;
  Session session_{podqos_plugin(), handler_};
  std::uint32_t stream_ = 1;
};

TEST_F(SessionTest, BeginsWithTheRegistration) {
  EXPECT_TRUE(session_.begin().has_value());
  EXPECT_EQ(session_.output(),
            u32(2) + u32(70) + u32(60) + u32(1) +
                "\x01\x00\n\x1cnri.pkg.api.v1alpha1.Runtime\x12\x0eRegisterPlugin"
                "\x1a\x0c\n\x06podqos\x12\x02"
                "10"s);
}

TEST_F(SessionTest, TellsTheHandlerThatItIsRegistered) {
  EXPECT_TRUE(session_.begin().has_value());
  EXPECT_TRUE(session_.feed(frame(2, message(1, kResponse, ""))).has_value());
  EXPECT_THAT(handler_.heard, ElementsAre("registered"));
  EXPECT_TRUE(session_.feed(frame(2, message(1, kResponse, ""))).has_value());
  EXPECT_THAT(handler_.heard, SizeIs(1));
}

TEST_F(SessionTest, TellsTheHandlerThatItIsRefused) {
  EXPECT_TRUE(session_.begin().has_value());
  EXPECT_TRUE(session_
                  .feed(frame(2, message(1, kResponse,
                                         "\n\x07\x08\x02\x12\x03"
                                         "bad")))
                  .has_value());
  EXPECT_THAT(handler_.heard,
              ElementsAre("registered: RegisterPlugin: refused with code 2: \"bad\""));
  EXPECT_EQ(session_.progress(), Progress::kRefused);
}

TEST_F(SessionTest, TakesAnOversizedAnswerForARefusal) {
  EXPECT_TRUE(session_.begin().has_value());
  const std::string whole = message(1, kResponse, std::string(kMaxMessageSize + 1, 'x'));
  EXPECT_TRUE(session_.feed(frame(2, whole.substr(0, 10))).has_value());
  EXPECT_TRUE(session_.feed(frame(2, whole.substr(10, kMaxMessageSize))).has_value());
  EXPECT_TRUE(session_.feed(frame(2, "x")).has_value());
  EXPECT_THAT(handler_.heard,
              ElementsAre("registered: RegisterPlugin: an answer of more than 4194304 bytes"));
}

TEST_F(SessionTest, IgnoresWhatItDidNotAskFor) {
  EXPECT_TRUE(session_.feed(frame(2, message(1, kResponse, ""))).has_value());
  EXPECT_TRUE(session_.begin().has_value());
  const std::string noise = frame(2, message(3, kResponse, "")) +
                            frame(2, message(1, kRequest, "")) +
                            frame(1, message(1, kResponse, ""));
  EXPECT_TRUE(session_.feed(noise).has_value());
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(SessionTest, IsConfiguredBeforeTheRegistrationIsAnswered) {
  EXPECT_TRUE(session_.begin().has_value());
  session_.sent(session_.output().size());
  api::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version("v2.2.1");
  const std::string whole = call(1, "Configure", request.SerializeAsString());
  // The answer comes between two frames of the same message.
  const std::string_view bytes = std::string_view{whole}.substr(8);
  const auto heard = answers(frame(1, bytes.substr(0, 20)) + frame(2, message(1, kResponse, "")) +
                             frame(1, bytes.substr(20)));
  EXPECT_THAT(handler_.heard, ElementsAre("registered", "configure containerd v2.2.1"));
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].payload, "\x12\x03\x10\xff\x3f");
}

TEST_F(SessionTest, AsksForTheOldestEventsWhenTold) {
  SessionOptions options = podqos_plugin();
  options.events = EventChoice::kOldest;
  Session session{options, handler_};
  api::ConfigureRequest request;
  request.set_nri_version("v0.12.2");
  EXPECT_TRUE(session.feed(call(1, "Configure", request.SerializeAsString())).has_value());
  EXPECT_EQ(session.output(), frame(1, message(1, kResponse, "\x12\x03\x10\xff\x0f")));
}

TEST_F(SessionTest, HandsOnTheBudget) {
  EXPECT_TRUE(session_.feed(call(1, "Configure", "", 1500ms)).has_value());
  EXPECT_TRUE(session_.feed(call(3, "Configure", "")).has_value());
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
  const auto answered = answer("CreateContainer", about<api::CreateContainerRequest>("p", "c"));
  EXPECT_EQ(answered, "\n\x06\x32\x04\x1a\x02/a");
  EXPECT_THAT(handler_.heard, ElementsAre("create p/c"));
  EXPECT_THAT(handler_.budgets, ElementsAre(Budget{2s}));
}

TEST_F(SessionTest, KeepsAZeroThatIsSet) {
  handler_.create_answer->mutable_adjust()->mutable_linux()->mutable_oom_score_adj()->set_value(0);
  EXPECT_EQ(answer("CreateContainer", about<api::CreateContainerRequest>("p", "c")),
            "\n\x04\x32\x02\x22\x00"s);
}

TEST_F(SessionTest, AnswersUpdateContainer) {
  handler_.update_answer->add_update()->set_container_id("id");
  api::UpdateContainerRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_container()->set_name("c");
  request.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(512);
  EXPECT_EQ(answer("UpdateContainer", request.SerializeAsString()), "\n\x04\n\x02id");
  EXPECT_THAT(handler_.heard, ElementsAre("update p/c shares 512"));
}

TEST_F(SessionTest, AnswersStopContainer) {
  handler_.stop_answer->add_update()->set_ignore_failure(true);
  EXPECT_EQ(answer("StopContainer", about<api::StopContainerRequest>("p", "c")), "\n\x02\x18\x01");
  EXPECT_THAT(handler_.heard, ElementsAre("stop p/c"));
}

TEST_F(SessionTest, AnswersUpdatePodSandbox) {
  api::UpdatePodSandboxRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(77);
  EXPECT_EQ(answer("UpdatePodSandbox", request.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update-pod p limit 77"));
}

TEST_F(SessionTest, HearsOfTheShutdown) {
  EXPECT_EQ(answer("Shutdown", ""), "");
  EXPECT_THAT(handler_.heard, ElementsAre("shutdown"));
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
  handler_.update_answer = fail(ErrorCode::kIo, "broken");
  handler_.stop_answer = fail(ErrorCode::kIo, "broken");
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

TEST_F(SessionTest, RefusesStreamsOutOfOrder) {
  EXPECT_THAT(answers(call(5, "Shutdown", "")), SizeIs(1));
  for (const std::uint32_t stream : {5U, 3U, 6U, 0U}) {
    const auto heard = answers(call(stream, "Shutdown", ""));
    ASSERT_THAT(heard, SizeIs(1));
    EXPECT_EQ(heard[0].stream, stream);
    EXPECT_THAT(parse_answer(heard[0].payload).error().message,
                ::testing::StartsWith("refused with code 3: "));
  }
  EXPECT_THAT(handler_.heard, SizeIs(1));
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

struct IdentityCase {
  std::string name;
  std::string index;
  std::string plugin;
  std::string want;
};
class SessionIdentity : public TestWithParam<IdentityCase> {};

TEST_P(SessionIdentity, IsWhatARuntimeAccepts) {
  RecordingHandler handler;
  SessionOptions options;
  options.index = GetParam().index;
  options.name = GetParam().plugin;
  Session session{options, handler};
  const Status begun = session.begin();
  EXPECT_EQ(begun ? "" : begun.error().message, GetParam().want);
  EXPECT_EQ(session.output().empty(), !begun.has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Table, SessionIdentity,
    ValuesIn<IdentityCase>({
        {"Good", "00", "aZ0_.+-", ""},
        {"ShortIndex", "1", "a", "expected a plugin index of two digits, found \"1\""},
        {"LongIndex", "100", "a", "expected a plugin index of two digits, found \"100\""},
        {"LetterIndex", "1x", "a", "expected a plugin index of two digits, found \"1x\""},
        {"NoName", "10", "", "expected a plugin name of letters, digits and _.+-, found \"\""},
        {"Slash", "10", "a/b", "expected a plugin name of letters, digits and _.+-, found \"a/b\""},
    }),
    [](const auto& c) { return c.param.name; });

/// A plugin for which a Synchronize takes its time.
class SlowHandler : public RecordingHandler {
 public:
  SlowHandler(LeapingClock& clock, std::chrono::nanoseconds time) : clock_(clock), time_(time) {}
  Result<api::SynchronizeResponse> synchronize(NodeState node, Budget budget) override {
    clock_.pass(time_);
    return RecordingHandler::synchronize(std::move(node), budget);
  }

 private:
  LeapingClock& clock_;
  std::chrono::nanoseconds time_;
};

TEST(SessionTimes, EachRequestThatIsHandled) {
  LeapingClock clock;
  SlowHandler handler{clock, 3ms};
  handler.answer = fail(ErrorCode::kBusy, "busy");
  SessionOptions options = podqos_plugin();
  options.clock = &clock;
  Session session{options, handler};
  std::vector<std::pair<Request, std::chrono::nanoseconds>> want;
  std::uint32_t stream = 1;
  for (std::size_t i = 0; i < kRequestNames.size(); ++i) {
    const auto request = static_cast<Request>(i);
    EXPECT_TRUE(session.feed(call(stream, std::string{kRequestNames.at(i)}, "")));
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
  SessionOptions options = podqos_plugin();
  options.clock = &clock;
  Session session{options, handler};
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
