#include "ctl/node/engines.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/state_directory.h"
#include "common/sys/file_lock.h"
#include "tests/unit/ctl/configure_fixture.h"
#include "tests/unit/ctl/shown_findings.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using testing::IsEmpty;

const Engine& engine(EngineId id) {
  return engines()[static_cast<std::size_t>(id)];
}

/// podqos-nri.service, which runs.
const UnitState kService{.installed = true, .active = true, .process = Pid{77}};

/// containerd 2 that runs as this process, with NRI, and a plugin that serves it.
EngineFacts containerd() {
  return {.engine = &engine(EngineId::kContainerd),
          .version = Version{.major = 2, .minor = 1},
          .process = Pid{::getpid()},
          .registered = {Method::kNri},
          .settings = {.driver = core::Driver::kSystemd},
          .unit = kService,
          .plugin = PluginFacts{
              .process = Pid{77},
              .status = cat("synchronized with the runtime at /var/run/nri/nri.sock (process ",
                            ::getpid(), ")")}};
}

EngineFacts docker(DockerAnswer answer) {
  return {.engine = &engine(EngineId::kDocker),
          .version = Version{.major = 28, .minor = 5},
          .process = Pid{2},
          .registered = {Method::kWrapper},
          .docker = answer};
}

EngineFacts podman() {
  return {.engine = &engine(EngineId::kPodman),
          .version = Version{.major = 5, .minor = 4},
          .registered = {Method::kWrapper, Method::kHooks}};
}

TEST(CheckEngine, SaysWhatIsRight) {
  EXPECT_EQ(shown(check_engine(containerd())),
            "registered ok: by nri\n"
            "known ok: to the daemon that runs\n"
            "plugin ok: podqos-nri is connected\n");
  EXPECT_EQ(shown(check_engine(docker({.knows_podqos = true}))),
            "registered ok: by wrapper\n"
            "known ok: to the daemon that runs\n"
            "used ok: by containers that ask for the runtime podqos\n");
  EXPECT_EQ(shown(check_engine(podman())), "registered ok: by wrapper and hooks\n");
}

TEST(CheckEngine, SaysHowToRegister) {
  EngineFacts facts = docker({});
  facts.registered.clear();
  EXPECT_EQ(shown(check_engine(facts)),
            "registered skipped: not registered: its containers stay unmanaged → "
            "podqosctl configure docker --restart\n");
  facts = podman();
  facts.registered.clear();
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("→ podqosctl configure podman\n"));
  facts.refusal = Error{ErrorCode::kConflict, "zz-podqos.conf:1: disabled by this file"};
  EXPECT_EQ(shown(check_engine(facts)),
            "registered skipped: zz-podqos.conf:1: disabled by this file\n");
  facts.refusal = Error{ErrorCode::kConflict, "a.toml:1: cannot be changed; add by hand:\n[x]\n"};
  EXPECT_EQ(shown(check_engine(facts)),
            "registered skipped: a.toml:1: cannot be changed; add by hand: → podqosctl configure "
            "podman\n");
  facts.refusal = Error{ErrorCode::kInvalidArgument, "a.toml:1: expected ']'"};
  EXPECT_EQ(shown(check_engine(facts)), "registered warning: a.toml:1: expected ']'\n");
  facts.wrong = Error{ErrorCode::kAlreadyExists, "a.conf:3: a runtime \"podqos\" is there already"};
  EXPECT_EQ(shown(check_engine(facts)),
            "registered problem: a.conf:3: a runtime \"podqos\" is there already\n");
}

TEST(CheckEngine, TellsOfOlderLines) {
  EngineFacts facts = docker({.knows_podqos = true});
  facts.outdated = true;
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("registered warning: by wrapper; its lines are out of date → "
                                 "podqosctl configure docker --restart\n"));
}

