#include "common/core/resize.h"

#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::container;
using pod_text::list;

/// What an engine makes of 250m, a limit of 500m and 128Mi.
EngineResources usual() {
  EngineResources now;
  now.cpu_shares = 256;
  now.cpu_quota = 50'000;
  now.cpu_period = 100'000;
  now.memory_limit = 128 * kMi;
  return now;
}

Pod web_and_log() {
  return pod_text::pod({container("web", list({{"cpu", "250m"}, {"memory", "64Mi"}}),
                                  list({{"cpu", "500m"}, {"memory", "128Mi"}})),
                        container("log", list({{"cpu", "10m"}}))});
}

PodRecord plain_record_of(Pod pod) {
  PodRecord record;
  record.pod = std::move(pod);
  return record;
}

/// Of a pod of which the engine says nothing as a whole.
void resize(Pod& pod, const Resize& change) {
  PodRecord record = plain_record_of(std::move(pod));
  apply_resize(record, change);
  EXPECT_FALSE(record.sums);
  pod = std::move(record.pod);
}

Resize of_web(EngineResources now) {
  return {.whole_pod = false, .container = "web", .now = std::move(now)};
}

TEST(ApplyResize, KeepsWhatTheEngineWouldMakeTheSameOf) {
  Pod pod = web_and_log();
  resize(pod, of_web(usual()));
  EXPECT_EQ(pod, web_and_log());
  // 10 shares are those of 10m, and would be read as 9.77m.
  EngineResources log;
  log.cpu_shares = 10;
  resize(pod, {.whole_pod = false, .container = "log", .now = log});
  EXPECT_EQ(pod, web_and_log());
}

TEST(ApplyResize, FollowsOneContainer) {
  Pod pod = web_and_log();
  EngineResources now = usual();
  now.cpu_shares = 512;
  now.cpu_quota = 100'000;
  now.memory_limit = 256 * kMi;
  resize(pod, of_web(now));
  EXPECT_EQ(pod.containers[0].resources.requests, list({{"cpu", "500m"}, {"memory", "64Mi"}}));
  EXPECT_EQ(pod.containers[0].resources.limits, list({{"cpu", "1"}, {"memory", "256Mi"}}));
  EXPECT_EQ(pod.containers[1], web_and_log().containers[1]);
  EXPECT_FALSE(pod.resources);
}

TEST(ApplyResize, NoRequestExceedsItsLimit) {
  Pod pod = web_and_log();
  EngineResources now = usual();
  now.memory_limit = 32 * kMi;
  resize(pod, of_web(now));
  EXPECT_EQ(pod.containers[0].resources.requests, list({{"cpu", "250m"}, {"memory", "32Mi"}}));
}

TEST(ApplyResize, LimitsAndRequestsMayGo) {
  Pod pod = web_and_log();
  EngineResources now;
  now.cpu_shares = 2;
  now.cpu_quota = -1;
  now.memory_limit = -1;
  resize(pod, of_web(now));
  EXPECT_EQ(pod.containers[0].resources.requests, list({{"memory", "64Mi"}}));
  EXPECT_TRUE(pod.containers[0].resources.limits.empty());
}

TEST(ApplyResize, WhatTheEngineDoesNotSayStays) {
  Pod pod = web_and_log();
  resize(pod, of_web({}));
  EXPECT_EQ(pod, web_and_log());
}

TEST(ApplyResize, AContainerThatThePodLacksIsAdded) {
  Pod pod = web_and_log();
  resize(pod, {.whole_pod = false, .container = "new", .now = usual()});
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_EQ(pod.containers[2].name, "new");
  EXPECT_EQ(pod.containers[2].resources.requests, list({{"cpu", "250m"}}));
}

/// What an engine says of the pod as a whole is no spec.resources.
TEST(ApplyResize, ThePodItself) {
  PodRecord record = plain_record_of(web_and_log());
  apply_resize(record, {.whole_pod = true, .container = "", .now = usual()});
  ASSERT_TRUE(record.sums);
  EXPECT_EQ(record.sums->resources,
            (Resources{.requests = list({{"cpu", "250m"}}),
                       .limits = list({{"cpu", "500m"}, {"memory", "128Mi"}})}));
  EXPECT_EQ(record.pod, web_and_log());
  apply_resize(record, {.whole_pod = true, .container = "", .now = {}});
  EXPECT_EQ(record.sums->resources.limits, list({{"cpu", "500m"}, {"memory", "128Mi"}}));
}

TEST(ApplyResize, APodWithValuesOfItsOwn) {
  Pod pod = web_and_log();
  pod.resources = Resources{.requests = {}, .limits = list({{"cpu", "1"}})};
  resize(pod, {.whole_pod = true, .container = "", .now = usual()});
  EXPECT_EQ(pod.resources, (Resources{.requests = list({{"cpu", "250m"}}),
                                      .limits = list({{"cpu", "500m"}, {"memory", "128Mi"}})}));
}

TEST(ApplyResize, APodOfWhichNothingIsSaidGetsNoValues) {
  Pod pod = web_and_log();
  resize(pod, {.whole_pod = true, .container = "", .now = {}});
  EXPECT_EQ(pod, web_and_log());
}

TEST(ApplyResize, ThePodsOwnValuesAreRaisedToItsContainers) {
  Pod pod = web_and_log();
  pod.resources = Resources{.requests = list({{"cpu", "300m"}}),
                            .limits = list({{"cpu", "600m"}, {"memory", "512Mi"}})};
  EngineResources now = usual();
  now.cpu_shares = 512;
  now.cpu_quota = 100'000;
  resize(pod, of_web(now));
  EXPECT_EQ(pod.resources->requests, list({{"cpu", "510m"}}));
  EXPECT_EQ(pod.resources->limits, list({{"cpu", "1"}, {"memory", "512Mi"}}));
}

TEST(ApplyResize, TheEnginesSumsAreRaisedToTheContainers) {
  PodRecord record = plain_record_of(web_and_log());
  record.sums =
      core::EngineSums{.resources = {.requests = list({{"cpu", "300m"}}),
                                     .limits = list({{"cpu", "600m"}, {"memory", "512Mi"}})}};
  EngineResources now = usual();
  now.cpu_shares = 512;
  now.cpu_quota = 100'000;
  apply_resize(record, of_web(now));
  EXPECT_EQ(record.sums->resources,
            (Resources{.requests = list({{"cpu", "510m"}}),
                       .limits = list({{"cpu", "1"}, {"memory", "512Mi"}})}));
}

/// A kubelet's pod of 150m with limits of 260m: each of its containers, which have no values of
/// their own, gets the shares of the pod's limit.
TEST(ApplyResize, SumsThatArePodLevelResourcesStay) {
  PodRecord record = plain_record_of(
      pod_text::pod({container("web", list({{"cpu", "260m"}}), list({{"cpu", "260m"}})),
                     container("log", list({{"cpu", "260m"}}), list({{"cpu", "260m"}}))}));
  record.sums = core::EngineSums{.resources = {.requests = list({{"cpu", "150m"}}), .limits = {}}};
  EngineResources now;
  now.memory_limit = 128 * kMi;
  apply_resize(record, of_web(now));
  EXPECT_EQ(record.sums->resources.requests, list({{"cpu", "150m"}}));
}

}  // namespace
}  // namespace podqos::core
