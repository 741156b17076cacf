#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/annotations.h"
#include "nri/messages.h"
#include "tests/unit/nri/oracle.h"

namespace podqos::nri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

api::PodSandbox pod() {
  api::PodSandbox pod;
  pod.set_id("sandbox1");
  pod.set_uid("42");
  pod.set_name("front");
  pod.set_namespace_("web");
  return pod;
}

api::Container container() {
  api::Container container;
  container.set_id("c1");
  container.set_name("app");
  return container;
}

Result<core::ContainerFacts> facts_of(const api::PodSandbox& pod, const api::Container& container) {
  const PodEvent event = test::event_of(pod, container);
  return container_facts(event.pod, event.container);
}

Result<core::ContainerFacts> sandbox_facts_of(const api::PodSandbox& pod) {
  return sandbox_facts(test::event_of(pod).pod);
}

TEST(ContainerFacts, IdentityIsTheRuntimes) {
  // What an author of pods can write stands in the annotations.
  api::PodSandbox sandbox = pod();
  (*sandbox.mutable_annotations())["io.kubernetes.cri.sandbox-uid"] = "another";
  (*sandbox.mutable_annotations())["io.kubernetes.pod.uid"] = "another";
  (*sandbox.mutable_annotations())["io.container.manager"] = "cri-o";
  const auto facts = facts_of(sandbox, container());
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->id, "c1");
  EXPECT_EQ(facts->bundle, "");
  EXPECT_THAT(facts->annotations, IsEmpty());
  const auto& engine = facts->engine;
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->pod_uid, "42");
  EXPECT_EQ(engine->sandbox_id, "sandbox1");
  EXPECT_EQ(engine->pod_name, "front");
  EXPECT_EQ(engine->pod_namespace, "web");
  EXPECT_EQ(engine->container_name, "app");
  EXPECT_FALSE(engine->is_sandbox);
  EXPECT_TRUE(engine->cri);
  // Nothing told is nothing set.
  EXPECT_EQ(facts->cgroups_path, std::nullopt);
  EXPECT_EQ(facts->oom_score_adj, std::nullopt);
  EXPECT_EQ(facts->resources, core::EngineResources{});
}

TEST(ContainerFacts, AnnotationsOfThePodCountUnlessTheContainerHasItsOwn) {
  api::PodSandbox sandbox = pod();
  (*sandbox.mutable_annotations())["podqos.io/requests"] = "cpu=1";
  (*sandbox.mutable_annotations())["podqos.io/limits"] = "cpu=2";
  (*sandbox.mutable_annotations())["unknown.io/x"] = "y";
  api::Container app = container();
  (*app.mutable_annotations())["podqos.io/limits"] = "cpu=3";
  const auto facts = facts_of(sandbox, app);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->annotations.at("podqos.io/requests"), "cpu=1");
  EXPECT_EQ(facts->annotations.at("podqos.io/limits"), "cpu=3");
  EXPECT_FALSE(facts->annotations.contains("unknown.io/x"));
}

TEST(ContainerFacts, WhatCannotNameACgroupIsRefused) {
  api::PodSandbox sandbox = pod();
  sandbox.set_uid("../42");
  const auto bad_uid = facts_of(sandbox, container());
  ASSERT_FALSE(bad_uid);
  EXPECT_THAT(bad_uid.error().message, HasSubstr("container c1: the runtime's pod uid: "));
  EXPECT_THAT(sandbox_facts_of(sandbox).error().message, HasSubstr("the runtime's pod uid: "));

  api::Container app = container();
  app.set_name("a/b");
  const auto bad_name = facts_of(pod(), app);
  ASSERT_FALSE(bad_name);
  EXPECT_THAT(bad_name.error().message, HasSubstr("container c1: the runtime's container name: "));
  for (const auto set :
       {&api::PodSandbox::set_id<const char*>, &api::PodSandbox::set_name<const char*>,
        &api::PodSandbox::set_namespace_<const char*>}) {
    api::PodSandbox bad = pod();
    (bad.*set)("..");
    EXPECT_FALSE(facts_of(bad, container()));
    EXPECT_FALSE(sandbox_facts_of(bad));
  }
}