TEST(CheckEngine, TellsOfARuntimeThatIsNotUsed) {
  EngineFacts facts = docker({.knows_podqos = true});
  facts.pods = 0;
  EXPECT_THAT(
      shown(check_engine(facts)),
      testing::HasSubstr("used warning: no running container has asked for the runtime podqos → "
                         "docker run --runtime podqos --annotation podqos.io/pod-uid=… …\n"));
  facts.settings.is_default = true;
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("used ok: podqos is the default runtime"));
}

TEST(CheckEngine, SkipsAContainerdThatStartsNoPods) {
  EngineFacts facts = containerd();
  facts.registered.clear();
  facts.refusal = Error{ErrorCode::kUnsupported, "config.toml:1: \"cri\" is disabled"};
  EXPECT_EQ(shown(check_engine(facts)), "registered skipped: config.toml:1: \"cri\" is disabled\n");
}

TEST(CheckEngine, BlamesNoneForBeingSlow) {
  EngineFacts facts = docker({});
  facts.registered.clear();
  facts.version.reset();
  facts.unknown = Error{ErrorCode::kTimeout, "/usr/bin/dockerd --version: timed out after 10 s"};
  facts.refusal = Error{ErrorCode::kConflict, "the version is unknown"};
  EXPECT_EQ(shown(check_engine(facts)),
            "version skipped: /usr/bin/dockerd --version: timed out after 10 s\n"
            "registered skipped: the version is unknown\n");
  facts = docker({});
  facts.docker = fail(ErrorCode::kTimeout, "/usr/bin/docker info: timed out after 10 s");
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("known skipped: the daemon cannot be asked: /usr/bin/docker info: "
                                 "timed out after 10 s\n"));
  facts.unknown = Error{ErrorCode::kConflict, "found two binaries (/usr/bin/dockerd, …)"};
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("version problem: found two binaries (/usr/bin/dockerd, …) → "
                                 "remove the one that does not run\n"));
}

TEST(CheckEngine, MissesNoPluginThatIsNotNeeded) {
  EngineFacts facts = containerd();
  facts.plugin.reset();
  facts.unit = UnitState{.installed = true};
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("plugin problem: "));
  facts.registered = {Method::kWrapper, Method::kNri};
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("plugin skipped: "));
  facts.registered = {Method::kNri};
  facts.process.reset();
  EXPECT_EQ(shown(check_engine(facts)),
            "registered ok: by nri\n"
            "known skipped: the daemon does not run\n");
}

TEST(CheckEngine, NamesProgramsThatAreMissing) {
  EngineFacts facts = podman();
  facts.missing = {"/usr/bin/podqos-runtime"};
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("programs problem: /usr/bin/podqos-runtime is registered and does "
                                 "not exist → install the package podqos again\n"));
}

TEST(CheckEngine, TellsOfAForgottenReload) {
  EXPECT_THAT(
      shown(check_engine(docker({}))),
      testing::HasSubstr("known problem: the daemon has not read the runtime \"podqos\" yet "
                         "→ systemctl reload docker.service\n"));
  EXPECT_EQ(docker({}).known(), false);
}

TEST(CheckEngine, TellsOfAForgottenRestart) {
  EngineFacts facts = containerd();
  facts.registered = {Method::kWrapper};
  facts.unread = "/etc/containerd/config.toml";
  facts.plugin.reset();
  EXPECT_THAT(
      shown(check_engine(facts)),
      testing::HasSubstr(
          "known problem: the daemon runs since before /etc/containerd/config.toml changed → "
          "systemctl restart containerd.service\n"));
  // A plugin that is connected shows that NRI is on.
  facts = containerd();
  facts.unread = "/etc/containerd/config.toml";
  EXPECT_EQ(facts.known(), true);
}

TEST(CheckEngine, TellsOfADaemonThatDoesNotAnswer) {
  EngineFacts facts = docker({});
  facts.docker = fail(ErrorCode::kRefused, "Cannot connect to the Docker daemon");
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("known problem: the daemon does not answer: Cannot connect to the "
                                 "Docker daemon → systemctl status docker.service\n"));
  EXPECT_EQ(facts.known(), std::nullopt);
  facts.docker = fail(ErrorCode::kNotFound, "Docker's client is not installed");
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("known skipped: "));
}

