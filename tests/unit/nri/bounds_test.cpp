#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/node_state.h"
#include "nri/session.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using test::call;
using test::frame;
using test::hear;
using test::kRequest;
using test::message;
using test::RecordingHandler;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SessionOptions small_limits() {
  SessionOptions options;
  options.index = "10";
  options.name = "podqos";
  options.node_state = {.parts = 3, .bytes = 200, .pods = 2, .containers = 4, .unread = 200};
  options.unsent_bytes = 100;
  return options;
}

std::string part(int pods, int containers, bool more) {
  api::SynchronizeRequest request;
  for (int i = 0; i < pods; ++i)
    request.add_pods()->set_id("p" + std::to_string(i));
  for (int i = 0; i < containers; ++i)
    request.add_containers()->set_id("c" + std::to_string(i));
  request.set_more(more);
  return request.SerializeAsString();
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
  Session session_{small_limits(), handler_};
  std::uint32_t stream_ = 1;
};

constexpr std::string_view kMore = "\x10\x01";

TEST_F(BoundsTest, CollectsThePartsOfANodesState) {
  handler_.synchronize_answer->set_more(true);
  handler_.synchronize_answer->add_update()->set_container_id("id");
  EXPECT_EQ(answer(part(1, 0, true)), kMore);
  EXPECT_EQ(answer(part(1, 2, true)), kMore);
  EXPECT_THAT(handler_.heard, IsEmpty());
  EXPECT_EQ(answer(part(0, 2, false)), "\n\x04\n\x02id");
  EXPECT_THAT(handler_.heard, ElementsAre("synchronize 2 4"));
  EXPECT_FALSE(handler_.state.more());
  EXPECT_EQ(handler_.state.containers(3).id(), "c1");
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
  // The name with its tag and the two bytes of its length.
  EXPECT_EQ(end(payload), "Synchronize: 306 bytes, at most 200");
}

/// A field of 1000 bytes that podqos does not know, as an author may fill it; in protobuf's
/// encoding all up to 15 have one byte before the two of the length.
std::string unknown(int field) {
  return static_cast<char>(field * 8 + 2) + ("\xe8\x07" + std::string(1000, 'x'));
}

/// What podqos reads of a node, and all around that it does not.
api::SynchronizeRequest node(bool with_all) {
  api::SynchronizeRequest request;
  api::PodSandbox& pod = *request.add_pods();
  pod.set_id("p");
  pod.set_name("web");
  pod.set_uid("u");
  pod.set_namespace_("shop");
  pod.set_pid(42);
  (*pod.mutable_annotations())["podqos.io/ignore"] = "true";
  pod.mutable_linux()->set_cgroups_path("/a");
  pod.mutable_linux()->set_cgroup_parent("/b");
  pod.mutable_linux()->mutable_pod_overhead()->mutable_memory()->mutable_limit()->set_value(1);
  pod.mutable_linux()->mutable_pod_resources()->mutable_pids()->set_limit(3);
  api::Container& container = *request.add_containers();
  container.set_id("c");
  container.set_pod_sandbox_id("p");
  container.set_name("app");
  container.set_state(api::CONTAINER_RUNNING);
  container.set_pid(43);
  (*container.mutable_annotations())["podqos.io/container"] = "web";
  api::LinuxContainer& on_linux = *container.mutable_linux();
  on_linux.set_cgroups_path("/c");
  on_linux.mutable_oom_score_adj();
  api::LinuxResources& resources = *on_linux.mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(2);
  resources.add_hugepage_limits()->set_page_size("2MB");
  (*resources.mutable_unified())["memory.high"] = "max";
  if (!with_all) return request;
  const std::string text(1000, 'x');
  EXPECT_TRUE(request.MergeFromString(unknown(15)));
  EXPECT_TRUE(pod.MergeFromString(unknown(10)));
  EXPECT_TRUE(pod.mutable_linux()->MergeFromString(unknown(5)));
  EXPECT_TRUE(pod.mutable_linux()->mutable_pod_resources()->MergeFromString(unknown(7)));
  EXPECT_TRUE(container.MergeFromString(unknown(7) + unknown(8) + unknown(9) + unknown(10)));
  EXPECT_TRUE(on_linux.MergeFromString(unknown(2)));
  EXPECT_TRUE(resources.MergeFromString(unknown(7)));
  (*pod.mutable_annotations())["other"] = text;
  (*pod.mutable_labels())["app"] = text;
  (*container.mutable_annotations())["other"] = text;
  (*container.mutable_labels())["app"] = text;
  container.set_status_message(text);
  return request;
}

