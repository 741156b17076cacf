#include "nri/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
using test::podqos_plugin;
using test::RecordingHandler;
using test::SessionTest;
using test::u32;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ValuesIn;

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

TEST_F(SessionTest, AnswersUpdateContainer) {
  api::UpdateContainerRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_container()->set_name("c");
  request.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(512);
  EXPECT_EQ(answer("UpdateContainer", request.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update p/c shares 512"));
}

TEST_F(SessionTest, AnswersUpdatePodSandbox) {
  api::UpdatePodSandboxRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(77);
  EXPECT_EQ(answer("UpdatePodSandbox", request.SerializeAsString()), "");
  EXPECT_THAT(handler_.heard, ElementsAre("update-pod p limit 77"));
}

TEST_F(SessionTest, AnswersWhatItDidNotAskFor) {
  for (const char* method : {"Shutdown", "PostUpdatePodSandbox", "PostCreateContainer",
                             "PostStartContainer", "PostUpdateContainer"})
    EXPECT_EQ(answer(method, ""), "") << method;
  api::StateChangeEvent change;
  change.set_event(api::POST_START_CONTAINER);
  EXPECT_EQ(answer("StateChange", change.SerializeAsString()), "");
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
    const auto answered = answer(method, "");
    ASSERT_FALSE(answered.has_value()) << method;
    EXPECT_EQ(answered.error().message, "refused with code 2: \"broken\"") << method;
  }
}

struct EventCase {
  std::string method;
  api::Event event;  ///< UNKNOWN: no StateChange reports it
  std::string want;
};
class SessionEvents : public SessionTest, public ::testing::WithParamInterface<EventCase> {};

TEST_P(SessionEvents, ReachOneFunctionHoweverTheyCome) {
  const std::string container = GetParam().want.contains('/') ? "c" : "";
  const std::string payload = about<api::EventRequest>("p", container);
  api::StateChangeEvent change;
  change.set_event(GetParam().event);
  change.mutable_pod()->set_name("p");
  if (!container.empty()) change.mutable_container()->set_name("c");
  for (const Status& answer_of_handler : {Status{}, Status{fail(ErrorCode::kIo, "broken")}}) {
    handler_.answer = answer_of_handler;
    handler_.heard.clear();
    EXPECT_EQ(answer(GetParam().method, payload).has_value(), answer_of_handler.has_value());
    EXPECT_THAT(handler_.heard, ElementsAre(GetParam().want));
    if (GetParam().event == api::UNKNOWN) continue;
    EXPECT_EQ(answer("StateChange", change.SerializeAsString()).has_value(),
              answer_of_handler.has_value());
    EXPECT_THAT(handler_.heard, ElementsAre(GetParam().want, GetParam().want));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SessionEvents,
                         ValuesIn<EventCase>({
                             {"RunPodSandbox", api::RUN_POD_SANDBOX, "run-pod p"},
                             {"StopPodSandbox", api::STOP_POD_SANDBOX, "stop-pod p"},
                             {"RemovePodSandbox", api::REMOVE_POD_SANDBOX, "remove-pod p"},
                             {"StartContainer", api::START_CONTAINER, "start p/c"},
                             {"StopContainer", api::UNKNOWN, "stop p/c"},
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
  const std::string payload = about<api::EventRequest>("p", "c") + unknown;
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
  const auto heard = answers(frame(1, other));
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

/// A runtime at the other end of the socket.
class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    runtime_ = sys::UniqueFd{ends[0]};
    plugin_fd_ = ends[1];
    link_.emplace(sys::UniqueFd{ends[1]}, podqos_plugin(), handler_);
    link_->begin();
    ASSERT_TRUE(link_->serve(POLLOUT));
    static_cast<void>(heard());
  }

  void say(std::string_view bytes) {
    ASSERT_EQ(::write(runtime_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  /// What the runtime has been sent.
  [[nodiscard]] std::string heard() {
    std::array<char, 4096> text{};
    const ssize_t size = ::read(runtime_.get(), text.data(), text.size());
    return size < 0 ? "" : std::string{text.data(), static_cast<std::size_t>(size)};
  }
  [[nodiscard]] bool has_unread() const {
    char byte = 0;
    return ::recv(plugin_fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }

  RecordingHandler handler_;
  sys::UniqueFd runtime_;
  int plugin_fd_ = -1;
  std::optional<Connection> link_;
};

/// A call that is answered at once.
std::string configure_call(std::uint32_t stream) {
  return call(stream, "Configure", "");
}

TEST_F(ConnectionTest, TakesWhatItHasAnswered) {
  say(configure_call(1) + configure_call(3));
  ASSERT_TRUE(link_->serve(POLLIN));
  EXPECT_NE(heard(), "");
  EXPECT_FALSE(has_unread());
}

TEST_F(ConnectionTest, TakesEachByteOnce) {
  for (const char byte : configure_call(1)) {
    EXPECT_EQ(heard(), "");
    say({&byte, 1});
    ASSERT_TRUE(link_->serve(POLLIN));
    EXPECT_FALSE(has_unread());
  }
  EXPECT_NE(heard(), "");
}

TEST_F(ConnectionTest, HasNothingToDoWhenNothingHasCome) {
  EXPECT_TRUE(link_->serve(POLLIN));
  EXPECT_EQ(heard(), "");
}

TEST_F(ConnectionTest, EndsWithTheRuntime) {
  say(configure_call(1));
  runtime_ = {};
  const auto ended = link_->serve(POLLIN | POLLHUP);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace podqos::nri
