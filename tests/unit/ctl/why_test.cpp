#include "ctl/view/why.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/sys/process.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/core/pod_text.h"
#include "tests/unit/ctl/stored.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using enum core::EventKind;

/// A node with the pod default/web, whose container app runs in /pod/app.
class Why : public ::testing::Test {
 protected:
  Why() {
    story_.configuration.settings.state_dir = directory_.path() + "/state";
    story_.configuration.settings.node_memory = Bytes{8LL << 30};
    core::PodRecord record;
    record.pod.uid = "u-1";
    record.pod.pod_namespace = "default";
    record.pod.name = "web";
    record.class_source = core::ClassSource::kShortForms;
    record.complete = true;
    record.cgroup = "/pod";
    core::ContainerRecord container;
    container.id = "app-id";
    container.name = "app";
    container.cgroup = "/pod/app";
    container.pid = Pid{::getpid()};
    record.containers.push_back(container);
    story_.records.pods = {record};
    tree_.make("/pod");
    tree_.cgroups.at("/pod").files["cpu.max"] = "50000 100000";
    tree_.cgroups.at("/pod").files["cpu.stat"] = "nr_periods 38\nnr_throttled 37\n";
    tree_.cgroups.at("/pod").files["memory.max"] = "209715200";
  }
  void add_event(core::EventKind kind, std::string text, std::string container = "app") {
    story_.events.push_back({.time = UnixMillis{1'769'871'845'000},
                             .kind = kind,
                             .program = "podqos-runtime",
                             .pod_namespace = "default",
                             .pod_name = "web",
                             .uid = "u-1",
                             .container = container,
                             .container_id = container.empty() ? "" : container + "-id",
                             .text = std::move(text)});
  }
  /// The sentences about it, in a line; the errors of why_json().
  [[nodiscard]] std::string why(std::string_view selector) {
    store_records(story_.configuration.settings, story_.records);
    const auto found = explain_why(story_, machine_, selector);
    if (!found) return found.error().message;
    json_ = found->json;
    state_ = json_.at("state");
    return why_text(*found, {});
  }

  TemporaryDirectory directory_;
  NodeStory story_;
  std::string state_;
  Json json_;
  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  cgroup::FakeMachine machine_{tree_, [](const std::string& /*change*/) { return Status{}; }};
};

TEST_F(Why, TellsClassValuesAndEventsOfAPod) {
  add_event(kPlaced, "BestEffort at /pod/app");
  const std::string text = why("web");
  EXPECT_EQ(state_, "managed");
  EXPECT_THAT(text, HasSubstr("Its class is BestEffort: no cpu or memory is requested or limited "
                              "by the containers (by podqos.io/requests, limits).\n"));
  EXPECT_THAT(text,
              HasSubstr("Its requests are none, so that it has the least share of the CPU.\n"));
  EXPECT_THAT(text, HasSubstr("Its CPU limit is 500m.\n"));
  EXPECT_THAT(text, HasSubstr("Its CPU limit made it wait in 37 of 38 periods.\n"));
  EXPECT_THAT(text, HasSubstr("Its memory limit is 200Mi; 0 are in use.\n"));
  EXPECT_THAT(text, HasSubstr("Warning: pod default/web: memory limit is 200Mi, the rule says "
                              "unlimited"));
  EXPECT_THAT(text, HasSubstr(": The wrapper podqos-runtime placed default/web/app before it was "
                              "created: BestEffort at /pod/app.\n"));
  EXPECT_EQ(
      dump(json_),
      R"({"pod":"default/web","container":null,"state":"managed","facts":[)"
      R"({"fact":"managed","pod":"default/web","running":0,"all":1},)"
      R"({"fact":"class","class":"BestEffort","reason":"no cpu or memory is requested or limited )"
      R"(by the containers","source":"podqos.io/requests, limits"},)"
      R"({"fact":"warning","text":"pod default/web: cpu.weight is 100, the rule says 1"},)"
      R"({"fact":"warning","text":"pod default/web: cpu quota is 50ms, the rule says unlimited"},)"
      R"({"fact":"warning","text":"pod default/web: memory limit is 200Mi, the rule says unlimited"},)"
      R"({"fact":"warning","text":"pod default/web: container app-id is recorded but not running: run )"
      R"(podqosctl reconcile"},)"
      R"({"fact":"event","event":"placed","time":"2026-01-31T15:04:05.000Z",)"
      R"("program":"podqos-runtime","placed":"placed","who":"default/web/app",)"
      R"("text":"BestEffort at /pod/app"}]})");
}

TEST_F(Why, TellsThatAKubeletManagesItsPod) {
  story_.records.pods.front().kubelets_own = true;
  add_event(kPlaced, "BestEffort at /pod/app");
  const std::string text = why("web");
  EXPECT_EQ(state_, "counted");
  EXPECT_THAT(text, HasSubstr("A kubelet manages pod default/web, podqos counts its requests: 0 of "
                              "1 containers run.\n"));
  EXPECT_THAT(text, HasSubstr(": The wrapper podqos-runtime counted default/web/app before"));
}

