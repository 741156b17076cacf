#include "ctl/node/selector.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

using core::Engine;

// Ids as Podman, Docker and containerd make them.
constexpr const char* kInfra = "e9dadd57741d8c05c26091a1b38d8ebd1db6a5eca4734afbd37d0679360e958a";
constexpr const char* kFront = "f3110197750d25c79753d04705ac9e53d5209fd276b025befb31acc1004a1401";
constexpr const char* kLone = "727e8107f56a2cb8b99c7f10b03b69bff38f65d9dd8b1e0c7a3c6a4d5e0f1a2b";
constexpr const char* kNginx = "e9daffe7f01c4a3f9f3ba2d5f7c1b6a09e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b";

core::ContainerRecord container(const char* id, const char* name) {
  core::ContainerRecord record;
  record.id = id;
  record.name = name;
  return record;
}

core::PodRecord pod(Engine engine, const char* pod_namespace, const char* name, const char* uid) {
  core::PodRecord record;
  record.engine = engine;
  record.pod.pod_namespace = pod_namespace;
  record.pod.name = name;
  record.pod.uid = uid;
  return record;
}

/// A node with three engines. Names and uids occur that other pods have too.
std::vector<core::PodRecord> node() {
  core::PodRecord infra = pod(Engine::kPodman, "", "p1", kInfra);
  infra.sandbox_id = kInfra;
  infra.containers = {container(kInfra, "infra"), container(kFront, "front")};
  infra.containers.front().sandbox = true;
  core::PodRecord docker = pod(Engine::kDocker, "", "", "");
  docker.pod.uid = cat(kLone, "-eebefbcdca1ef2bf");
  docker.containers = {container(kLone, kLone)};
  core::PodRecord web = pod(Engine::kContainerd, "default", "web", "f1a2b3c4-0000-4000-8000-1");
  web.sandbox_id = "aaaa57741d";
  web.containers = {container(kNginx, "nginx"), container("aaaab8107f", "log")};
  core::PodRecord twin = pod(Engine::kPodman, "shop", "web", "web-1");
  twin.containers = {container("cafe8107f5", "nginx"), container("run-1", "")};
  return {infra, docker, web, twin};
}

struct SelectCase {
  const char* argument;
  const char* uid;
  const char* container = "";
};

TEST(Select, FindsWhatNamesAndIdsName) {
  const std::string lone = cat(kLone, "-eebefbcdca1ef2bf");
  const std::vector<SelectCase> cases = {
      {"default/web", "f1a2b3c4-0000-4000-8000-1"},
      {"shop/web", "web-1"},
      {"containerd:web", "f1a2b3c4-0000-4000-8000-1"},
      {"podman:shop/web/nginx", "web-1", "cafe8107f5"},
      {"default/web/nginx", "f1a2b3c4-0000-4000-8000-1", kNginx},
      {"default/web/e9da", "f1a2b3c4-0000-4000-8000-1", kNginx},
      {"p1", kInfra},
      {"p1/front", kInfra, kFront},
      {"e9dadd57741d", kInfra},  // of the infra container, as podman ps shows it
      {"e9dadd57741d/front", kInfra, kFront},
      {kInfra, kInfra},
      {"f3110197750d", kInfra, kFront},
      {"727e", lone.c_str()},  // a container that is a pod
      {"web-1", "web-1"},
      {"web-1/nginx", "web-1", "cafe8107f5"},
      {"run-1", "web-1", "run-1"},  // an id that is not of an engine's making
      {"web-1/run-1", "web-1", "run-1"},
      {"log", "f1a2b3c4-0000-4000-8000-1", "aaaab8107f"},
      {"aaaa5", "f1a2b3c4-0000-4000-8000-1"},
      {"aaaa", "f1a2b3c4-0000-4000-8000-1"},  // pods before containers
      {"f1a2b3c4", "f1a2b3c4-0000-4000-8000-1"},
      {"f1a2b3c4-00", "f1a2b3c4-0000-4000-8000-1"},
  };
  const auto pods = node();
  for (const SelectCase& each : cases) {
    const auto found = select(pods, each.argument);
    ASSERT_TRUE(found) << each.argument << ": " << found.error().message;
    EXPECT_EQ(found->pod->pod.uid, each.uid) << each.argument;
    EXPECT_EQ(found->container == nullptr ? "" : found->container->id, each.container)
        << each.argument;
  }
}

