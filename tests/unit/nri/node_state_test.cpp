#include "nri/node_state.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/nri/session_limits.h"

namespace podqos::nri {
namespace {

using test::part;
using test::small_limits;

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

}  // namespace
}  // namespace podqos::nri
