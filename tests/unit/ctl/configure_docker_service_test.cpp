#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/configure/docker_service.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

/// A dockerd under systemd, as moby's daemon/reload_unix.go has it: a reload takes "runtimes" from
/// the file, and keeps the old ones where the file has none.
struct FakeDocker {
  bool active = true;
  bool answers = true;  ///< there is a client
  bool live_restore = false;
  bool in_file = false;  ///< the file registers podqos
  bool known = false;    ///< the daemon knows podqos
  int running = 0;
  std::vector<std::string> verbs = {};

  Result<ProgramEnd> run(const std::vector<std::string>& argv) {
    if (argv[0] != "/usr/bin/systemctl") {
      return ProgramEnd{.status = 0,
                        .output = std::string{live_restore ? "true" : "false"} + " " +
                                  std::to_string(running) + " 0 io.containerd.runc.v2" +
                                  (known ? " podqos" : "") + " runc"};
    }
    if (argv[1] == "is-active") return ProgramEnd{.status = active ? 0 : 3, .output = ""};
    verbs.push_back(argv[1]);
    if (argv[1] == "reload") known = known || in_file;
    if (argv[1] == "restart") {
      known = in_file;
      if (active && !live_restore) running = 0;
      active = true;
    }
    return ProgramEnd{.status = 0, .output = ""};
  }

  DockerService service() {
    return DockerService{[this](const auto& argv) { return run(argv); },
                         answers ? std::optional<std::string>{"/usr/bin/docker"} : std::nullopt,
                         milliseconds{0}};
  }
};

DockerOutcome update(FakeDocker& docker, bool registered, bool changed, Restart restart) {
  docker.in_file = registered;
  const auto outcome = docker.service().update(registered, changed, restart);
  EXPECT_TRUE(outcome);
  return outcome.value_or(DockerOutcome{});
}

TEST(DockerService, RegistersByAReload) {
  FakeDocker docker{.running = 3};
  EXPECT_EQ(update(docker, true, true, Restart::kHarmless),
            (DockerOutcome{.reloaded = true, .containers = 3}));
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
  EXPECT_TRUE(docker.known);
}

TEST(DockerService, DoesNothingWhereTheDaemonHasIt) {
  FakeDocker registered{.known = true, .running = 3};
  static_cast<void>(update(registered, true, false, Restart::kHarmless));
  EXPECT_THAT(registered.verbs, IsEmpty());
  FakeDocker never{.running = 3};
  static_cast<void>(update(never, false, false, Restart::kForce));
  EXPECT_THAT(never.verbs, IsEmpty());
}

TEST(DockerService, StopsNoContainersUnlessForced) {
  FakeDocker docker{.known = true, .running = 3};
  EXPECT_EQ(update(docker, false, true, Restart::kHarmless),
            (DockerOutcome{.reloaded = true, .stale = true, .containers = 3}));
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
  EXPECT_EQ(docker.running, 3);
  EXPECT_EQ(update(docker, false, false, Restart::kForce),
            (DockerOutcome{.restarted = true, .containers = 3}));
  EXPECT_FALSE(docker.known);
}

TEST(DockerService, RestartsWhereNoContainerStops) {
  FakeDocker idle{.known = true};
  EXPECT_TRUE(update(idle, false, true, Restart::kHarmless).restarted);
  FakeDocker surviving{.live_restore = true, .known = true, .running = 3};
  EXPECT_TRUE(update(surviving, false, true, Restart::kHarmless).restarted);
  EXPECT_EQ(surviving.running, 3);
}

TEST(DockerService, TellsThatTheDaemonHasNotReadTheFile) {
  FakeDocker docker{.running = 3};
  EXPECT_TRUE(update(docker, true, false, Restart::kNo).stale);
  EXPECT_THAT(docker.verbs, IsEmpty());
  EXPECT_TRUE(update(docker, true, false, Restart::kHarmless).reloaded);
}

TEST(DockerService, WithoutAClientNeverRestartsForARemoval) {
  FakeDocker docker{.answers = false, .known = true, .running = 3};
  EXPECT_TRUE(update(docker, false, true, Restart::kHarmless).stale);
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
}

TEST(DockerService, StartsAStoppedOneOnlyToRegister) {
  FakeDocker docker{.active = false};
  EXPECT_TRUE(update(docker, true, true, Restart::kHarmless).restarted);
  FakeDocker other{.active = false, .known = true};
  EXPECT_FALSE(update(other, false, true, Restart::kHarmless).restarted);
  EXPECT_THAT(other.verbs, IsEmpty());
}

}  // namespace
}  // namespace podqos::ctl
