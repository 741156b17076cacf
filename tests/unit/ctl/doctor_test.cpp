#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/doctor/doctor_checks.h"
#include "ctl/node/node_checks.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/ctl/shown_findings.h"

namespace podqos::ctl {
namespace {

using core::CgroupVersion;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Debian 13's kernel.
KernelFacts kernel() {
  return {.layout = {.cpu = CgroupVersion::kV2,
                     .memory = CgroupVersion::kV2,
                     .hugetlb = CgroupVersion::kV2,
                     .pids = CgroupVersion::kV2,
                     .cpuset = CgroupVersion::kV2,
                     .io = CgroupVersion::kV2},
          .has_pressure = true,
          .has_swap = true,
          .limits_swap = true,
          .reclaims = true};
}

TEST(CheckKernel, SaysWhatItOffers) {
  EXPECT_EQ(shown(check_kernel(kernel(), {})),
            "controllers ok: cgroup v2: cpu, memory, pids, hugetlb, cpuset, io\n"
            "pressure ok: PSI is on\n"
            "swap ok: can be limited\n"
            "reclaim ok: memory.reclaim is there\n"
            "hugepages skipped: no memory is preallocated as huge pages\n"
            "wakeup skipped: beside busy BestEffort pods a process that wakes up may wait for "
            "milliseconds, unless the tier is idle (Linux 5.15) → set cpuIdle.bestEffort to true "
            "where BestEffort pods compute for long\n");
  core::Settings idle;
  idle.cpu_idle_besteffort = true;
  EXPECT_THAT(
      shown(check_kernel(kernel(), idle)),
      HasSubstr(
          "wakeup ok: the BestEffort tier is idle, where the kernel has cpu.idle (Linux 5.15)\n"));
  KernelFacts facts = kernel();
  facts.hugepages = Bytes{1LL << 30U};
  EXPECT_THAT(shown(check_kernel(facts, {})),
              HasSubstr("hugepages ok: 1Gi are preallocated as huge pages, and so not allocatable "
                        "as memory\n"));
}

TEST(CheckKernel, SaysWhatItLacks) {
  KernelFacts facts = kernel();
  facts.layout.memory.reset();
  facts.layout.pids = CgroupVersion::kV1;
  facts.limits_swap = false;
  facts.reclaims = false;
  EXPECT_THAT(shown(check_kernel(facts, {})),
              AllOf(HasSubstr("controllers problem: the kernel lacks memory: pods get no values of "
                              "it → boot without cgroup_disable=memory, or with "
                              "cgroup_enable=memory\n"),
                    HasSubstr("swap skipped: the kernel has no memory controller\n"),
                    HasSubstr("reclaim skipped: the kernel has no memory controller\n")));
  facts = kernel();
  facts.limits_swap = false;
  facts.reclaims = false;
  const std::string all = shown(check_kernel(facts, {}));
  EXPECT_THAT(all, HasSubstr("swap warning: the kernel does not account for swap: containers may "
                             "swap without limit → boot with swapaccount=1\n"));
  EXPECT_THAT(all, HasSubstr("reclaim skipped: no memory.reclaim before Linux 5.19"));
}

TEST(CheckKernel, NeedsPressureForEvictionOnly) {
  KernelFacts facts = kernel();
  facts.has_pressure = false;
  core::Settings settings;
  EXPECT_THAT(shown(check_kernel(facts, settings)), HasSubstr("pressure skipped: PSI is off"));
  settings.eviction.besteffort = core::MemoryPressure{};
  EXPECT_THAT(shown(check_kernel(facts, settings)),
              HasSubstr("pressure warning: PSI is off: podqos-nri evicts by the working set, and "
                        "systemd-oomd does not run → boot with psi=1\n"));
}

TEST(CheckConfiguration, TellsErrorsAndWhatIsNotRead) {
  EXPECT_EQ(
      shown(check_configuration({})),
      "files ok: no files: the built-in settings count\nenabled ok: podqos is on\n"
      "pids skipped: podPidsLimit is not set: a pod may take all processes of the node, which "
      "then cannot fork either → set podPidsLimit, such as 4096\n");
  app::ConfigurationReport report;
  report.settings.pod_pids_limit = 512;
  report.settings.enabled = false;
  report.source = app::SettingsSource::kLastValid;
  report.errors = {"/etc/podqos/podqos.json: scope: expected one of pods, annotated, all"};
  report.ignored = {"/etc/podqos/conf.d/20-site.yaml"};
  EXPECT_EQ(
      shown(check_configuration(report)),
      "files problem: /etc/podqos/podqos.json: scope: expected one of pods, annotated, all; "
      "until it is corrected, the last valid settings stay in force → podqosctl config check\n"
      "files warning: /etc/podqos/conf.d/20-site.yaml is not read: the names of files in "
      "conf.d end in .json → mv /etc/podqos/conf.d/20-site.yaml "
      "/etc/podqos/conf.d/20-site.json\n"
      "enabled problem: podqos is switched off by \"enabled\": false: new containers start "
      "unmanaged, and earlier ones are released when they end → remove \"enabled\": false\n"
      "pids ok: a pod has at most 512 processes\n");
}

TEST(CheckSettings, ComparesTheFilesWithTheLastTransaction) {
  app::ConfigurationReport report;
  EXPECT_EQ(check_settings(report, std::nullopt).outcome, Outcome::kSkipped);
  EXPECT_EQ(shown({check_settings(report, core::Settings{})}),
            "settings ok: the last transaction had those of the files\n");
  report.settings.pod_pids_limit = 64;
  report.settings.enabled = false;
  EXPECT_EQ(shown({check_settings(report, core::Settings{})}),
            "settings warning: the last transaction had other settings than the files: enabled, "
            "podPidsLimit → podqosctl reconcile; if they differ again, find the program that reads "
            "other files: it has the option --config, or is a podqos-nri in a pod\n");
}

TEST(CheckWeights, ComparesTheSettingWithTheRuntime) {
  core::Settings settings;
  EXPECT_EQ(check_weights(settings, std::nullopt).outcome, Outcome::kSkipped);
  EXPECT_EQ(check_weights(settings, core::WeightFormula::kLog).outcome, Outcome::kOk);
  settings.weight_formula = core::WeightFormulaSetting::kLinear;
  EXPECT_EQ(check_weights(settings, core::WeightFormula::kLinear).outcome, Outcome::kOk);
  EXPECT_EQ(shown({check_weights(settings, core::WeightFormula::kLog)}),
            "weights warning: weightFormula is linear, and the runtime gives containers weights by "
            "the log formula: pods and their containers do not compare → set weightFormula to "
            "auto\n");
}

struct DirectoryCase {
  const char* name;
  DirectoryFacts facts;
  const char* want;
};
class CheckDirectory : public testing::TestWithParam<DirectoryCase> {};
TEST_P(CheckDirectory, SaysWhatIsWrong) {
  DirectoryFacts facts = GetParam().facts;
  facts.path = "/run/podqos";
  EXPECT_EQ(shown({check_directory(facts)}), std::string{"directory "} + GetParam().want + "\n");
}
constexpr mode_t kGood = S_IFDIR | 0700;
constexpr std::int64_t kRoom = 64LL << 20U;
INSTANTIATE_TEST_SUITE_P(
    Table, CheckDirectory,
    testing::ValuesIn<DirectoryCase>({
        {"Good",
         {.mode = kGood, .free_bytes = kRoom, .free_files = 1000},
         "ok: /run/podqos has 64Mi free"},
        {"NotMadeYet",
         {.error = Error{ErrorCode::kNotFound, ""}},
         "ok: /run/podqos does not exist: no pod has come yet"},
        {"Unreadable",
         {.error = Error{ErrorCode::kIo, "/run/podqos: Input/output error"}},
         "problem: /run/podqos: Input/output error"},
        {"Link",
         {.mode = S_IFLNK | 0777},
         "problem: /run/podqos is not a directory → ls -ld /run/podqos"},
        {"OfAUser",
         {.owner = 1000, .mode = kGood},
         "problem: /run/podqos belongs to user 1000: podqos uses none but root's → look at its "
         "files, then chown root: /run/podqos"},
        {"OpenToAll",
         {.mode = S_IFDIR | 0777},
         "problem: /run/podqos is writable by others: podqos does not use it → look at its files, "
         "then chmod 0700 /run/podqos"},
        {"ReadOnly",
         {.mode = kGood, .read_only = true, .free_bytes = kRoom, .free_files = 1000},
         "problem: /run/podqos is mounted read-only → findmnt --target /run/podqos"},
        {"Full",
         {.mode = kGood, .free_bytes = 4096, .free_files = 1000},
         "problem: /run/podqos has no room: 4096 bytes and 1000 files are free → df -h "
         "/run/podqos; df -i /run/podqos"},
    }),
    [](const auto& each) { return each.param.name; });

TEST(CheckLock, TellsWhoHoldsItForTooLong) {
  const core::Settings settings;
  LockFacts facts;
  EXPECT_EQ(shown({check_lock(facts, settings)}), "lock ok: free\n");
  facts.holder = Pid{12};
  facts.program = "podqos-hook";
  facts.waiters = 3;
  EXPECT_EQ(shown({check_lock(facts, settings)}),
            "lock ok: held by process 12 (podqos-hook) for 0 s, 3 waiting\n");
  facts.held = std::chrono::seconds{90};
  EXPECT_EQ(shown({check_lock(facts, settings)}),
            "lock problem: held by process 12 (podqos-hook) for 90 s, 3 waiting: containers start "
            "without podqos meanwhile → if it hangs: kill 12\n");
}

TEST(ParseLocks, FindsHolderAndWaitersOfAFile) {
  // fs/locks.c, lock_get_status().
  const std::string text =
      "1: POSIX  ADVISORY  WRITE 7 00:1a:34 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 12 00:1a:34 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 13 00:1a:34 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 14 00:1a:34 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 15 00:1a:35 0 EOF\nFLOCK\n";
  const FileLockers found = parse_locks(text, makedev(0, 0x1a), 34);
  EXPECT_EQ(found.holder, Pid{12});
  EXPECT_EQ(found.waiters, 2);
  EXPECT_FALSE(parse_locks(text, makedev(8, 1), 34).holder);
  EXPECT_FALSE(parse_locks("", makedev(0, 0x1a), 34).holder);
}

/// Where what is checked of a node was read.
class NodeFixture : public ::testing::Test {
 protected:
  Entry entry(const std::string& path) { return {.held = {machine_, path}}; }
  TierEntry tier(core::QosClass qos_class, const std::string& path, std::int64_t pods) {
    return {.qos_class = qos_class,
            .sum = {.pods = pods, .cpu = {}, .memory = {}},
            .cgroup = entry(path)};
  }
  /// A tree whose BestEffort tier has a pod, and loses it by this; "": by nothing.
  TreeEntry tree(const std::string& kubepods, std::string_view by) {
    TreeEntry made{.kubepods = kubepods};
    made.tiers = {tier(core::QosClass::kGuaranteed, kubepods, 0),
                  tier(core::QosClass::kBestEffort, kubepods + "/besteffort", 1)};
    made.tiers[1].evicts_at = by.empty() ? "" : "60% for 30s";
    made.tiers[1].evicted_by = by;
    return made;
  }
  PodEntry pod(const std::string& path, bool kubelets_own) {
    PodEntry made{.record = {}, .cgroup = entry(path)};
    made.record.cgroup = path;
    made.record.kubelets_own = kubelets_own;
    return made;
  }