TEST(CheckEngine, TellsOfAPluginThatIsAway) {
  EngineFacts facts = containerd();
  facts.plugin->status = "synchronized with the runtime at /var/run/nri/nri.sock (process 1)";
  EXPECT_THAT(
      shown(check_engine(facts)),
      testing::HasSubstr("plugin problem: podqos-nri.service is not connected: synchronized "
                         "with the runtime at /var/run/nri/nri.sock (process 1) → "
                         "journalctl -u podqos-nri.service\n"));
  facts.unit = UnitState{.installed = true, .failed = true};
  facts.plugin = PluginFacts{};  // of before
  EXPECT_THAT(
      shown(check_engine(facts)),
      testing::HasSubstr("plugin problem: podqos-nri.service has failed: new containers stay "
                         "unmanaged → systemctl enable --now podqos-nri.service\n"));
  facts.plugin.reset();
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("podqos-nri.service has failed"));
  // The wrapper places them meanwhile.
  facts.registered = {Method::kWrapper, Method::kNri};
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("plugin warning: "));
}

TEST(CheckEngine, TellsOfAPluginInAPod) {
  EngineFacts facts = containerd();
  facts.unit.reset();
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr("plugin ok: podqos-nri is connected"));
  facts.plugin->status = "waiting for a runtime at /var/run/nri/nri.sock";
  const std::string logs =
      "plugin problem: podqos-nri (process 77) is not connected: waiting for a runtime at "
      "/var/run/nri/nri.sock → kubectl logs -n kube-system -l app.kubernetes.io/name=podqos-nri\n";
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr(logs));
  facts.unit = kService;  // it stands by
  facts.unit->process = Pid{78};
  EXPECT_THAT(shown(check_engine(facts)), testing::HasSubstr(logs));
  facts.unit = UnitState{};
  facts.plugin->process.reset();
  EXPECT_THAT(shown(check_engine(facts)),
              testing::HasSubstr("plugin problem: podqos-nri is not running: new containers stay "
                                 "unmanaged → kubectl get pods -o wide -n kube-system -l "
                                 "app.kubernetes.io/name=podqos-nri; if it was removed for good, "
                                 "remove nri.lock from stateDir\n"));
}

TEST(ReadPlugin, FindsTheOneThatHoldsTheLock) {
  const TemporaryDirectory temporary;
  const auto read = [&](const std::optional<UnitState>& unit) {
    return read_plugin(temporary.path("state"), unit);
  };
  EXPECT_FALSE(read({}) || read(UnitState{.installed = true}));
  ASSERT_TRUE(read(kService));  // or the caller may not read the lock
  EXPECT_EQ(read(kService)->process, Pid{77});
  ASSERT_TRUE(store::make_state_directory(temporary.path("state")));
  temporary.write("state/nri.lock", "12\nwaiting\n");
  ASSERT_TRUE(read({}));
  EXPECT_EQ(read({})->process, std::nullopt);
  EXPECT_EQ(read(kService)->process, Pid{77});
  const auto state = store::open_state_directory(temporary.path("state"));
  const auto held = sys::FileLock::acquire(*state, "nri.lock", std::chrono::milliseconds{0});
  ASSERT_TRUE(held);
  for (const auto& unit : {std::optional<UnitState>{}, std::optional{kService}}) {
    EXPECT_EQ(read(unit)->process, Pid{::getpid()});
    EXPECT_EQ(read(unit)->status, "waiting");
  }
}

