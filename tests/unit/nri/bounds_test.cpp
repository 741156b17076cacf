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
using test::hear;
using test::part;
using test::RecordingHandler;
using test::small_limits;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  EXPECT_EQ(handler_.state.containers.at(3).id, "c1");
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

TEST_F(BoundsTest, EndsAtTooManyPods) {
  EXPECT_EQ(answer(part(2, 0, true)), kMore);
  EXPECT_EQ(end(part(1, 0, false)), "Synchronize: 3 pods, at most 2");
}

TEST_F(BoundsTest, EndsAtTooManyContainers) {
  EXPECT_EQ(end(part(0, 5, false)), "Synchronize: 5 containers, at most 4");
}

TEST_F(BoundsTest, EndsAtTooManyParts) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(answer(part(0, 0, true)), kMore);
  EXPECT_EQ(end(part(0, 0, true)), "Synchronize: 4 parts, at most 3");
}

TEST_F(BoundsTest, EndsAtTooManyBytes) {
  api::SynchronizeRequest request;
  request.add_pods()->set_name(std::string(150, 'n'));
  request.set_more(true);
  const std::string payload = request.SerializeAsString();
  EXPECT_EQ(answer(payload), kMore);
  EXPECT_EQ(end(payload), "Synchronize: 300 bytes, at most 200");
}

TEST_F(BoundsTest, StaysEnded) {
  EXPECT_EQ(end(part(3, 0, false)), "Synchronize: 3 pods, at most 2");
  stream_ += 2;
  EXPECT_EQ(end(part(0, 0, false)), "Synchronize: 3 pods, at most 2");
  EXPECT_FALSE(session_.feed("").has_value());
  EXPECT_THAT(handler_.heard, IsEmpty());
}

TEST_F(BoundsTest, EndsWhenTheRuntimeDoesNotRead) {
  std::uint32_t stream = 1;
  Status fed;
  while (fed && stream < 100) {
    fed = session_.feed(call(stream, "StopContainer", ""));
    stream += 2;
  }
  ASSERT_FALSE(fed.has_value());
  EXPECT_EQ(fed.error().message, "108 bytes wait for the runtime to read them, at most 100");
  EXPECT_THAT(handler_.heard, SizeIs(6));
}

TEST_F(BoundsTest, SendsOnAsTheRuntimeReads) {
  std::string out;
  for (std::uint32_t stream = 1; stream < 20'001; stream += 2) {
    ASSERT_TRUE(session_.feed(call(stream, "Shutdown", "")).has_value());
    // Some bytes stay behind each time, up to half of what may wait.
    const std::size_t size = session_.output().size() > 50 ? 40 : 13;
    out += session_.output().substr(0, size);
    session_.sent(size);
    ASSERT_LE(session_.output().size(), 100U);
  }
  out += session_.output();
  session_.sent(session_.output().size());
  EXPECT_TRUE(session_.output().empty());
  const auto heard = hear(out);
  ASSERT_THAT(heard, SizeIs(10'000));
  EXPECT_EQ(heard.back().stream, 19'999U);
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
  ConnectionOptions options;
  options.index = "10";
  options.name = "podqos";
  Connection session{{}, options, handler};
  // Around the payload: 28 + 17 bytes for service and method, up to 5 for its own tag and length.
  const std::size_t length = GetParam() - 100;
  api::CreateContainerRequest request;
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

}  // namespace
}  // namespace podqos::nri