  cgroup::FakeTree tree_{core::CgroupVersion::kV2};
  cgroup::FakeMachine machine_{tree_, [](const std::string& /*change*/) { return Status{}; }};
};
using CheckNode = NodeFixture;
using CheckEviction = NodeFixture;

TEST_F(CheckNode, GroupsFindingsByKind) {
  Node node{.configuration = {}};
  node.trees = {tree("/podqos/kubepods", "")};
  node.trees[0].tiers[1].converging = true;
  node.pods = {pod("/kubepods.slice/kubepods-pod1.slice", true),
               pod("/podqos/kubepods/pod2", false)};
  node.findings = {finding_of("values", "pod a: memory limit is 1Gi, the rule says 2Gi"),
                   finding_of("places", "pod b: c runs in cgroup /x"),
                   finding_of("values", "pod c: memory limit is 1Gi, the rule says 3Gi")};
  const std::string all = shown(check_node(node));
  EXPECT_THAT(all,
              HasSubstr("values problem: pod a: memory limit is 1Gi, the rule says 2Gi (and 1 "
                        "more: see podqosctl status) → podqosctl reconcile\n"
                        "places problem: pod b: c runs in cgroup /x\n"
                        "containers ok: all recorded containers run, or are yet to be deleted\n"));
  EXPECT_THAT(all, HasSubstr("roots ok: /kubepods.slice is a kubelet's, /podqos/kubepods is "
                             "podqos's\n"));
  EXPECT_THAT(all, HasSubstr("tiers warning: usage keeps the memory limit above its rule: "
                             "/podqos/kubepods/besteffort → podqosctl reconcile --converge 60\n"));
  EXPECT_THAT(all, HasSubstr("missed ok: no container that asks for podqos is missed\n"));
}

TEST_F(CheckNode, HasNoRemedyBesideTheFindingsOwn) {
  const std::string newer =
      "record of version 9, written by podqos 2.0: use the newer release on this node";
  Node node{.configuration = {}};
  node.findings = {finding_of("records", newer)};
  EXPECT_THAT(shown(check_node(node)), HasSubstr(cat("records problem: ", newer, "\n")));
}

TEST_F(CheckNode, SaysWhatIsMissed) {
  Node node{.configuration = {}};
  node.findings = {finding_of("missed", "container x: cannot be read")};
  EXPECT_THAT(shown(check_node(node)), HasSubstr("missed warning: container x: cannot be read\n"));
  node.missed = {{.container = {.uid = "u-1"}, .why = "annotation = \"x\"", .remedy = "correct it"},
                 {.container = {.uid = "u-2"}}};
  EXPECT_THAT(shown(check_node(node)),
              HasSubstr("missed problem: u-1: annotation = \"x\" (and 1 more: see podqosctl "
                        "status) → correct it\n"));
}

TEST_F(CheckEviction, LooksWhetherAnythingEvicts) {
  core::Settings settings;
  Node both{.configuration = {}};
  both.trees = {tree("/podqos/kubepods", "podqos-nri"), tree("/podqos.slice", "systemd-oomd")};
  bool& plugin_runs = both.trees[0].tiers[1].evictor_runs;
  bool& oomd_runs = both.trees[1].tiers[1].evictor_runs;
  EXPECT_EQ(shown({check_eviction(settings, both)}),
            "eviction skipped: not configured: where memory runs short, the OOM killer decides\n");
  settings.eviction.besteffort = core::MemoryPressure{};
  EXPECT_EQ(shown({check_eviction(settings, {.configuration = {}})}),
            "eviction skipped: no pods that could be evicted\n");
  oomd_runs = true;
  EXPECT_EQ(shown({check_eviction(settings, both)}),
            "eviction problem: podqos-nri does not run, so that nothing evicts pods of "
            "/podqos/kubepods → systemctl enable --now podqos-nri.service\n");
  plugin_runs = true;
  EXPECT_EQ(check_eviction(settings, both).outcome, Outcome::kOk);
  oomd_runs = false;
  EXPECT_EQ(shown({check_eviction(settings, both)}),
            "eviction problem: systemd-oomd does not run, so that nothing evicts pods of "
            "/podqos.slice → systemctl enable --now systemd-oomd.service\n");
}

TEST_F(CheckNode, SaysWhatTwoDriversCost) {
  Node node{.configuration = {}};
  node.trees = {tree("/podqos/kubepods", "")};
  EXPECT_THAT(shown(check_node(node)), HasSubstr("trees ok: no pods of two cgroup drivers\n"));
  node.trees.push_back(tree("/podqos.slice", ""));
  EXPECT_THAT(
      shown(check_node(node)),
      HasSubstr("trees warning: pods of both cgroup drivers, each in a tree of its own: CPU "
                "that one tree leaves unused goes to its own BestEffort pods before the "
                "other's Burstable ones → give all engines one cgroup driver: "));
}

TEST(CheckEvents, CountsFailuresOfTheLastHour) {
  constexpr std::int64_t kNow = 10'000'000;
  const auto event = [](core::EventKind kind, std::int64_t time, const char* text) {
    core::Event made;
    made.kind = kind;
    made.time = UnixMillis{time};
    made.text = text;
    return made;
  };
  using enum core::EventKind;
  EXPECT_EQ(
      shown({check_events({event(kFailed, kNow - 3'600'001, "old"), event(kPlaced, kNow, "placed")},
                          UnixMillis{kNow})}),
      "failures ok: none in the last hour\n");
  EXPECT_EQ(shown({check_events(
                {event(kFailed, kNow - 5, "one"), event(kRefused, kNow - 4, "no \"room\"")},
                UnixMillis{kNow})}),
            "failures warning: 2 in the last hour, the last one: no \"room\" → podqosctl events "
            "--since 1h\n");
}

TEST(CheckEngines, WarnsWhereNoneIsRegistered) {
  EXPECT_EQ(shown(check_engines({}, {})), "registered skipped: no engine is installed\n");
  EngineFacts facts{.engine = &engines()[3], .settings = {.driver = core::Driver::kSystemd}};
  EXPECT_EQ(shown(check_engines({facts}, {})),
            "registered problem: podqos is registered with no engine: all containers stay "
            "unmanaged → podqosctl configure docker --restart\n");
  facts.registered = {Method::kWrapper};
  EXPECT_EQ(shown(check_engines({facts}, {})), "drivers ok: Docker systemd\n");
  core::Settings settings;
  settings.cgroup_driver = core::DriverSetting::kCgroupfs;
  EXPECT_THAT(shown(check_engines({facts}, settings)), HasSubstr("driver problem: "));
}

TEST(CheckTimer, SaysHowToStartIt) {
  const auto outcome = [](UnitState state) {
    return shown({check_timer(Units{{"podqos-reconcile.timer", std::move(state)}})});
  };
  EXPECT_EQ(outcome({.installed = true, .active = true}),
            "timer ok: podqos-reconcile.timer runs\n");
  EXPECT_THAT(outcome({.installed = true}),
              HasSubstr("→ systemctl enable --now podqos-reconcile.timer\n"));
  EXPECT_THAT(outcome({.installed = true, .masked = true}),
              HasSubstr("→ systemctl unmask podqos-reconcile.timer\n"));
  EXPECT_THAT(shown({check_timer(Units{})}), HasSubstr("is not installed"));
  EXPECT_EQ(shown({check_timer(fail(ErrorCode::kUnsupported, "systemd is not the init system"))}),
            "timer skipped: systemd is not the init system\n");
  EXPECT_EQ(shown({check_timer(fail(ErrorCode::kRefused, "unit \"a\" not found"))}),
            "timer skipped: unit \"a\" not found\n");
}

constexpr const char* kFile = "/var/lib/kubelet/config.yaml";

TEST(CheckKubelet, FindsWhatContradicts) {
  core::Settings settings;
  EXPECT_EQ(shown(check_kubelet(kFile, std::nullopt, settings)),
            "kubelet skipped: no /var/lib/kubelet/config.yaml\n");
  EXPECT_EQ(shown(check_kubelet(kFile,
                                "kind: KubeletConfiguration\npodPidsLimit: -1\n"
                                "cgroupDriver: systemd\nsystemReserved: {memory: 0Mi}\n",
                                settings)),
            "kubelet ok: as /var/lib/kubelet/config.yaml has it\n");
  EXPECT_EQ(shown(check_kubelet(kFile, "podPidsLimit: 100\nsystemReserved:\n  memory: \"1Gi\"\n",
                                settings)),
            "kubelet warning: /var/lib/kubelet/config.yaml has systemReserved.memory \"1Gi\", "
            "podqos's reserved.system.memory differs → add "
            "{\"reserved\":{\"system\":{\"memory\":\"1Gi\"}}} to /etc/podqos/podqos.json\n"
            "kubelet warning: /var/lib/kubelet/config.yaml has podPidsLimit 100, podqos's "
            "podPidsLimit differs → add {\"podPidsLimit\":100} to /etc/podqos/podqos.json\n");
  // YAML has more words for these than JSON.
  EXPECT_EQ(shown(check_kubelet(kFile, "cpuCFSQuota: False\npodPidsLimit: 4_096\n", settings)),
            "kubelet warning: /var/lib/kubelet/config.yaml has cpuCFSQuota False, podqos's "
            "cpuCFSQuota differs → add {\"cpuCFSQuota\":false} to /etc/podqos/podqos.json\n"
            "kubelet warning: /var/lib/kubelet/config.yaml has podPidsLimit 4_096, podqos's "
            "podPidsLimit differs → add {\"podPidsLimit\":4096} to /etc/podqos/podqos.json\n");
  settings.system_reserved.memory = Bytes{1LL << 30U};
  settings.pod_pids_limit = 100;
  EXPECT_EQ(shown(check_kubelet(kFile, "podPidsLimit: 100\nsystemReserved:\n  memory: 1024Mi\n",
                                settings)),
            "kubelet ok: as /var/lib/kubelet/config.yaml has it\n");
  settings.cgroup_root = "/";
  EXPECT_THAT(shown(check_kubelet(kFile, "{}", settings)),
              HasSubstr("kubelet problem: cgroupRoot is the kubelet's, /: "));
  EXPECT_THAT(shown(check_kubelet(kFile, "a: [", settings)), HasSubstr("kubelet skipped: "));
}

TEST(FormatChecks, FitsTheScreen) {
  const Findings checks = {
      {"kernel", "pressure", Outcome::kOk, "PSI is on"},
      {"docker", "known", Outcome::kProblem,
       "the daemon has not read the runtime \"podqos\" yet, and more words than a line has",
       "systemctl reload docker.service"},
      {"docker", "used", Outcome::kSkipped, "x"}};
  EXPECT_EQ(format_checks(checks, {.width = 60}),
            "kernel\n"
            "  OK    pressure  PSI is on\n"
            "docker\n"
            "  FAIL  known     the daemon has not read the runtime\n"
            "                  \"podqos\" yet, and more words than a line\n"
            "                  has\n"
            "                  fix: systemctl reload docker.service\n"
            "  -     used      x\n"
            "1 problem, 0 warnings\n");
  EXPECT_THAT(format_checks(checks, {.colour = ColourMode::kColoured, .width = 60}),
              HasSubstr("\x1b[31m  FAIL"));
  EXPECT_EQ(format_checks({{"a", "b", Outcome::kOk, "x\n\x1b[2J"}}, {}),
            "a\n  OK    b  x\\x0a\\x1b[2J\n0 problems, 0 warnings\n");
  EXPECT_EQ(dump(json_of(checks)[0]), R"({"group":"kernel","name":"pressure","outcome":"ok",)"
                                      R"("text":"PSI is on","remedy":null})");
}

}  // namespace
}  // namespace podqos::ctl
