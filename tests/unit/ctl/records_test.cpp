#include "ctl/node/records.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/events/event.h"
#include "common/core/pods/pod_name.h"
#include "ctl/node/event_pods.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

constexpr const char* kId = "62af1815dbae4ffb3e1d60a3fb5d0b2a6b7e7c5a3f1d2e4c6b8a0d9e8f7c6b5a";

/// A pod of the engine with one container, of whose name podqos has heard nothing.
class AddEngineNames : public ::testing::Test {
 protected:
  static core::PodRecord pod_of(core::Engine engine) {
    core::PodRecord pod;
    pod.engine = engine;
    pod.pod.uid = kId;
    core::ContainerRecord container;
    container.id = container.name = kId;
    container.pid = Pid{71};
    container.start_time = StartTime{500};
    pod.containers = {container};
    core::Container described;
    described.name = kId;
    pod.pod.containers = {described};
    return pod;
  }
  void write(const std::string& folder, const char* file, std::string_view text) const {
    std::filesystem::create_directories(directory_.path(folder));
    directory_.write(folder + "/" + file, text);
  }

  [[nodiscard]] core::PodRecord named(core::PodRecord pod) const {
    NodeRecords records{.node = {}, .pods = {std::move(pod)}, .warnings = {}};
    find_engine_names(records, directory_.path());
    return records.pods.front();
  }

  TemporaryDirectory directory_;
};

/// As Podman 5.4 starts conmon, shortened.
TEST_F(AddEngineNames, GivesThoseOfPodman) {
  write("proc/71", "stat", "71 (nginx) S 70 71 71 0 -1 4194560 9 0 0 0 0 0 0 0 20 0 1 0 500 0 0");
  using namespace std::string_literals;
  write("proc/70", "cmdline",
        "/usr/bin/conmon\0--api-version\0001\0-c\000"s + kId +
            "\0-n\0web\0--exit-dir\0/run/libpod/exits\0"s);
  const core::PodRecord pod = named(pod_of(core::Engine::kPodman));
  EXPECT_EQ(pod.containers.front().name, "web");
  EXPECT_EQ(pod.pod.containers.front().name, "web") << "its resources are found by it";
  EXPECT_EQ(core::display_name(pod), "web");
}

/// So that `events` has the name for a pod that `status` has.
TEST_F(AddEngineNames, GivesThemToEventsOfLivingPods) {
  core::PodRecord pod = pod_of(core::Engine::kPodman);
  pod.pod.name = pod.containers.front().name = "web";
  pod.pod.pod_namespace = "default";
  const NodeRecords records{.node = {}, .pods = {pod}, .warnings = {}, .names = {{kId, "web"}}};
  std::vector<core::Event> events(3);
  events[0].uid = events[0].container_id = events[0].container = kId;
  events[1].uid = kId;
  events[2].uid = "gone";
  name_events(events, records);
  EXPECT_EQ(name_of(events[0]), "default/web/web");
  EXPECT_EQ(name_of(events[1]), "default/web");
  EXPECT_EQ(name_of(events[2]), "gone");
}

/// Any user may start a process that gets the pid of a container's init, and has a parent of its
/// own.
TEST_F(AddEngineNames, BelieveNoOtherProcess) {
  using namespace std::string_literals;
  const auto name_by = [&](const char* stat, const std::string& parent) {
    write("proc/71", "stat", stat);
    write("proc/70", "cmdline", parent);
    return named(pod_of(core::Engine::kPodman)).containers.front().name;
  };
  constexpr const char* kInit =
      "71 (nginx) S 70 71 71 0 -1 4194560 9 0 0 0 0 0 0 0 20 0 1 0 500 0 0";
  constexpr const char* kLater =
      "71 (nginx) S 70 71 71 0 -1 4194560 9 0 0 0 0 0 0 0 20 0 1 0 501 0 0";
  EXPECT_EQ(name_by(kInit, "/usr/bin/conmon\0-n\0web\0"s), "web");
  EXPECT_EQ(name_by(kLater, "/usr/bin/conmon\0-n\0web\0"s), kId);
  EXPECT_EQ(name_by(kInit, "/usr/bin/watch\0-n\0002\0"s), kId);
  EXPECT_EQ(name_by(kInit, "/usr/bin/conmon\0-n\0w\x9b[2J\0"s), kId);
  EXPECT_EQ(name_by(kInit, "/usr/bin/conmon\0-n\0"s), kId);
}

/// As Docker 28 writes it, shortened.
TEST_F(AddEngineNames, GivesThoseOfDocker) {
  write(std::string{"var/lib/docker/containers/"} + kId, "config.v2.json",
        R"({"State":{"Running":true},"Image":"sha256:1","Name":"/web","Driver":"overlay2"})");
  core::PodRecord pod = pod_of(core::Engine::kDocker);
  pod.pod.uid += "-eebefbcdca1ef2bf";
  EXPECT_EQ(named(pod).containers.front().name, "web");
  EXPECT_EQ(core::display_name(named(pod)), "web");
}

TEST_F(AddEngineNames, LeavesNamesThatAreKnown) {
  write(std::string{"var/lib/docker/containers/"} + kId, "config.v2.json", R"({"Name":"/web"})");
  core::PodRecord pod = pod_of(core::Engine::kDocker);
  pod.pod.name = "shop";
  pod.containers.front().name = "app";
  EXPECT_EQ(named(pod), pod);
  EXPECT_EQ(named(pod_of(core::Engine::kPodman)), pod_of(core::Engine::kPodman));
}

}  // namespace
}  // namespace podqos::ctl
