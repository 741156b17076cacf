#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/configure/setup.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kConnected =
    "synchronized with the runtime at /var/run/nri/nri.sock (process 12)";

/// What systemctl(1) prints of containerd.service and podqos-nri.service, which is enabled and
/// runs.
struct FakeSystemd {
  int process = 0;
  std::string plugin_status = {};
  bool installed = true;
  std::vector<std::string> verbs = {};

  Result<ProgramEnd> run(const std::vector<std::string>& argv) {
    if (!installed) return fail(ErrorCode::kNotFound, "no systemctl");
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=MainPID",
                                         "--value", "containerd.service"})
      return ProgramEnd{.status = 0, .output = std::to_string(process)};
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=StatusText",
                                         "--value", "podqos-nri.service"})
      return ProgramEnd{.status = 0, .output = plugin_status};
    if (!argv[1].starts_with("is-")) verbs.push_back(argv[1]);
    return ProgramEnd{.status = 0, .output = ""};
  }

  /// Activates a registration with containerd whose files are as they should be.
  Setup activate(Method method, Restart restart, std::vector<std::string> files = {}) {
    Setup setup{.engine = &engines()[0],
                .method = method,
                .restart = restart,
                .registered_in = std::move(files)};
    const Status done =
        ctl::activate(setup, [this](const auto& argv) { return run(argv); }, milliseconds{0});
    EXPECT_TRUE(done) << done.error().message;
    return setup;
  }
};

TEST(ActivateContainerd, IsConnectedWhenThePluginServesItsPresentProcess) {
  const auto connect = [](FakeSystemd systemd) {
    const auto outcome = systemd.activate(Method::kNri, Restart::kHarmless);
    EXPECT_THAT(systemd.verbs, IsEmpty());
    EXPECT_NE(outcome.plugin_connected, outcome.failure.has_value());
    return outcome.plugin_connected;
  };
  EXPECT_TRUE(connect({.process = 12, .plugin_status = kConnected}));
  // The status is the one from before a restart.
  for (const int process : {2, 112, 13})
    EXPECT_FALSE(connect({.process = process, .plugin_status = kConnected})) << process;
  for (const char* other : {"", "waiting for a runtime at /var/run/nri/nri.sock",
                            "connected to the runtime at /var/run/nri/nri.sock (process 12)"})
    EXPECT_FALSE(connect({.process = 12, .plugin_status = other})) << other;
}

TEST(ActivateContainerd, DoesNotWaitForAnEngineThatDoesNotRun) {
  const auto stopped =
      FakeSystemd{.plugin_status = kConnected}.activate(Method::kNri, Restart::kHarmless);
  EXPECT_FALSE(stopped.plugin_connected);
  EXPECT_FALSE(stopped.failure);
}

TEST(ActivateContainerd, SaysWhatThePluginSaysIfItDoesNotConnect) {
  FakeSystemd systemd{.process = 12, .plugin_status = "another podqos-nri has taken over"};
  const auto failure = systemd.activate(Method::kNri, Restart::kHarmless).failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kTimeout);
  EXPECT_THAT(failure->message,
              AllOf(HasSubstr("podqos-nri.service has not connected to containerd.service"),
                    HasSubstr("another podqos-nri has taken over"),
                    HasSubstr("journalctl -u podqos-nri.service")));
}

TEST(ActivateContainerd, DoesNotWaitForAPluginThatStandsBy) {
  FakeSystemd systemd{
      .process = 12,
      .plugin_status = "another podqos-nri serves it; standing by until that one ends"};
  const auto failure = systemd.activate(Method::kNri, Restart::kHarmless).failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kConflict);
  EXPECT_EQ(failure->message,
            "podqos-nri.service does not serve containerd.service: another podqos-nri serves it; "
            "standing by until that one ends: stop that one, or disable podqos-nri.service");
}

