#include <cstddef>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/annotations.h"
#include "nri/messages.h"
#include "tests/unit/nri/oracle.h"

namespace podqos::nri {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::PodSandbox pod(const core::Annotations& annotations = {}) {
  api::PodSandbox pod;
  pod.mutable_annotations()->insert(annotations.begin(), annotations.end());
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
  const auto facts = facts_of(pod({{"io.kubernetes.cri.sandbox-uid", "another"},
                                   {"io.kubernetes.pod.uid", "another"},
                                   {"io.container.manager", "cri-o"}}),
                              container());
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
  api::Container app = container();
  (*app.mutable_annotations())["podqos.io/limits"] = "cpu=3";
  const auto facts = facts_of(
      pod({{"podqos.io/requests", "cpu=1"}, {"podqos.io/limits", "cpu=2"}, {"unknown.io/x", "y"}}),
      app);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->annotations,
            (core::Annotations{{"podqos.io/limits", "cpu=3"}, {"podqos.io/requests", "cpu=1"}}));
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
  const core::Annotations large{{"podqos.io/pod", std::string(codec::kMaxAnnotationSize + 1, 'x')}};
  core::Annotations many;
  for (std::size_t i = 0; i <= codec::kMaxKnownAnnotations; ++i)
    many.emplace("podqos.io/requests." + std::to_string(i), "cpu=1");
  for (const auto& [annotations, message] :
       {std::pair{large, "container c1: annotation podqos.io/pod"},
        std::pair{many, "container c1: more than 256 annotations"}}) {
    const auto refused = facts_of(pod(annotations), container());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(refused.error().message, HasSubstr(message));
  }
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
  EXPECT_EQ(facts->resources, core::EngineResources{});
  ASSERT_TRUE(facts->engine);
  EXPECT_TRUE(facts->engine->is_sandbox);
  core::EngineResources want;
  want.cpu_shares = 256;
  want.cpu_quota = 50000;
  want.cpu_period = 100000;
  want.memory_limit = 1 << 30;
  EXPECT_EQ(facts->engine->pod_sums, want);
  want = {};
  want.cpu_shares = 20;
  want.memory_limit = 4096;
  EXPECT_EQ(facts->engine->pod_overhead, want);
}

}  // namespace
}  // namespace podqos::nri