TEST_F(Why, TellsOfAPodThatHasEndedAndWhoseCgroupStays) {
  story_.records.pods.front().released_at = BootSeconds{1};
  EXPECT_THAT(why("web"), HasSubstr("Pod default/web has ended; memory is still charged to its "
                                    "cgroup, which stays.\n"));
  EXPECT_EQ(state_, "ended");
}

TEST_F(Why, LeavesOutTheSandbox) {
  core::ContainerRecord& app = story_.records.pods.front().containers.front();
  app.start_time = sys::start_time_of(app.pid).value().value();
  core::ContainerRecord sandbox = app;
  sandbox.id = sandbox.name = "pause";
  sandbox.sandbox = true;
  story_.records.pods.front().containers.push_back(sandbox);
  const std::string text = why("web");
  EXPECT_THAT(text, HasSubstr("Container app's"));
  EXPECT_THAT(text, Not(HasSubstr("pause")));
}

/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup.events
TEST_F(Why, TellsThatAContainerIsPaused) {
  core::ContainerRecord& app = story_.records.pods.front().containers.front();
  app.start_time = sys::start_time_of(app.pid).value().value();
  app.state = core::ContainerState::kLive;
  tree_.make("/pod/app");
  tree_.cgroups.at("/pod/app").files["cgroup.events"] = "populated 1\nfrozen 1\n";
  const std::string text = why("web");
  EXPECT_THAT(
      text, HasSubstr("podqos manages pod default/web: 1 of 1 containers run, 1 of them paused."));
  EXPECT_THAT(text, HasSubstr("Container app's CPU has no limit.\n"));
  EXPECT_THAT(text, HasSubstr("Container app's memory has no limit; "));
  EXPECT_THAT(text, Not(HasSubstr("Container app's processes")));
}

TEST_F(Why, WarnsOfRequestsThatDoNotCountSinceTheyCameLate) {
  story_.records.pods.front().pod.containers = {
      core::pod_text::container("app", core::pod_text::list({{"cpu", "50m"}}))};
  const std::string text = why("web");
  EXPECT_THAT(text, HasSubstr("Its requests are cpu 50m.\n"));
  EXPECT_THAT(text, HasSubstr("Warning: pod default/web: cpu 50m, memory 0 requested, of which cpu "
                              "0, memory 0 count: its first container requested nothing"));
}

TEST_F(Why, SaysThatAShortAnnotationIsAboutThePod) {
  core::PodRecord& record = story_.records.pods.front();
  record.pod.resources =
      core::Resources{.requests = core::pod_text::list({{"cpu", "1"}}), .limits = {}};
  record.qos_class = core::QosClass::kBurstable;
  EXPECT_THAT(why("web"), HasSubstr("Its class is Burstable: the pod has no cpu limit (by "
                                    "podqos.io/requests, limits).\n"));
}

/// podman pod create --cpus 0.5, and a container with a share of the CPU.
TEST_F(Why, NamesTheRequestThatCountsBesideTheLimitOfAPodOfPodman) {
  core::PodRecord& record = story_.records.pods.front();
  record.pod.containers = {core::pod_text::container(
      "app", core::pod_text::list({{"cpu", "250m"}, {"memory", "64Mi"}}))};
  record.sums = core::EngineSums{
      .resources = {.requests = {},
                    .limits = core::pod_text::list({{"cpu", "500m"}, {"memory", "64Mi"}})},
      .enforced = true};
  record.qos_class = core::QosClass::kBurstable;
  record.class_source = core::ClassSource::kInference;
  const std::string text = why("u-1");
  EXPECT_THAT(text, HasSubstr("Its class is Burstable: cpu request 250m differs from limit 500m of "
                              "the pod (by inference).\n"));
  EXPECT_THAT(text, HasSubstr("Its requests are cpu 250m, memory 64Mi.\n"));
}

/// A pod that is made again has another uid.
TEST_F(Why, IsAboutTheNewestPodOfAName) {
  add_event(kReleased, "the first");
  story_.events.back().uid = "u-0";
  add_event(kPlaced, "the second");
  add_event(kThrottled, "late news of the first");
  story_.events.back().uid = "u-0";
  EXPECT_THAT(why("default/web"), HasSubstr("the second"));
  EXPECT_EQ(state_, "managed");
  story_.records.pods.clear();
  EXPECT_THAT(why("web"), AllOf(HasSubstr("the second"), Not(HasSubstr("the first"))));
  EXPECT_THAT(why("u-0"), AllOf(HasSubstr("the first"), Not(HasSubstr("the second"))));
}