TEST(NodeStateTest, KeepsAndCountsOnlyWhatPodqosReads) {
  NodeStateLimits limits = small_limits().node_state;
  limits.bytes = node(false).ByteSizeLong();
  NodeState state{limits};
  const auto last = state.add(node(true).SerializeAsString());
  ASSERT_TRUE(last.has_value()) << last.error().message;
  EXPECT_TRUE(*last);
  const auto read = std::move(state).read();
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->SerializeAsString(), node(false).SerializeAsString());
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
    fed = session_.feed(call(stream, "Shutdown", ""));
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

TEST(NodeStateTest, TakesInMoreThanItsLimitOfWhatNobodyReads) {
  NodeState state{{}};
  api::SynchronizeRequest request;
  // 1 MiB of environment; its length is 80 80 40.
  const std::string environment = "\x42\x80\x80\x40" + std::string(std::size_t{1} << 20U, 'x');
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(request.add_containers()->MergeFromString(environment));
  request.set_more(true);
  // Three times the limit in all.
  for (int part = 0; part < 64; ++part)
    ASSERT_TRUE(state.add(request.SerializeAsString()).has_value()) << part;
  const auto read = std::move(state).read();
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->containers_size(), 192);
}

/// A pod that is none.
const std::string kNoPod = "\x0a\x02\xff\xff";

TEST(NodeStateTest, IsReadWhenItIsAskedFor) {
  NodeState state;
  const auto last = state.add(kNoPod);
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(*last);
  const auto read = std::move(state).read();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
}

TEST(NodeStateTest, IsReadAtOnceWhereItIsMuch) {
  NodeStateLimits limits;
  limits.unread = kNoPod.size() - 1;
  NodeState state{limits};
  const auto refused = state.add(kNoPod);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  // Nothing is left of it.
  ASSERT_TRUE(state.add(part(1, 1, false)).has_value());
  const auto read = std::move(state).read();
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->pods_size(), 1);
}

TEST(NodeStateTest, RefusesWhatIsNoMessage) {
  for (const std::string& bytes :
       {std::string("\x0a"), std::string("\x0a\x05p"), std::string("\x18"), std::string("\x18\xff"),
        std::string("\x0c"), std::string(1, '\0')}) {
    NodeState state;
    const auto refused = state.add(bytes);
    ASSERT_FALSE(refused.has_value()) << bytes.size();
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(NodeStateTest, KeepsTheOrderOfParts) {
  NodeStateLimits limits;
  limits.unread = 8;
  NodeState state{limits};
  for (const std::string_view id : {"a", "b", "c", "d", "e"}) {
    api::SynchronizeRequest request;
    request.add_pods()->set_id(std::string{id});
    request.set_more(id != "e");
    const auto last = state.add(request.SerializeAsString());
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(*last, id == "e");
  }
  const auto read = std::move(state).read();
  ASSERT_TRUE(read.has_value());
  std::string ids;
  for (const auto& pod : read->pods())
    ids += pod.id();
  EXPECT_EQ(ids, "abcde");
}

/// A message of `size` bytes, header included, to a session without small limits.
class MessageSizes : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MessageSizes, PassInBothDirections) {
  RecordingHandler handler;
  SessionOptions options;
  options.index = "10";
  options.name = "podqos";
  Session session{options, handler};
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

SessionOptions usual_limits() {
  SessionOptions options = small_limits();
  options.unsent_bytes = 10'000;
  return options;
}

TEST(HostileBytes, ATruncatedLifeLeavesAWaitingSession) {
  const std::string life = a_life();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= life.size(); ++size) {
    RecordingHandler handler;
    Session session{usual_limits(), handler};
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
      Session session{usual_limits(), handler};
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
    Session session{usual_limits(), handler};
    static_cast<void>(session.feed(frame(1, bytes)));
    static_cast<void>(session.feed(bytes));
    EXPECT_THAT(handler.heard, IsEmpty());
  }
}

}  // namespace
}  // namespace podqos::nri