TEST(ContainerFacts, TooMuchIsRefused) {
  api::PodSandbox large = pod();
  (*large.mutable_annotations())["podqos.io/pod"] = std::string(codec::kMaxAnnotationSize + 1, 'x');
  const auto too_long = facts_of(large, container());
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(too_long.error().message, HasSubstr("container c1: annotation podqos.io/pod"));

  api::PodSandbox many = pod();
  for (std::size_t i = 0; i <= codec::kMaxKnownAnnotations; ++i)
    (*many.mutable_annotations())["podqos.io/requests." + std::to_string(i)] = "cpu=1";
  const auto too_many = facts_of(many, container());
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().code, ErrorCode::kTooLarge);
}

TEST(ContainerFacts, PathScoreAndResources) {
  api::Container app = container();
  api::LinuxContainer& on_linux = *app.mutable_linux();
  on_linux.set_cgroups_path("system.slice:cri-containerd:c1");
  on_linux.mutable_oom_score_adj()->set_value(0);
  api::LinuxResources& resources = *on_linux.mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(512);
  resources.mutable_cpu()->mutable_quota()->set_value(-1);
  resources.mutable_cpu()->mutable_period();  // 0 is "unset"
  resources.mutable_cpu()->mutable_realtime_runtime()->set_value(9500);
  resources.mutable_memory()->mutable_limit()->set_value(1 << 20);
  resources.mutable_memory()->mutable_swap()->set_value(2 << 20);
  resources.mutable_pids()->set_limit(7);
  api::HugepageLimit& pages = *resources.add_hugepage_limits();
  pages.set_page_size("2MB");
  pages.set_limit(std::numeric_limits<std::uint64_t>::max());
  (*resources.mutable_unified())["memory.low"] = "1";
  const auto facts = facts_of(pod(), app);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->cgroups_path, "system.slice:cri-containerd:c1");
  EXPECT_EQ(facts->oom_score_adj, 0);
  EXPECT_EQ(facts->resources.cpu_shares, 512);
  EXPECT_EQ(facts->resources.memory_swap, 2 << 20);
  EXPECT_EQ(facts->resources.cpu_quota, -1);
  EXPECT_EQ(facts->resources.cpu_period, std::nullopt);
  EXPECT_EQ(facts->resources.cpu_realtime_runtime, 9500);
  EXPECT_EQ(facts->resources.memory_limit, 1 << 20);
  EXPECT_EQ(facts->resources.pids_limit, 7);
  EXPECT_THAT(facts->resources.hugepages,
              ElementsAre(Pair("2MB", Bytes{std::numeric_limits<std::int64_t>::max()})));
  EXPECT_THAT(facts->resources.unified, ElementsAre(Pair("memory.low", "1")));
}

TEST(SandboxFacts, HaveThePodsOwnResources) {
  api::PodSandbox sandbox = pod();
  sandbox.mutable_linux()->set_cgroups_path("/k8s/sandbox1");
  api::LinuxResources& sums = *sandbox.mutable_linux()->mutable_pod_resources();
  sums.mutable_cpu()->mutable_shares()->set_value(256);
  sums.mutable_cpu()->mutable_quota()->set_value(50000);
  sums.mutable_cpu()->mutable_period()->set_value(100000);
  sums.mutable_memory()->mutable_limit()->set_value(1 << 30);
  api::LinuxResources& overhead = *sandbox.mutable_linux()->mutable_pod_overhead();
  overhead.mutable_cpu()->mutable_shares()->set_value(20);
  overhead.mutable_memory()->mutable_limit()->set_value(4096);
  const auto facts = sandbox_facts_of(sandbox);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->id, "sandbox1");
  EXPECT_EQ(facts->cgroups_path, "/k8s/sandbox1");
  const auto& engine = facts->engine;
  ASSERT_TRUE(engine);
  EXPECT_TRUE(engine->is_sandbox);
  ASSERT_TRUE(engine->pod_sums);
  EXPECT_EQ(engine->pod_sums->cpu_shares, 256);
  EXPECT_EQ(engine->pod_sums->cpu_quota, 50000);
  EXPECT_EQ(engine->pod_sums->cpu_period, 100000);
  EXPECT_EQ(engine->pod_sums->memory_limit, 1 << 30);
  ASSERT_TRUE(engine->pod_overhead);
  EXPECT_EQ(engine->pod_overhead->cpu_shares, 20);
  EXPECT_EQ(engine->pod_overhead->memory_limit, 4096);
}

}  // namespace
}  // namespace podqos::nri
