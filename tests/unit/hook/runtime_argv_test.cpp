#include "hook/runtime_argv.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/units.h"

namespace podqos::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

using Words = std::vector<const char*>;

RuntimeCall parse(const Words& words) {
  return parse_runtime_argv(words);
}

struct Placing {
  Words words;
  const char* id;
  const char* bundle = ".";
};

void expect_placed(const std::vector<Placing>& cases) {
  for (const auto& [words, id, bundle] : cases) {
    SCOPED_TRACE(testing::PrintToString(words));
    const RuntimeCall call = parse(words);
    EXPECT_TRUE(call.places);
    EXPECT_EQ(call.id, id);
    EXPECT_EQ(call.bundle, bundle);
    EXPECT_THAT(call.runtime_args, ElementsAreArray(words));
    EXPECT_EQ(call.podqos_config, std::nullopt);
  }
}

TEST(RuntimeArgv, FindsIdAndBundleForRunc) {
  expect_placed({
      {{"create", "c1"}, "c1"},
      {{"--root", "/run/containerd/runc/k8s.io", "--log", "/b/log.json", "--log-format", "json",
        "--systemd-cgroup", "create", "--bundle", "/b", "--pid-file", "/b/init.pid", "c1"},
       "c1",
       "/b"},
      {{"create", "--bundle=/b", "c1"}, "c1", "/b"},
      {{"create", "-bundle", "/b", "c1"}, "c1", "/b"},
      {{"create", "-bundle=/b", "c1"}, "c1", "/b"},
      {{"create", "-b", "/b", "c1"}, "c1", "/b"},
      {{"create", "-b=/b", "c1"}, "c1", "/b"},
      {{"create", "--bundle=/b=x", "c1"}, "c1", "/b=x"},
      {{"create", "c1", "--bundle", "/b", "--pid-file", "p"}, "c1", "/b"},
      {{"create", "-b", "/a", "--bundle", "/b", "c1"}, "c1", "/b"},
      {{"run", "-d", "--keep", "--no-subreaper", "-b", "/b", "c1"}, "c1", "/b"},
      {{"restore", "--image-path", "/i", "--work-path", "/w", "--manage-cgroups-mode", "soft",
        "--empty-ns", "network", "--lsm-profile", "selinux:x", "--lsm-mount-context", "y",
        "--bundle", "/b", "--detach", "c1"},
       "c1",
       "/b"},
      {{"create", "--bundle", "/b", "create"}, "create", "/b"},
      {{"run", "run"}, "run"},
      {{"--root", "create", "run", "c1"}, "c1"},
      {{"--root=create", "run", "c1"}, "c1"},
      {{"--log", "kill", "create", "c1"}, "c1"},
      {{"--criu", "kill", "--rootless", "auto", "--debug", "create", "c1"}, "c1"},
      {{"create", "-b", "create", "c1"}, "c1", "create"},
      {{"create", "--bundle", "--help", "c1"}, "c1", "--help"},
      {{"create", "-b", "/b", "--", "-c1"}, "-c1", "/b"},
      {{"create", "--", "--help"}, "--help"},
      {{"--new=kill", "--newer", "create", "--x=y", "-z", "c1"}, "c1"},
      {{"create", "--preserve-fds", "2", "c1"}, "c1"},
      {{"create", "--console-socket", "s", "--pidfd-socket", "p", "c1"}, "c1"},
  });
}

TEST(RuntimeArgv, FindsIdAndBundleForCrun) {
  expect_placed({
      {{"--systemd-cgroup", "--root=/run/crun", "--log=/l", "--log-format=json", "create",
        "--bundle", "/b", "--pid-file", "/p", "--console-socket", "/s", "c1"},
       "c1",
       "/b"},
      {{"--cgroup-manager=cgroupfs", "--log-level", "debug", "create", "c1"}, "c1"},
      {{"--cgroup-manager", "kill", "create", "c1"}, "c1"},
      {{"create", "-b/b", "c1"}, "c1", "/b"},
      {{"create", "-b/dir=x", "c1"}, "c1", "/dir=x"},
      {{"create", "-bdir", "c1"}, "c1", "dir"},
      {{"--debug", "--", "create", "-b", "/b", "c1"}, "c1", "/b"},
      {{"--log", "kill", "--root", "create", "run", "c1"}, "c1"},
      {{"create", "--config", "config.json", "c1"}, "c1"},
      {{"run", "-fconfig.json", "c1"}, "c1"},
  });
}