TEST(ParseUnits, ReadsWhatSystemctlShows) {
  const Units units = parse_units(
      "MainPID=12\nStatusText=waiting\nId=podqos-nri.service\nLoadState=loaded\n"
      "ActiveState=active\nUnitFileState=enabled\n\n"
      "MainPID=0\nId=crio.service\nLoadState=not-found\nActiveState=inactive\n\n"
      "Id=podqos-reconcile.timer\nLoadState=masked\nActiveState=failed");
  ASSERT_EQ(units.size(), 3U);
  const UnitState& plugin = units.at("podqos-nri.service");
  EXPECT_TRUE(plugin.installed && plugin.enabled && plugin.active && !plugin.failed);
  EXPECT_EQ(plugin.process, Pid{12});
  EXPECT_EQ(plugin.status, "waiting");
  const UnitState& crio = units.at("crio.service");
  EXPECT_TRUE(!crio.installed && !crio.active && !crio.process);
  EXPECT_TRUE(units.at("podqos-reconcile.timer").masked &&
              units.at("podqos-reconcile.timer").failed);
  EXPECT_THAT(parse_units(""), IsEmpty());
}

/// Looks at an engine's files.
Result<EngineSettings> inspect(const Tree& tree, const std::string& words) {
  auto setup = tree.plan(words);
  return setup.engine->inspect(setup);
}
std::string checks_of(const Tree& tree, const std::string& words) {
  const auto found = inspect(tree, words);
  return found ? shown(found->checks) : found.error().message;
}

constexpr const char* kConfig = "/etc/containerd/config.toml";
/// A handler by hand that calls the wrapper, with these lines.
std::string handler(const std::string& lines) {
  return cat("version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.mine]\n",
             lines,
             "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.mine.options]\n"
             "BinaryName = \"/usr/bin/podqos-runtime\"\n");
}

TEST(InspectContainerd, FindsWhichAnnotationsPass) {
  EXPECT_EQ(
      checks_of({{kConfig, handler("pod_annotations = [\"podqos.io/*\"]\n")}}, "containerd 2.1"),
      "");
  EXPECT_EQ(checks_of({{kConfig, handler("")}}, "containerd 2.1"),
            "annotations problem: /etc/containerd/config.toml:2: pod_annotations keeps podqos.io "
            "annotations from containers → write pod_annotations = [\"podqos.io/*\"] there\n");
  EXPECT_EQ(
      checks_of({{kConfig, handler("pod_annotations = [\"*\", \"*/*\"]\n")}}, "containerd 2.1"),
      "annotations problem: /etc/containerd/config.toml:3: pod_annotations lets pods write "
      "annotations of the engine → write pod_annotations = [\"podqos.io/*\"] there\n");
}

TEST(InspectContainerd, FindsDriverAndDefault) {
  const std::string cri = "[plugins.'io.containerd.grpc.v1.cri'.containerd";
  const auto plain = inspect({}, "containerd 1.7");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->driver, core::Driver::kCgroupfs);
  EXPECT_FALSE(plain->is_default);
  const auto own =
      inspect({{kConfig, cat("version = 2\n", cri, "]\ndefault_runtime_name = \"podqos\"\n", cri,
                             ".runtimes.podqos.options]\nSystemdCgroup = true\n")}},
              "containerd 1.7");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->driver, core::Driver::kSystemd);
  EXPECT_TRUE(own->is_default);
}

constexpr const char* kLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
constexpr const char* kLinked = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";