/// As explain does.
TEST_F(Why, TellsWhyAPodIsNotGuaranteedYet) {
  core::PodRecord& record = story_.records.pods.front();
  const core::ResourceList amounts = core::pod_text::list({{"cpu", "1"}, {"memory", "64Mi"}});
  record.pod = core::pod_text::pod({core::pod_text::container("app", amounts, amounts)});
  record.pod.uid = "u-1";
  record.qos_class = core::QosClass::kBurstable;
  record.class_source = core::ClassSource::kInference;
  record.complete = false;
  EXPECT_THAT(why("u-1"),
              HasSubstr("Its class is Burstable: more containers may come: Guaranteed needs "
                        "podqos.io/pod, podqos.io/limits of the pod or podqos.io/qos-class (by "
                        "inference).\n"));
  record.class_source = core::ClassSource::kQosAnnotation;
  EXPECT_THAT(why("u-1"),
              HasSubstr("Its class is Burstable: an annotation sets it (by podqos.io/qos-class)."));
}

TEST_F(Why, TellsOfAPodThatHasEnded) {
  add_event(kPlaced, "Burstable");
  add_event(kOomKilled, "OOM-killed by its own limit");
  add_event(kReleased, "released", "");
  story_.records.pods.clear();
  const std::string text = why("web/app");
  EXPECT_EQ(state_, "ended");
  EXPECT_THAT(text, HasSubstr(": default/web/app: OOM-killed by its own limit.\n"));
  EXPECT_THAT(text, HasSubstr("It has ended: podqos has no record of it any more.\n"));
  EXPECT_THAT(why("web"), HasSubstr(": default/web: released.\n"));
}

TEST_F(Why, TellsOfAContainerThatHasEndedInAPodThatLives) {
  add_event(kPlaced, "Burstable", "log");
  EXPECT_THAT(why("web/log"), HasSubstr("It has ended"));
  EXPECT_EQ(state_, "ended");
  EXPECT_THAT(why("web/app"), Not(HasSubstr("placed default/web/log")));
}

TEST_F(Why, TellsOfWhatMayNotHaveEnded) {
  add_event(kPlaced, "Burstable");
  add_event(kReleased, "released", "");
  add_event(kRefused, "no room");
  story_.records.pods.clear();
  EXPECT_TRUE(why("web/app").ends_with("refused and not started: no room.\n"));
  EXPECT_EQ(state_, "not started");
  for (const core::EventKind kind : {kFailed, kMisplaced}) {
    add_event(kind, "no lock");
    const std::string text = why("web");
    EXPECT_TRUE(text.ends_with("podqos has no record of it: it may run unmanaged.\n")) << text;
    EXPECT_THAT(text, Not(HasSubstr("ended")));
    EXPECT_EQ(state_, "unknown");
  }
}

TEST_F(Why, TellsWhyAContainerIsNotManaged) {
  story_.missed.containers = {{.container = {.container_id = "cafe0123456789"},
                               .pid = Pid{7},
                               .why = "podqos was \x1b[2Jnot asked",
                               .remedy = "ask it"}};
  EXPECT_EQ(why("cafe0123"),
            "podqos does not manage cafe0123456789: podqos was \\x1b[2Jnot asked.\n"
            "Remedy: ask it.\n");
  EXPECT_EQ(state_, "not managed");
}

/// Its failure was recorded before its pod was known.
TEST_F(Why, TellsOfAFailureWithoutPod) {
  story_.events.push_back({.kind = kFailed, .container_id = "app-id", .text = "no lock"});
  EXPECT_THAT(why("web"), HasSubstr("podqos failed for app-id: no lock.\n"));
}

TEST_F(Why, LeavesOutEventsInTheMiddle) {
  for (int each = 1; each <= 30; ++each)
    add_event(kCorrected, cat("value ", each));
  const std::string text = why("web");
  EXPECT_THAT(text, HasSubstr("value 1."));
  EXPECT_THAT(text, HasSubstr("Events left out here: 10, see podqosctl events.\n"));
  EXPECT_THAT(text, Not(HasSubstr("value 11.")));
  EXPECT_THAT(text, HasSubstr("value 12."));
}

/// A template in a hostile text stays what it is.
TEST_F(Why, FoldsHostileTextAt80Columns) {
  add_event(kFailed, cat("{who} {of} \r\n", std::string(30, 'x'), " ", std::string(240, 'y')));
  store_records(story_.configuration.settings, story_.records);
  const auto found = explain_why(story_, machine_, "web");
  ASSERT_TRUE(found);
  std::string text = why_text(*found, {.width = 80});
  EXPECT_THAT(text, HasSubstr("{who} {of}\n  \\x0d\\x0axxx"));
  for (std::string_view rest = text; !rest.empty();)
    EXPECT_LE(read_until(rest, '\n').size(), 80) << text;
}

TEST_F(Why, NamesWhatIsNotThere) {
  EXPECT_THAT(why("nope"), HasSubstr("pod or container \"nope\" not found"));
}

}  // namespace
}  // namespace podqos::ctl