TEST(RuntimeArgv, FindsIdAndBundleForYouki) {
  expect_placed({
      {{"-r", "/run/youki", "-l", "/log", "-s", "create", "c1"}, "c1"},
      {{"create", "-b", "/b", "-p", "/pid", "c1"}, "c1", "/b"},
      {{"create", "c1", "-b/b"}, "c1", "/b"},
      {{"create", "c1", "-c", "/sock"}, "c1"},
      {{"--systemd-log", "create", "c1"}, "c1"},
      {{"--systemd-log", "--log-level", "debug", "--root", "/r", "create", "-b", "/b", "c1"},
       "c1",
       "/b"},
  });
}

TEST(RuntimeArgv, LeavesOtherCallsToTheRuntime) {
  const std::vector<Words> cases = {{},
                                    {"--version"},
                                    {"--help"},
                                    {"features"},
                                    {"--root", "/r", "start", "c1"},
                                    {"start", "create"},
                                    {"kill", "--all", "create", "KILL"},
                                    {"create", "--config", "other.json", "c1"},
                                    {"run", "--config=./config.json", "c1"},
                                    {"run", "-f", "/b/config.json", "c1"},
                                    {"run", "-fother.json", "c1"},
                                    {"exec", "--pid-file", "p", "c1", "create", "c2"},
                                    {"update", "--resources=-", "run"},
                                    {"delete", "--force", "create"},
                                    {"--root", "create", "state", "c1"},
                                    {"--root", "create"},
                                    {"create"},
                                    {"create", "--bundle", "/b"},
                                    {"create", "--bundle"},
                                    {"create", "--help"},
                                    {"create", "c1", "-h"},
                                    {"run", "c1", "-?"},
                                    {"run", "--usage", "c1"},
                                    {"--version", "create", "c1"},
                                    {"-h", "create", "c1"},
                                    {""},
                                    {"Create", "c1"},
                                    {"created", "c1"}};
  for (const Words& words : cases) {
    SCOPED_TRACE(testing::PrintToString(words));
    const RuntimeCall call = parse(words);
    EXPECT_FALSE(call.places);
    EXPECT_THAT(call.runtime_args, ElementsAreArray(words));
  }
}

