#include <chrono>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/recording_handler.h"
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
using ::testing::TestWithParam;
using ::testing::ValuesIn;

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

TEST_F(SessionTest, AsksForTheOldestEventsWhenToldUnlessTheRuntimeKnowsTheNewest) {
  ConnectionOptions options = podqos_plugin();
  options.newest_events = false;
  Connection session{{}, options, handler_};
  EXPECT_TRUE(session.feed(call(1, "Configure", "")).has_value());
  EXPECT_EQ(session.output(), frame(1, message(1, kResponse, "\x12\x03\x10\xff\x0f")));
  session.sent(session.output().size());
  api::ConfigureRequest request;
  request.set_nri_version("0.0.0-unknown");  // as some builds of 0.12 say
  EXPECT_TRUE(session.feed(call(3, "Configure", request.SerializeAsString())).has_value());
  EXPECT_EQ(session.output(), frame(1, message(3, kResponse, "\x12\x03\x10\xff\x3f")));
}

TEST_F(SessionTest, HandsOnTheBudget) {
  EXPECT_TRUE(session_.feed(call(1, "Configure", "", 1500ms)).has_value());
  EXPECT_TRUE(session_.feed(call(3, "Configure", "")).has_value());
  EXPECT_THAT(handler_.budgets, ElementsAre(Budget{1500ms}, Budget{}));
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
  ConnectionOptions options;
  options.index = GetParam().index;
  options.name = GetParam().plugin;
  Connection session{{}, options, handler};
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

}  // namespace
}  // namespace podqos::nri
