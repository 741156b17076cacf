#include "nri/messages.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/session_fixture.h"

namespace podqos::nri {
namespace {

using test::adjustment_for;
using test::part;
using ::testing::ElementsAre;
using ::testing::Pair;

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
  pod.mutable_linux()->mutable_pod_resources()->mutable_cpu()->mutable_shares()->set_value(3);
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
  api::LinuxCPU& cpu = *resources.mutable_cpu();
  cpu.mutable_shares()->set_value(2);
  cpu.mutable_quota()->set_value(-1);
  cpu.mutable_period();  // 0 is "unset"
  cpu.mutable_realtime_runtime()->set_value(9500);
  resources.mutable_memory()->mutable_limit()->set_value(1 << 20);
  resources.mutable_memory()->mutable_reservation()->set_value(1 << 19);
  resources.mutable_memory()->mutable_swap()->set_value(2 << 20);
  api::HugepageLimit& pages = *resources.add_hugepage_limits();
  pages.set_page_size("2MB");
  pages.set_limit(std::numeric_limits<std::uint64_t>::max());
  (*resources.mutable_unified())["memory.high"] = "max";
  resources.mutable_pids()->set_limit(7);
  if (!with_all) return request;
  const std::string text(1000, 'x');
  api::LinuxResources& overhead = *pod.mutable_linux()->mutable_pod_overhead();
  overhead.add_hugepage_limits()->set_page_size(text);
  (*overhead.mutable_unified())[text] = text;
  pod.mutable_linux()->mutable_pod_resources()->mutable_pids()->set_limit(3);
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

/// The state in one part, within a limit.
NodeState read(const std::string& part, std::size_t limit = NodeState::kLimit) {
  NodeState state;
  const auto last = state.add(part, limit);
  EXPECT_TRUE(last.has_value()) << last.error().message;
  EXPECT_TRUE(last.value_or(false));
  return state;
}

TEST(NodeStateTest, KeepsAndCountsOnlyWhatPodqosReads) {
  // More than all that is read, less than that and one of the texts that are not.
  const NodeState all = read(node(true).SerializeAsString(), 2 * sizeof(Reported) + 500);
  const NodeState known = read(node(false).SerializeAsString());
  EXPECT_EQ(all.pods, known.pods);
  EXPECT_EQ(all.containers, known.containers);
  ASSERT_EQ(all.pods.size(), 1U);
  const auto& [pod, sandbox, pod_pid, pod_created] = all.pods.front();
  EXPECT_EQ(pod.id + " " + sandbox, "p p");
  core::EngineAnnotations identity;
  identity.cri = true;
  identity.sandbox_id = "p";
  identity.pod_name = "web";
  identity.pod_uid = "u";
  identity.pod_namespace = "shop";
  identity.pod_overhead.emplace().memory_limit = 1;
  identity.pod_sums.emplace().cpu_shares = 3;
  EXPECT_EQ(pod.engine, identity);
  EXPECT_EQ(pod_pid, 42U);
  EXPECT_EQ(pod.cgroups_path, "/a");
  EXPECT_EQ(pod.resources, core::EngineResources{});
  EXPECT_THAT(pod.annotations, ElementsAre(Pair("podqos.io/ignore", "true")));
  ASSERT_EQ(all.containers.size(), 1U);
  const auto& [container, sandbox_id, pid, created] = all.containers.front();
  EXPECT_EQ(container.id + " " + sandbox_id, "c p");
  EXPECT_EQ(container.engine->container_name, "app");
  EXPECT_EQ(pid, 43U);
  EXPECT_FALSE(created);
  EXPECT_EQ(container.cgroups_path, "/c");
  EXPECT_EQ(container.oom_score_adj, 0);
  EXPECT_EQ(container.resources,
            (core::EngineResources{
                .cpu_shares = 2,
                .cpu_quota = -1,
                .cpu_period = std::nullopt,
                .cpu_realtime_runtime = 9500,
                .memory_limit = 1 << 20,
                .memory_reservation = 1 << 19,
                .memory_swap = 2 << 20,
                .pids_limit = 7,
                .hugepages = {{"2MB", Bytes{std::numeric_limits<std::int64_t>::max()}}},
                .unified = {{"memory.high", "max"}}}));
}

TEST(NodeStateTest, TakesInMoreThanItsLimitOfWhatNobodyReads) {
  NodeState state;
  api::SynchronizeRequest request;
  // 1 MiB of environment; its length is 80 80 40.
  const std::string environment = "\x42\x80\x80\x40" + std::string(std::size_t{1} << 20U, 'x');
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(request.add_containers()->MergeFromString(environment));
  request.set_more(true);
  // Three times the limit in all.
  for (int part = 0; part < 64; ++part)
    ASSERT_TRUE(state.add(request.SerializeAsString()).has_value()) << part;
  EXPECT_EQ(state.containers.size(), 192U);
}

TEST(NodeStateTest, CountsNamesAndEntriesInEveryKindOfResources) {
  const std::string long_name(8000, 'x');
  api::SynchronizeRequest pages;
  api::SynchronizeRequest small;
  const auto resources_in = [](api::SynchronizeRequest& request) {
    return request.add_containers()->mutable_linux()->mutable_resources();
  };
  resources_in(pages)->add_hugepage_limits()->set_page_size(long_name);
  auto& unified = *resources_in(small)->mutable_unified();
  for (int i = 0; i < 100; ++i)
    unified[std::to_string(i)] = "";
  for (const auto* request : {&pages, &small}) {
    NodeState state;
    EXPECT_EQ(state.add(request->SerializeAsString(), 5000).error(),
              (Error{.code = ErrorCode::kTooLarge,
                     .message = "Synchronize: more than 5000 bytes of pods and containers"}));
  }
}

TEST(NodeStateTest, RefusesWhatIsNoMessageAndForgetsThePartsBefore) {
  for (const std::string& bytes :
       {std::string("\x0a\x02\xff\xff"), std::string("\x0a"), std::string("\x0a\x05p"),
        std::string("\x18"), std::string("\x18\xff"), std::string("\x0c"), std::string(1, '\0')}) {
    NodeState state;
    ASSERT_TRUE(state.add(part(1, 1, true)).has_value());
    const auto refused = state.add(bytes);
    ASSERT_FALSE(refused.has_value()) << bytes.size();
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    ASSERT_TRUE(state.add(part(1, 0, false)).has_value());
    EXPECT_EQ(state.pods.size(), 1U);
    EXPECT_TRUE(state.containers.empty());
  }
}

/// protobuf steps over a field of another wire type, too.
TEST(NodeStateTest, SkipsAKnownFieldOfAnotherType) {
  // A pod as a number, `more` as text, and a pod whose id is a number.
  const NodeState state = read(std::string("\x08\x01\x1a\x01\x01\x0a\x02\x08\x07"));
  ASSERT_EQ(state.pods.size(), 1U);
  EXPECT_EQ(state.pods.front(), Reported{});
}

TEST(NodeStateTest, KeepsTheOrderOfParts) {
  NodeState state;
  for (const std::string_view id : {"a", "b", "c", "d", "e"}) {
    api::SynchronizeRequest request;
    request.add_pods()->set_id(std::string{id});
    request.set_more(id != "e");
    const auto last = state.add(request.SerializeAsString());
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(*last, id == "e");
  }
  std::string ids;
  for (const Reported& pod : state.pods)
    ids += pod.facts.id;
  EXPECT_EQ(ids, "abcde");
}

// Field numbers: tests/unit/nri/nri.proto; a second plugin that sets the same field fails the
// container.
TEST(Adjustment, OnlyWhatIsSetIsClaimed) {
  EXPECT_EQ(format_create_response({}), "");
  const api::LinuxContainerAdjustment placed =
      adjustment_for({.cgroups_path = "/kubepods/pod42/c1"}).linux();
  EXPECT_EQ(placed.cgroups_path(), "/kubepods/pod42/c1");
  EXPECT_FALSE(placed.has_resources());
  EXPECT_FALSE(placed.has_oom_score_adj());
  const api::LinuxContainerAdjustment quota =
      adjustment_for({.values = {.cpu_quota = Micros{50000}, .cpu_period = Micros{100000}}})
          .linux();
  EXPECT_EQ(quota.cgroups_path(), "");
  EXPECT_EQ(quota.resources().cpu().quota().value(), 50000);
  EXPECT_EQ(quota.resources().cpu().period().value(), 100000U);
  EXPECT_FALSE(quota.resources().cpu().has_shares());
  EXPECT_FALSE(quota.resources().has_memory());
  // A message that is there is set (NRI 0.7 and later).
  const api::LinuxContainerAdjustment zero = adjustment_for({.oom_score_adj = 0}).linux();
  EXPECT_TRUE(zero.has_oom_score_adj());
  EXPECT_EQ(zero.oom_score_adj().value(), 0);
  EXPECT_FALSE(zero.has_resources());
}

TEST(Adjustment, EveryValue) {
  const api::LinuxContainerAdjustment negative =
      adjustment_for({.values = {.cpu_quota = Micros{-1}, .pids_limit = -1}, .oom_score_adj = -997})
          .linux();
  EXPECT_EQ(negative.resources().cpu().quota().value(), -1);
  EXPECT_EQ(negative.resources().pids().limit(), -1);
  EXPECT_EQ(negative.oom_score_adj().value(), -997);
  const api::LinuxContainerAdjustment all =
      adjustment_for({.values = {.cpu_shares = CpuShares{102},
                                 .memory_limit = Bytes{1 << 27},
                                 .hugepages = {{"2MB", Bytes{4 << 20}}},
                                 .pids_limit = 64,
                                 .unified = {{"memory.swap.max", "0"}}},
                      .oom_score_adj = 938})
          .linux();
  const api::LinuxResources& resources = all.resources();
  EXPECT_EQ(resources.cpu().shares().value(), 102U);
  EXPECT_EQ(resources.memory().limit().value(), 1 << 27);
  EXPECT_EQ(resources.pids().limit(), 64);
  ASSERT_EQ(resources.hugepage_limits_size(), 1);
  EXPECT_EQ(resources.hugepage_limits(0).page_size(), "2MB");
  EXPECT_EQ(resources.hugepage_limits(0).limit(), 4U << 20U);
  ASSERT_EQ(resources.unified_size(), 1);
  EXPECT_EQ(resources.unified().at("memory.swap.max"), "0");
  EXPECT_EQ(all.oom_score_adj().value(), 938);
}

}  // namespace
}  // namespace podqos::nri