/// runc update.go; crun src/update.c; go-runc, Runc.Update, for containerd and Docker; Podman,
/// libpod/oci_conmon_common.go UpdateContainer.
TEST(RuntimeArgv, ReadsAnUpdate) {
  const RuntimeCall docker =
      parse({"--root", "/run/docker/runtime-runc/moby", "--log", "/b/log.json", "--log-format",
             "json", "update", "--resources=-", "c1"});
  EXPECT_TRUE(docker.updates);
  EXPECT_FALSE(docker.places);
  EXPECT_EQ(docker.id, "c1");
  EXPECT_EQ(docker.resources, "-");
  EXPECT_EQ(parse({"update", "--resources", "/tmp/r.json", "c1"}).resources, "/tmp/r.json");
  EXPECT_EQ(parse({"update", "-r", "-", "c1"}).resources, "-");
  const RuntimeCall operators =
      parse({"update", "--memory", "512m", "--memory-swap", "-1", "--cpu-share=256",
             "--cpu-quota=-1", "--cpu-period", "50000", "--pids-limit", "9", "c1"});
  EXPECT_EQ(operators.id, "c1");
  EXPECT_EQ(operators.resources, std::nullopt);
  EXPECT_EQ(operators.limits.memory_limit, 512 << 20);
  EXPECT_EQ(operators.limits.cpu_shares, 256);
  EXPECT_EQ(operators.limits.cpu_quota, -1);
  EXPECT_EQ(operators.limits.cpu_period, 50'000);
  for (const Words& words :
       {Words{"update", "--memory", "1"}, Words{"update", "--help", "c1"}, Words{"update"}})
    EXPECT_FALSE(parse(words).updates) << testing::PrintToString(words);
}

TEST(RuntimeArgv, ReadsBytesAsGoUnitsDoes) {
  const auto memory = [](const char* text) {
    return parse({"update", "--memory", text, "c1"}).limits.memory_limit;
  };
  EXPECT_EQ(memory("1048576"), 1 << 20);
  EXPECT_EQ(memory("4k"), 4096);
  EXPECT_EQ(memory("4KiB"), 4096);
  EXPECT_EQ(memory("2g"), 2LL << 30);
  EXPECT_EQ(memory("8388608t"), kInt64Max);
  EXPECT_EQ(memory("-1"), -1);
  for (const char* text : {"0", "", "m", "1x", "1.5g", "99999999999999999999"})
    EXPECT_EQ(memory(text), std::nullopt) << text;
}

TEST(RuntimeArgv, KnowsTheDriver) {
  const std::vector<Words> systemd = {{"--systemd-cgroup", "create", "c1"},
                                      {"-s", "create", "c1"},
                                      {"--systemd-cgroup=1", "create", "c1"},
                                      {"--systemd-cgroup=true", "create", "c1"},
                                      {"--cgroup-manager=systemd", "create", "c1"},
                                      {"--cgroup-manager", "systemd", "create", "c1"}};
  for (const Words& words : systemd)
    EXPECT_TRUE(parse(words).systemd) << testing::PrintToString(words);
  const std::vector<Words> cgroupfs = {{"create", "c1"},
                                       {"--systemd-cgroup=false", "create", "c1"},
                                       {"--systemd-cgroup=0", "create", "c1"},
                                       {"--systemd-cgroup=f", "create", "c1"},
                                       {"--systemd-cgroup=F", "create", "c1"},
                                       {"--systemd-cgroup=False", "create", "c1"},
                                       {"--systemd-cgroup=FALSE", "create", "c1"},
                                       {"--cgroup-manager", "cgroupfs", "create", "c1"},
                                       {"create", "--", "--systemd-cgroup"},
                                       {"--systemd-log", "create", "c1"}};
  for (const Words& words : cgroupfs)
    EXPECT_FALSE(parse(words).systemd) << testing::PrintToString(words);
}

TEST(RuntimeArgv, PlacesNothingWithoutCgroups) {
  EXPECT_FALSE(parse({"--cgroup-manager=disabled", "create", "c1"}).places);
  EXPECT_FALSE(parse({"--cgroup-manager", "disabled", "run", "c1"}).places);
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
  EXPECT_THAT(call.runtime_args, ElementsAre("--root", "/r", "create", "c1"));
}

TEST(RuntimeArgv, TakesItsOwnConfigurationWithEquals) {
  const RuntimeCall call = parse({"--config=/p.json", "create", "--config=x.json", "c1"});
  EXPECT_EQ(call.podqos_config, "/p.json");
  EXPECT_THAT(call.runtime_args, ElementsAre("create", "--config=x.json", "c1"));
}

TEST(RuntimeArgv, PassesOnAConfigurationThatLacksItsFile) {
  const RuntimeCall call = parse({"--config"});
  EXPECT_EQ(call.podqos_config, std::nullopt);
  EXPECT_FALSE(call.places);
  EXPECT_THAT(call.runtime_args, ElementsAre("--config"));
}

TEST(RuntimeArgv, LeavesNothingToTheRuntimeOfItsOwnOption) {
  EXPECT_THAT(parse({"--config", "/p.json"}).runtime_args, IsEmpty());
}

TEST(MemberNames, AreExactWhereTheRuntimeIsNotWrittenInGo) {
  for (const char* runtime : {"/usr/bin/crun", "crun-wasm", "/usr/bin/krun", "/opt/youki"})
    EXPECT_EQ(member_names_of(runtime), codec::MemberNames::kExact) << runtime;
  for (const char* runtime : {"/usr/bin/runc", "/opt/crun/runsc"})
    EXPECT_EQ(member_names_of(runtime), codec::MemberNames::kAnyCase) << runtime;
}

}  // namespace
}  // namespace podqos::hook