TEST(InspectPodman, FindsAFileThatLeavesOutTheHook) {
  const auto checks = [](const std::string& name, const std::string& text) {
    const Tree made{{kLinked, project_file("packaging/containers.conf.d/zz-podqos.conf")},
                    {"/usr/share/containers/oci/hooks.d/nvidia.json", "{}"},
                    {"/usr/share/containers/oci/hooks.d/50-podqos-poststop.json", "{}"},
                    {"/etc/containers/containers.conf.d/" + name, text}};
    made.link(kLink, kLinked);
    return checks_of(made, "podman 5.4");
  };
  EXPECT_EQ(checks("a.conf", ""), "");
  // Once a list was appended to, later ones are, too.
  EXPECT_EQ(checks("zzz.conf", "[engine]\nhooks_dir = [\"/x\"]\n"), "");
  EXPECT_EQ(checks("zzz.conf", "[engine]\nhooks_dir = [\"/x\", {append=false}]\n"),
            "hooks warning: /etc/containers/containers.conf.d/zzz.conf:2: hooks_dir leaves out "
            "/usr/share/containers/oci/hooks.d/nvidia.json → add "
            "\"/usr/share/containers/oci/hooks.d\" to that list\n"
            "hooks problem: /etc/containers/containers.conf.d/zzz.conf:2: hooks_dir leaves out "
            "/usr/share/podqos/podman-hooks.d, so that podqos places no containers → add "
            "\"/usr/share/podqos/podman-hooks.d\" to that list\n");
  EXPECT_EQ(
      checks("a.conf", "[engine]\nhooks_dir = [\"/x\"]\n"),
      "hooks warning: /etc/containers/containers.conf.d/zz-podqos.conf:6: hooks_dir leaves out "
      "/usr/share/containers/oci/hooks.d/nvidia.json → add "
      "\"/usr/share/containers/oci/hooks.d\" to that list\n");
}

TEST(InspectCrio, FindsHooksThatItCannotRead) {
  EXPECT_EQ(checks_of({{"/usr/share/containers/oci/hooks.d/50-podqos-precreate.json", "{}"}},
                      "crio 1.31"),
            "hooks problem: /usr/share/containers/oci/hooks.d/50-podqos-precreate.json: CRI-O does "
            "not know the stage precreate, and does not start where it finds it → "
            "rm /usr/share/containers/oci/hooks.d/50-podqos-precreate.json\n");
  EXPECT_EQ(checks_of({{"/usr/share/containers/oci/hooks.d/nvidia.json", "{}"},
                       {"/etc/crio/crio.conf", "[crio.runtime]\nhooks_dir = [\"/x\"]\n"}},
                      "crio 1.31"),
            "hooks warning: /etc/crio/crio.conf:2: hooks_dir leaves out "
            "/usr/share/containers/oci/hooks.d/nvidia.json → add "
            "\"/usr/share/containers/oci/hooks.d\" to that list\n");
}

/// The handler that is there has the driver of before.
TEST(Plan, KnowsAnUpdateOfItsOwnLines) {
  const std::string config =
      "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\n"
      "SystemdCgroup = ";
  const Tree tree{{kConfig, config + "true\n"}};
  const auto first = tree.plan("containerd 1.7 wrapper");
  ASSERT_EQ(first.changes.size(), 1U);
  EXPECT_FALSE(first.changes[0].is_update);
  Tree::apply(first);
  std::string text = tree.text(kConfig);
  tree.put(kConfig, text.replace(config.size(), 4, "false"));
  const auto second = tree.plan("containerd 1.7 wrapper");
  ASSERT_EQ(second.changes.size(), 1U);
  EXPECT_TRUE(second.changes[0].is_update);
}

TEST(Plan, TellsAnotherProgramOfPodqosNameFromOtherRefusals) {
  const auto code = [](const Tree& tree, const std::string& words) {
    auto setup = tree.plan(words);
    const Status planned = plan(setup);
    return planned ? "" : std::string{format_error_code(planned.error().code)};
  };
  EXPECT_EQ(
      code({{"/etc/docker/daemon.json", R"({"runtimes": {"podqos": {"path": "/x"}}})"}}, "docker"),
      "already-exists");
  EXPECT_EQ(
      code({{"/etc/crio/crio.conf", "[crio.runtime.runtimes.podqos]\nruntime_path = \"/x\"\n"}},
           "crio 1.31"),
      "already-exists");
  EXPECT_EQ(code({{"/etc/docker/daemon.json", "[]"}}, "docker"), "conflict");
}

}  // namespace
}  // namespace podqos::ctl
