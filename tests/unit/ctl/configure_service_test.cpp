#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/configure/service.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What systemctl(1) prints of containerd.service and podqos-nri.service.
struct FakeSystemd {
  int process = 0;
  std::string plugin_status = {};
  bool installed = true;

  Result<ProgramEnd> run(const std::vector<std::string>& argv) const {
    if (!installed) return fail(ErrorCode::kNotFound, "no systemctl");
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=MainPID",
                                         "--value", "containerd.service"})
      return ProgramEnd{.status = 0, .output = std::to_string(process)};
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=StatusText",
                                         "--value", "podqos-nri.service"})
      return ProgramEnd{.status = 0, .output = plugin_status};
    ADD_FAILURE() << argv.at(1);
    return ProgramEnd{.status = 1, .output = ""};
  }

  [[nodiscard]] EngineService service() const {
    return EngineService{[this](const auto& argv) { return run(argv); }, "containerd.service",
                         milliseconds{0}};
  }
};

TEST(EngineService, HasThePluginThatServesItsPresentProcess) {
  const std::string status = "synchronized with the runtime at /var/run/nri/nri.sock (process 12)";
  EXPECT_TRUE((FakeSystemd{.process = 12, .plugin_status = status}.service().has_plugin()));
  // The status is the one from before a restart.
  for (const int process : {0, 2, 112, 13})
    EXPECT_FALSE((FakeSystemd{.process = process, .plugin_status = status}.service().has_plugin()))
        << process;
  for (const char* other : {"", "waiting for a runtime at /var/run/nri/nri.sock",
                            "connected to the runtime at /var/run/nri/nri.sock (process 12)"})
    EXPECT_FALSE((FakeSystemd{.process = 12, .plugin_status = other}.service().has_plugin()))
        << other;
}

TEST(EngineService, SaysWhatThePluginSaysIfItDoesNotConnect) {
  const FakeSystemd systemd{.process = 12, .plugin_status = "another podqos-nri has taken over"};
  const Status waited = systemd.service().wait_for_plugin();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(waited.error().message,
              AllOf(HasSubstr("podqos-nri.service has not connected to containerd.service"),
                    HasSubstr("another podqos-nri has taken over"),
                    HasSubstr("journalctl -u podqos-nri.service")));
}

TEST(EngineService, IsOlderThanWhatChangedSinceItsStart) {
  using std::chrono::hours;
  using std::chrono::system_clock;
  // This process has run for no hour, and not since a moment ago.
  const auto service = FakeSystemd{.process = ::getpid()};
  const auto now = system_clock::now();
  EXPECT_TRUE(service.service().is_older_than(now));
  EXPECT_FALSE(service.service().is_older_than(now - hours{1}));
  // The clock was set back: nothing can be said.
  EXPECT_FALSE(service.service().is_older_than(now + hours{1}));
  EXPECT_FALSE(FakeSystemd{}.service().is_older_than(now));
}

TEST(EngineService, HasNoProcessWithoutSystemd) {
  EXPECT_EQ((FakeSystemd{.process = 12}.service().process()), Pid{12});
  EXPECT_EQ((FakeSystemd{.process = 12, .installed = false}.service().process()), std::nullopt);
  EXPECT_EQ((FakeSystemd{}.service().process()), std::nullopt);
}

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

ServiceOutcome update(FakeDocker& docker, bool registered, bool changed, Restart restart) {
  docker.in_file = registered;
  const auto outcome = docker.service().update(registered, changed, restart);
  EXPECT_TRUE(outcome);
  return outcome.value_or(ServiceOutcome{});
}

TEST(DockerService, RegistersByAReload) {
  FakeDocker docker{.running = 3};
  EXPECT_EQ(update(docker, true, true, Restart::kHarmless),
            (ServiceOutcome{.reloaded = true, .containers = 3}));
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
            (ServiceOutcome{.reloaded = true, .stale = true, .containers = 3}));
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
  EXPECT_EQ(docker.running, 3);
  EXPECT_EQ(update(docker, false, false, Restart::kForce),
            (ServiceOutcome{.restarted = true, .containers = 3}));
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
