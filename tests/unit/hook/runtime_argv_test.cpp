#include "hook/runtime_argv.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

using Words = std::vector<const char*>;

RuntimeCall parse(const Words& words) {
  return parse_runtime_argv(words);
}

struct Placing {
  const char* name;
  Words words;
  const char* id;
  const char* bundle = ".";
  const char* config_name = "config.json";
};
class RuntimeArgvPlaces : public TestWithParam<Placing> {};

TEST_P(RuntimeArgvPlaces, FindsIdBundleAndConfig) {
  const RuntimeCall call = parse(GetParam().words);
  EXPECT_EQ(call.verb, Verb::kPlaces);
  EXPECT_EQ(call.id, GetParam().id);
  EXPECT_EQ(call.bundle, GetParam().bundle);
  EXPECT_EQ(call.config_name, GetParam().config_name);
  EXPECT_THAT(call.runtime_args, ElementsAreArray(GetParam().words));
  EXPECT_EQ(call.podqos_config, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Runc, RuntimeArgvPlaces,
    ValuesIn<Placing>({
        {"Bare", {"create", "c1"}, "c1"},
        {"ContainerdsForm",
         {"--root", "/run/containerd/runc/k8s.io", "--log", "/b/log.json", "--log-format", "json",
          "--systemd-cgroup", "create", "--bundle", "/b", "--pid-file", "/b/init.pid", "c1"},
         "c1",
         "/b"},
        {"BundleWithEquals", {"create", "--bundle=/b", "c1"}, "c1", "/b"},
        {"BundleWithOneDash", {"create", "-bundle", "/b", "c1"}, "c1", "/b"},
        {"BundleWithOneDashAndEquals", {"create", "-bundle=/b", "c1"}, "c1", "/b"},
        {"ShortBundle", {"create", "-b", "/b", "c1"}, "c1", "/b"},
        {"ShortBundleWithEquals", {"create", "-b=/b", "c1"}, "c1", "/b"},
        {"AnEqualsSignInTheBundle", {"create", "--bundle=/b=x", "c1"}, "c1", "/b=x"},
        {"OptionsBehindTheId", {"create", "c1", "--bundle", "/b", "--pid-file", "p"}, "c1", "/b"},
        {"TheLastBundleCounts", {"create", "-b", "/a", "--bundle", "/b", "c1"}, "c1", "/b"},
        {"Run", {"run", "-d", "--keep", "--no-subreaper", "-b", "/b", "c1"}, "c1", "/b"},
        {"Restore",
         {"restore", "--image-path", "/i", "--work-path", "/w", "--manage-cgroups-mode", "soft",
          "--empty-ns", "network", "--lsm-profile", "selinux:x", "--lsm-mount-context", "y",
          "--bundle", "/b", "--detach", "c1"},
         "c1",
         "/b"},
        {"AContainerNamedCreate", {"create", "--bundle", "/b", "create"}, "create", "/b"},
        {"AContainerNamedRun", {"run", "run"}, "run"},
        {"ARootNamedCreate", {"--root", "create", "run", "c1"}, "c1"},
        {"ARootNamedCreateWithEquals", {"--root=create", "run", "c1"}, "c1"},
        {"ALogNamedKill", {"--log", "kill", "create", "c1"}, "c1"},
        {"Criu", {"--criu", "kill", "--rootless", "auto", "--debug", "create", "c1"}, "c1"},
        {"ABundleNamedCreate", {"create", "-b", "create", "c1"}, "c1", "create"},
        {"ABundleNamedHelp", {"create", "--bundle", "--help", "c1"}, "c1", "--help"},
        {"OnlyWordsBehindTwoDashes", {"create", "-b", "/b", "--", "-c1"}, "-c1", "/b"},
        {"HelpBehindTwoDashes", {"create", "--", "--help"}, "--help"},
        {"OptionsThatItDoesNotKnow",
         {"--new=kill", "--newer", "create", "--x=y", "-z", "c1"},
         "c1"},
        {"PreservedDescriptors", {"create", "--preserve-fds", "2", "c1"}, "c1"},
        {"Sockets", {"create", "--console-socket", "s", "--pidfd-socket", "p", "c1"}, "c1"},
    }),
    [](const TestParamInfo<Placing>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Crun, RuntimeArgvPlaces,
    ValuesIn<Placing>({
        {"ConmonsForm",
         {"--systemd-cgroup", "--root=/run/crun", "--log=/l", "--log-format=json", "create",
          "--bundle", "/b", "--pid-file", "/p", "--console-socket", "/s", "c1"},
         "c1",
         "/b"},
        {"Manager", {"--cgroup-manager=cgroupfs", "--log-level", "debug", "create", "c1"}, "c1"},
        {"ManagerNamedKill", {"--cgroup-manager", "kill", "create", "c1"}, "c1"},
        {"JoinedBundle", {"create", "-b/b", "c1"}, "c1", "/b"},
        {"JoinedBundleWithAnEqualsSign", {"create", "-b/dir=x", "c1"}, "c1", "/dir=x"},
        {"JoinedRelativeBundle", {"create", "-bdir", "c1"}, "c1", "dir"},
        {"TwoDashesBeforeTheVerb", {"--debug", "--", "create", "-b", "/b", "c1"}, "c1", "/b"},
        {"AFullNameThatBeginsAnother", {"--log", "kill", "--root", "create", "run", "c1"}, "c1"},
        {"Config", {"create", "--config", "other.json", "c1"}, "c1", ".", "other.json"},
        {"ConfigWithEquals", {"run", "--config=other.json", "c1"}, "c1", ".", "other.json"},
        {"ShortConfig", {"run", "-f", "other.json", "c1"}, "c1", ".", "other.json"},
        {"JoinedConfig", {"run", "-fother.json", "c1"}, "c1", ".", "other.json"},
    }),
    [](const TestParamInfo<Placing>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Youki, RuntimeArgvPlaces,
    ValuesIn<Placing>({
        {"ShortGlobals", {"-r", "/run/youki", "-l", "/log", "-s", "create", "c1"}, "c1"},
        {"ShortOptions", {"create", "-b", "/b", "-p", "/pid", "c1"}, "c1", "/b"},
        {"JoinedBundle", {"create", "c1", "-b/b"}, "c1", "/b"},
        {"ConsoleSocket", {"create", "c1", "-c", "/sock"}, "c1"},
        {"LogOfSystemd", {"--systemd-log", "create", "c1"}, "c1"},
        {"LogOfSystemdBeforeOthers",
         {"--systemd-log", "--log-level", "debug", "--root", "/r", "create", "-b", "/b", "c1"},
         "c1",
         "/b"},
    }),
    [](const TestParamInfo<Placing>& row) { return std::string{row.param.name}; });

struct Passing {
  const char* name;
  Words words;
};
class RuntimeArgvPasses : public TestWithParam<Passing> {};

TEST_P(RuntimeArgvPasses, LeavesTheCallToTheRuntime) {
  const RuntimeCall call = parse(GetParam().words);
  EXPECT_EQ(call.verb, Verb::kOther);
  EXPECT_THAT(call.runtime_args, ElementsAreArray(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(Table, RuntimeArgvPasses,
                         ValuesIn<Passing>({
                             {"Nothing", {}},
                             {"Version", {"--version"}},
                             {"GlobalHelp", {"--help"}},
                             {"Features", {"features"}},
                             {"Start", {"--root", "/r", "start", "c1"}},
                             {"StartOfAContainerNamedCreate", {"start", "create"}},
                             {"KillAll", {"kill", "--all", "create", "KILL"}},
                             {"Exec", {"exec", "--pid-file", "p", "c1", "create", "c2"}},
                             {"Update", {"update", "--resources=-", "run"}},
                             {"Delete", {"delete", "--force", "create"}},
                             {"State", {"--root", "create", "state", "c1"}},
                             {"TheVerbIsTheValueOfRoot", {"--root", "create"}},
                             {"CreateWithoutAnId", {"create"}},
                             {"CreateWithoutAnIdButABundle", {"create", "--bundle", "/b"}},
                             {"CreateWithABundleThatIsMissing", {"create", "--bundle"}},
                             {"CreateHelp", {"create", "--help"}},
                             {"CreateHelpBehindTheId", {"create", "c1", "-h"}},
                             {"CrunsQuestionMark", {"run", "c1", "-?"}},
                             {"CrunsUsage", {"run", "--usage", "c1"}},
                             {"AQuestionBeforeTheVerb", {"--version", "create", "c1"}},
                             {"HelpBeforeTheVerb", {"-h", "create", "c1"}},
                             {"AnEmptyWord", {""}},
                             {"ACapitalVerb", {"Create", "c1"}},
                             {"ALongerVerb", {"created", "c1"}},
                         }),
                         [](const TestParamInfo<Passing>& row) {
                           return std::string{row.param.name};
                         });

struct Driver {
  const char* name;
  Words words;
  bool systemd;
};
class RuntimeArgvDriver : public TestWithParam<Driver> {};

TEST_P(RuntimeArgvDriver, IsRecognised) {
  EXPECT_EQ(parse(GetParam().words).systemd, GetParam().systemd);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RuntimeArgvDriver,
    ValuesIn<Driver>({
        {"Default", {"create", "c1"}, false},
        {"Flag", {"--systemd-cgroup", "create", "c1"}, true},
        {"ShortFlag", {"-s", "create", "c1"}, true},
        {"FlagSetFalse", {"--systemd-cgroup=false", "create", "c1"}, false},
        {"FlagSetZero", {"--systemd-cgroup=0", "create", "c1"}, false},
        {"FlagSetF", {"--systemd-cgroup=f", "create", "c1"}, false},
        {"FlagSetCapitalF", {"--systemd-cgroup=F", "create", "c1"}, false},
        {"FlagSetCapitalFalse", {"--systemd-cgroup=False", "create", "c1"}, false},
        {"FlagSetAllCapitals", {"--systemd-cgroup=FALSE", "create", "c1"}, false},
        {"FlagSetOne", {"--systemd-cgroup=1", "create", "c1"}, true},
        {"FlagSetTrue", {"--systemd-cgroup=true", "create", "c1"}, true},
        {"Manager", {"--cgroup-manager=systemd", "create", "c1"}, true},
        {"ManagerInTwoWords", {"--cgroup-manager", "systemd", "create", "c1"}, true},
        {"AnotherManager", {"--cgroup-manager", "cgroupfs", "create", "c1"}, false},
        {"AnIdOfThatName", {"create", "--", "--systemd-cgroup"}, false},
        {"YoukisLog", {"--systemd-log", "create", "c1"}, false},
    }),
    [](const TestParamInfo<Driver>& row) { return std::string{row.param.name}; });

TEST(RuntimeArgv, PlacesNothingWithoutCgroups) {
  EXPECT_EQ(parse({"--cgroup-manager=disabled", "create", "c1"}).verb, Verb::kOther);
  EXPECT_EQ(parse({"--cgroup-manager", "disabled", "run", "c1"}).verb, Verb::kOther);
}

TEST(RuntimeArgv, KnowsWhereTheEngineLooksForErrors) {
  const RuntimeCall call = parse({"--log", "/b/log.json", "--log-format", "json", "create", "c1"});
  EXPECT_EQ(call.log_file, "/b/log.json");
  EXPECT_TRUE(call.log_json);
}

TEST(RuntimeArgv, TakesTheLogsDefaults) {
  const RuntimeCall call = parse({"--log-format=text", "create", "--log", "c1"});
  EXPECT_EQ(call.log_file, "");
  EXPECT_FALSE(call.log_json);
}

TEST(RuntimeArgv, TakesItsOwnConfigurationInFront) {
  const RuntimeCall call = parse({"--config", "/p.json", "--root", "/r", "create", "c1"});
  EXPECT_EQ(call.podqos_config, "/p.json");
  EXPECT_EQ(call.id, "c1");
  EXPECT_EQ(call.config_name, "config.json");
  EXPECT_THAT(call.runtime_args, ElementsAre("--root", "/r", "create", "c1"));
}

TEST(RuntimeArgv, TakesItsOwnConfigurationWithEquals) {
  const RuntimeCall call = parse({"--config=/p.json", "create", "--config=x.json", "c1"});
  EXPECT_EQ(call.podqos_config, "/p.json");
  EXPECT_EQ(call.config_name, "x.json");
  EXPECT_THAT(call.runtime_args, ElementsAre("create", "--config=x.json", "c1"));
}

TEST(RuntimeArgv, PassesOnAConfigurationThatLacksItsFile) {
  const RuntimeCall call = parse({"--config"});
  EXPECT_EQ(call.podqos_config, std::nullopt);
  EXPECT_EQ(call.verb, Verb::kOther);
  EXPECT_THAT(call.runtime_args, ElementsAre("--config"));
}

TEST(RuntimeArgv, LeavesNothingToTheRuntimeOfItsOwnOption) {
  EXPECT_THAT(parse({"--config", "/p.json"}).runtime_args, IsEmpty());
}

}  // namespace
}  // namespace podqos::hook