TEST(ActivateContainerd, IsStaleIfAFileChangedSinceItsStart) {
  const TemporaryDirectory directory;
  directory.write("new", "");
  const auto is_stale = [](FakeSystemd systemd, const std::string& file,
                           Method method = Method::kWrapper) {
    return systemd.activate(method, Restart::kNo, {file}).stale;
  };
  const std::string file = directory.path("new");
  // This process has run since before the file was written, and not since the machine's start.
  EXPECT_TRUE(is_stale({.process = ::getpid()}, file));
  EXPECT_FALSE(is_stale({.process = ::getpid()}, "/proc/1"));
  EXPECT_FALSE(is_stale({.process = ::getpid()}, "/none"));
  EXPECT_FALSE(is_stale({}, file));
  EXPECT_FALSE(is_stale({.process = ::getpid(), .installed = false}, file));
  // A plugin that is connected shows that NRI is on.
  const std::string connected = "synchronized with it (process " + std::to_string(::getpid()) + ")";
  EXPECT_FALSE(is_stale({.process = ::getpid(), .plugin_status = connected}, file, Method::kNri));
  FakeSystemd systemd{.process = ::getpid()};
  const auto restarted = systemd.activate(Method::kWrapper, Restart::kHarmless, {file});
  EXPECT_TRUE(restarted.restarted && !restarted.stale);
  EXPECT_THAT(systemd.verbs, ElementsAre("restart"));
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
      if (!answers) return fail(ErrorCode::kNotFound, "no client");
      const int stops = live_restore ? 0 : running;
      return ProgramEnd{.status = 0,
                        .output = std::to_string(stops) + " 0 io.containerd.runc.v2" +
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

  /// Activates a registration or its removal.
  Setup activate(bool registered, bool changed, Restart restart) {
    in_file = registered;
    Setup setup{.engine = &engines()[3], .undo = !registered, .restart = restart};
    if (changed) setup.changes.resize(1);
    EXPECT_TRUE(
        ctl::activate(setup, [this](const auto& argv) { return run(argv); }, milliseconds{0}));
    return setup;
  }
};

TEST(ActivateDocker, RegistersByAReload) {
  FakeDocker docker{.running = 3};
  const auto outcome = docker.activate(true, true, Restart::kHarmless);
  EXPECT_TRUE(outcome.reloaded);
  EXPECT_FALSE(outcome.stale);
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
  EXPECT_TRUE(docker.known);
}

TEST(ActivateDocker, DoesNothingWhereTheDaemonHasIt) {
  FakeDocker registered{.known = true, .running = 3};
  static_cast<void>(registered.activate(true, false, Restart::kHarmless));
  EXPECT_THAT(registered.verbs, IsEmpty());
  FakeDocker never{.running = 3};
  static_cast<void>(never.activate(false, false, Restart::kForce));
  EXPECT_THAT(never.verbs, IsEmpty());
}

TEST(ActivateDocker, StopsNoContainersUnlessForced) {
  FakeDocker docker{.known = true, .running = 3};
  const auto reloaded = docker.activate(false, true, Restart::kHarmless);
  EXPECT_TRUE(reloaded.reloaded && reloaded.stale && !reloaded.restarted);
  EXPECT_EQ(reloaded.containers, 3);
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
  EXPECT_EQ(docker.running, 3);
  const auto forced = docker.activate(false, false, Restart::kForce);
  EXPECT_TRUE(forced.restarted && !forced.stale && !forced.reloaded);
  EXPECT_EQ(forced.containers, 3);
  EXPECT_FALSE(docker.known);
}

TEST(ActivateDocker, RestartsWhereNoContainerStops) {
  FakeDocker idle{.known = true};
  EXPECT_TRUE(idle.activate(false, true, Restart::kHarmless).restarted);
  FakeDocker surviving{.live_restore = true, .known = true, .running = 3};
  EXPECT_TRUE(surviving.activate(false, true, Restart::kHarmless).restarted);
  EXPECT_EQ(surviving.running, 3);
}

TEST(ActivateDocker, TellsThatTheDaemonHasNotReadTheFile) {
  FakeDocker docker{.running = 3};
  EXPECT_TRUE(docker.activate(true, false, Restart::kNo).stale);
  EXPECT_THAT(docker.verbs, IsEmpty());
  EXPECT_TRUE(docker.activate(true, false, Restart::kHarmless).reloaded);
}

TEST(ActivateDocker, WithoutAClientNeverRestartsForARemoval) {
  FakeDocker docker{.answers = false, .known = true, .running = 3};
  EXPECT_TRUE(docker.activate(false, true, Restart::kHarmless).stale);
  EXPECT_THAT(docker.verbs, ElementsAre("reload"));
}

TEST(ActivateDocker, StartsAStoppedOneOnlyToRegister) {
  FakeDocker docker{.active = false};
  EXPECT_TRUE(docker.activate(true, true, Restart::kHarmless).restarted);
  FakeDocker other{.active = false, .known = true};
  EXPECT_FALSE(other.activate(false, true, Restart::kHarmless).restarted);
  EXPECT_THAT(other.verbs, IsEmpty());
}

}  // namespace
}  // namespace podqos::ctl
