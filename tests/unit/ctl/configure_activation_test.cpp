#include <unistd.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/configure/setup.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
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
  milliseconds patience{0};
  int questions = 0;  ///< for the plugin's status

  Result<std::string> run(const std::vector<std::string>& argv) {
    if (!installed) return fail(ErrorCode::kNotFound, "no systemctl");
    if (argv[1] != "show") {
      verbs.push_back(argv[1]);
      return "";
    }
    if (argv.back() == "containerd.service")
      return cat("Id=containerd.service\nMainPID=", process, "\nActiveState=active");
    ++questions;
    return cat("Id=podqos-nri.service\nActiveState=active\nUnitFileState=enabled\nStatusText=",
               plugin_status);
  }

  /// Activates a registration with containerd whose files are as they should be.
  Setup activate(Method method, Restart restart, std::vector<std::string> files = {}) {
    Setup setup{.engine = &engines()[0],
                .method = method,
                .restart = restart,
                .registered_in = std::move(files)};
    const Status done =
        ctl::activate(setup, [this](const auto& argv) { return run(argv); }, patience);
    EXPECT_TRUE(done) << done.error().message;
    return setup;
  }
};

TEST(ActivateContainerd, IsConnectedWhenThePluginServesItsPresentProcess) {
  const auto connect = [](FakeSystemd systemd) {
    const auto outcome = systemd.activate(Method::kNri, Restart::kHarmless);
    EXPECT_THAT(systemd.verbs, IsEmpty());
    EXPECT_NE(outcome.events.contains("pluginConnected"), outcome.failure.has_value());
    return outcome.events.contains("pluginConnected");
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
  EXPECT_FALSE(stopped.events.contains("pluginConnected"));
  EXPECT_FALSE(stopped.failure);
}

TEST(ActivateContainerd, AsksAServiceTenTimesASecond) {
  FakeSystemd systemd{.process = 12, .patience = milliseconds{250}};
  EXPECT_TRUE(systemd.activate(Method::kNri, Restart::kHarmless).failure);
  EXPECT_GE(systemd.questions, 2);
  EXPECT_LE(systemd.questions, 5);
}

TEST(ActivateContainerd, SaysWhatThePluginSaysIfItDoesNotConnect) {
  for (const auto& [status, code, says] :
       {std::tuple{"another podqos-nri has taken over", ErrorCode::kTimeout,
                   "podqos-nri.service has not connected to containerd.service within 0 s; its "
                   "status: \"another podqos-nri has taken over\"; until it has, pods are not "
                   "placed: see journalctl -u podqos-nri.service"},
        {"another podqos-nri serves it; standing by until that one ends", ErrorCode::kConflict,
         "podqos-nri.service does not serve containerd.service: another podqos-nri serves it; "
         "standing by until that one ends: stop that one, or disable podqos-nri.service"}}) {
    FakeSystemd systemd{.process = 12, .plugin_status = status};
    EXPECT_EQ(systemd.activate(Method::kNri, Restart::kHarmless).failure, (Error{code, says}));
  }
}

TEST(ActivateContainerd, UndoLeavesThePluginToAnotherEngine) {
  const auto undo = [](const std::string& status) {
    FakeSystemd systemd{.process = 12, .plugin_status = status};
    struct Setup setup{.engine = &engines()[0], .program = "/usr/bin/containerd", .undo = true};
    EXPECT_TRUE(ctl::activate(setup, [&](const auto& argv) { return systemd.run(argv); }));
    EXPECT_EQ(setup.events.contains("pluginDisabled"), !systemd.verbs.empty());
    EXPECT_EQ(setup.events.contains("pluginDisabled"), setup.notes.empty());
    return join(setup.notes, "\n");
  };
  const std::string other = cat("synchronized with it (process ", ::getpid(), ")");
  EXPECT_EQ(undo(other), cat("podqos-nri.service stays: it serves another engine than containerd, ",
                             "and is ", other));
  // Itself; what it served before a restart; none.
  for (const char* status : {kConnected.c_str(), "synchronized with it (process 2000000000)",
                             "waiting for a runtime at /var/run/nri/nri.sock", ""})
    EXPECT_EQ(undo(status), "") << status;
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
  EXPECT_FALSE(is_stale({.process = ::getpid()}, "/none/file"));
  EXPECT_FALSE(is_stale({}, file));
  EXPECT_FALSE(is_stale({.process = ::getpid(), .installed = false}, file));
  // A plugin that is connected shows that NRI is on.
  const std::string connected = "synchronized with it (process " + std::to_string(::getpid()) + ")";
  EXPECT_FALSE(is_stale({.process = ::getpid(), .plugin_status = connected}, file, Method::kNri));
  FakeSystemd systemd{.process = ::getpid()};
  const auto restarted = systemd.activate(Method::kWrapper, Restart::kHarmless, {file});
  EXPECT_TRUE(restarted.events.contains("restarted") && !restarted.stale);
  EXPECT_THAT(systemd.verbs, ElementsAre("restart"));
}

/// A dockerd under systemd, as moby's daemon/reload_unix.go has it: a reload takes "runtimes" from
/// the file, and keeps the old ones where the file has none.
struct FakeDocker {
  bool active = true;
  bool answers = true;  ///< there is a client
  bool live_restore = false;
  bool known = false;  ///< the daemon knows podqos
  int running = 0;
  bool in_file = false;  ///< the file registers podqos
  std::string verbs = {};

  Result<std::string> run(const std::vector<std::string>& argv) {
    if (argv[0] != "/usr/bin/systemctl") {
      if (!answers) return fail(ErrorCode::kNotFound, "no client");
      const int stops = live_restore ? 0 : running;
      return std::to_string(stops) + " 0 systemd runc io.containerd.runc.v2" +
             (known ? " podqos" : "") + " runc";
    }
    if (argv[1] == "show")
      return cat("Id=docker.service\nActiveState=", active ? "active" : "inactive");
    verbs += argv[1] + " ";
    if (argv[1] == "reload") known = known || in_file;
    if (argv[1] == "restart") {
      known = in_file;
      if (active && !live_restore) running = 0;
      active = true;
    }
    return "";
  }
};

/// What is done for a file that is "added", "there", "removed" or "absent": systemctl's verbs, what
/// is said to have happened, how many containers a restart would stop, and Docker afterwards.
std::string outcome(FakeDocker docker, const std::string& file, Restart restart) {
  docker.in_file = file == "added" || file == "there";
  Setup setup{.engine = &engines()[3], .undo = !docker.in_file, .restart = restart};
  if (file == "added" || file == "removed") setup.changes.resize(1);
  EXPECT_TRUE(
      ctl::activate(setup, [&](const auto& argv) { return docker.run(argv); }, milliseconds{0}));
  EXPECT_EQ(setup.stale, setup.events.contains("stale"));
  std::string events;
  for (const auto& [event, line] : setup.events)
    events += " " + std::string{event};
  return docker.verbs + "->" + events + "; stops " + std::to_string(setup.containers) +
         (docker.known ? "; known, " : "; unknown, ") + std::to_string(docker.running) + " run";
}

TEST(ActivateDocker, RegistersByAReload) {
  EXPECT_EQ(outcome({.running = 3}, "added", Restart::kHarmless),
            "reload -> reloaded; stops 3; known, 3 run");
  EXPECT_EQ(outcome({.running = 3}, "there", Restart::kHarmless),
            "reload -> reloaded; stops 3; known, 3 run");
}

TEST(ActivateDocker, ReloadsForTheDefaultRuntime) {
  for (const char* before : {"runc", "podqos"}) {
    std::string chosen = before;
    std::string verbs;
    struct Setup setup{.engine = &engines()[3], .set_default = true, .restart = Restart::kHarmless};
    EXPECT_TRUE(ctl::activate(
        setup,
        [&](const std::vector<std::string>& argv) -> Result<std::string> {
          if (argv[0] != "/usr/bin/systemctl") return "3 0 systemd " + chosen + " podqos runc";
          if (argv[1] == "reload") chosen = "podqos";
          if (argv[1] == "show") return "Id=docker.service\nActiveState=active";
          verbs += argv[1];
          return "";
        },
        milliseconds{0}));
    EXPECT_EQ(verbs, before == std::string{"runc"} ? "reload" : "");
    EXPECT_FALSE(setup.stale);
  }
}

TEST(ActivateDocker, DoesNothingWhereTheDaemonHasIt) {
  EXPECT_EQ(outcome({.known = true, .running = 3}, "there", Restart::kHarmless),
            "->; stops 3; known, 3 run");
  EXPECT_EQ(outcome({.running = 3}, "absent", Restart::kForce), "->; stops 3; unknown, 3 run");
}

TEST(ActivateDocker, StopsNoContainersUnlessForced) {
  EXPECT_EQ(outcome({.known = true, .running = 3}, "removed", Restart::kHarmless),
            "reload -> reloaded stale; stops 3; known, 3 run");
  EXPECT_EQ(outcome({.known = true, .running = 3}, "absent", Restart::kForce),
            "reload restart -> restarted; stops 3; unknown, 0 run");
}

TEST(ActivateDocker, RestartsWhereNoContainerStops) {
  EXPECT_EQ(outcome({.known = true}, "removed", Restart::kHarmless),
            "reload restart -> restarted; stops 0; unknown, 0 run");
  EXPECT_EQ(
      outcome({.live_restore = true, .known = true, .running = 3}, "removed", Restart::kHarmless),
      "reload restart -> restarted; stops 0; unknown, 3 run");
}

TEST(ActivateDocker, TellsThatTheDaemonHasNotReadTheFile) {
  EXPECT_EQ(outcome({.running = 3}, "there", Restart::kNo), "-> stale; stops 3; unknown, 3 run");
}

TEST(ActivateDocker, WithoutAClientNeverRestartsForARemoval) {
  EXPECT_EQ(outcome({.answers = false, .known = true, .running = 3}, "removed", Restart::kHarmless),
            "reload -> reloaded stale; stops 0; known, 3 run");
}

TEST(ActivateDocker, StartsAStoppedOneOnlyToRegister) {
  EXPECT_EQ(outcome({.active = false}, "added", Restart::kHarmless),
            "restart -> restarted; stops 0; known, 0 run");
  EXPECT_EQ(outcome({.active = false, .known = true}, "removed", Restart::kHarmless),
            "->; stops 0; known, 0 run");
}

}  // namespace
}  // namespace podqos::ctl