struct RefusedCase {
  const char* argument;
  const char* message;
};

/// A pod's author names it and its containers.
TEST(Select, TakesAWholeIdBeforeANameOfOthers) {
  std::vector<core::PodRecord> pods = node();
  pods.push_back(pod(Engine::kContainerd, "evil", kFront, "u-1"));
  pods.back().containers = {container("beef8107f5", "web-1"), container("beef8107f6", kLone)};
  EXPECT_EQ(select(pods, kFront)->container, &pods[0].containers[1]);
  EXPECT_EQ(select(pods, "web-1")->pod, &pods[3]);
  EXPECT_EQ(select(pods, kLone)->container, &pods[1].containers[0]);
  EXPECT_EQ(select(pods, "web-1/nginx")->container, &pods[3].containers[0]);
}

TEST(Select, SaysWhatThereIsInstead) {
  const std::vector<RefusedCase> cases = {
      {"web",
       "\"web\" is the name of several: containerd:default/web, podman:shop/web: name one of them "
       "in full, or by its id"},
      {"nginx",
       "\"nginx\" is the name of several: containerd:default/web/nginx, podman:shop/web/nginx: "
       "name one of them in full, or by its id"},
      {"default/wbe", "pod or container \"default/wbe\" not found; did you mean default/web?"},
      {"fornt", "pod or container \"fornt\" not found; did you mean front?"},
      {"docker:web", "pod or container \"docker:web\" not found; podqos has docker:727e8107f56a"},
      {"727", "pod or container \"727\" not found; did you mean 727e8107f56a?"},
      {"\x1b[2J:web",
       R"(unknown engine "\x1b[2J"; expected one of podman, docker, containerd, cri-o)"},
      {"podman:p1/fornt", "pod or container \"podman:p1/fornt\" not found; did you mean p1/front?"},
      {"cri-o:web", "pod or container \"cri-o:web\" not found; podqos has no pods of cri-o"},
      {"crio:web", "unknown engine \"crio\"; did you mean cri-o?"},
      {"zz\x1b[2J",
       R"(pod or container "zz\x1b[2J" not found; podqos has podman:p1, docker:727e8107f56a, )"
       "containerd:default/web, podman:shop/web"},
      {"",
       "pod or container \"\" not found; podqos has podman:p1, docker:727e8107f56a, "
       "containerd:default/web, podman:shop/web"},
      {"//",
       "pod or container \"//\" not found; podqos has podman:p1, docker:727e8107f56a, "
       "containerd:default/web, podman:shop/web"},
  };
  const auto pods = node();
  for (const RefusedCase& each : cases) {
    const auto found = select(pods, each.argument);
    ASSERT_FALSE(found) << each.argument;
    EXPECT_EQ(found.error().message, each.message) << each.argument;
  }
  EXPECT_EQ(select(std::vector{pods[2]}, "zz").error().message,
            "pod or container \"zz\" not found; podqos has containerd:default/web");
  EXPECT_EQ(select({}, "web").error().message,
            "pod or container \"web\" not found; podqos has no pods");
}

TEST(Select, TellsPodsOfTheSameNameApart) {
  std::vector<core::PodRecord> pods;
  for (const char* uid : {"u-1", "u-2"})
    pods.push_back(pod(Engine::kPodman, "", "web", uid));
  EXPECT_EQ(select(pods, "web").error().message,
            "\"web\" is the name of several: podman:web (u-1), podman:web (u-2): name one of them "
            "in full, or by its id");
  EXPECT_EQ(select(pods, "u-2")->pod, &pods[1]);
  for (int i = 3; i <= 12; ++i)
    pods.push_back(pod(Engine::kPodman, "", "web", cat("u-", i).c_str()));
  EXPECT_TRUE(select(pods, "web").error().message.contains("podman:web (u-8) and 4 more: name"));
}

}  // namespace
}  // namespace podqos::ctl
