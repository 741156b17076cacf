#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/configure_fixture.h"

namespace podqos::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using enum EngineId;

constexpr std::optional<Method> kRemoval;

struct Refusal {
  const char* name;
  EngineId engine;
  std::optional<Method> method;  ///< nullopt: of the removal
  std::optional<Version> version;
  std::string text;  ///< of the engine's file
  std::string says;  ///< behind the name of the file
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesTheLine) {
  const Refusal& tested = GetParam();
  const std::string path = tested.engine == kContainerd ? "/etc/containerd/config.toml"
                           : tested.engine == kCrio     ? "/etc/crio/crio.conf"
                                                        : "/etc/docker/daemon.json";
  const Tree tree = {{path, tested.text}};
  const auto planned = tested.method ? tree.plan(tested.engine, *tested.method, tested.version)
                                     : tree.plan_removal(tested.engine);
  EXPECT_THAT(planned.error, StartsWith(path + tested.says));
  const bool says_what_to_add = tested.engine == kDocker && tested.method;
  EXPECT_THAT(
      planned.error,
      HasSubstr(says_what_to_add ? R"("podqos": {"path": "/usr/bin/podqos-runtime"})" : ""));
}

const std::string kCriTable = "[plugins.\"io.containerd.grpc.v1.cri\"";
const std::string kNriTable = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\n";
constexpr Method kWrapper = Method::kWrapper;
constexpr Method kNri = Method::kNri;
constexpr Version k17{1, 7};
constexpr Version k21{2, 1};

INSTANTIATE_TEST_SUITE_P(
    Containerd, Refused,
    testing::ValuesIn(std::vector<Refusal>{
        {"NoVersion", kContainerd, kWrapper, k17, "# docker.com's\n\nimports = []\n",
         ":1: config "},
        {"Version3For1", kContainerd, kWrapper, k17, "version = 3\n",
         ":1: unsupported config version 3"},
        {"Version9", kContainerd, kWrapper, k21, "\nversion = 9\n",
         ":2: unsupported config version 9"},
        {"UnknownVersionSaysWhatToAdd", kContainerd, kWrapper, Version{2, 3}, "version = 5\n",
         ":1: unsupported config version 5 (containerd 2.3: 2 to 4); if its tables have the same "
         "names, add these lines by hand:\n[plugins.'io.containerd.cri.v1.runtime'"},
        {"CriOff", kContainerd, kWrapper, k17, "version = 2\ndisabled_plugins = [\"cri\"]\n",
         ":2: \"cri\" is disabled"},
        // containerd.io, Docker's package, comes with this file.
        {"CriOffAsDockerShipsIt", kContainerd, kWrapper, k17,
         "# Copyright 2018-2022 Docker Inc.\n\ndisabled_plugins = [\"cri\"]\n",
         ":3: \"cri\" is disabled, and this containerd starts no pods: remove it from "
         "disabled_plugins, or for Docker run `podqosctl configure docker`"},
        {"DuplicateTables", kContainerd, kWrapper, k17,
         "version = 2\n" + kCriTable + "]\na = 1\n" + kCriTable + "]\n", ":4: "},
        {"NoToml", kContainerd, kWrapper, k17, "{\"version\": 2}\n", ":1: "},
        {"NotUtf8", kContainerd, kWrapper, k17, "version = 2\n# \xff\xfe\n", ":2: "},
        {"ZeroBytes", kContainerd, kWrapper, k17, "version = 2\n" + std::string(9, '\0'), ":2: "},
        {"ImportsOfNoList", kContainerd, kWrapper, k21, "version = 2\nimports = 3\n",
         ":2: imports"},
        {"ImportsOfManyDirectories", kContainerd, kWrapper, k21,
         "version = 2\nimports = [\"/*/a.toml\"]\n", ":2: cannot follow"},
        {"HalfABlock", kContainerd, kWrapper, k17, "version = 2\n# podqos: begin wrapper\n",
         ":2: \"# podqos: begin wrapper\" is not one of a pair"},
        {"AnotherHandler", kContainerd, kWrapper, k21,
         "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos."
         "options]\nBinaryName = '/opt/podqos'\n",
         ":3: a runtime \"podqos\" is there already, and does not call /usr/bin/podqos-runtime: "
         "correct or remove it by hand"},
        {"Default", kContainerd, kRemoval, k17,
         "version = 2\n" + kCriTable + ".containerd]\ndefault_runtime_name = \"podqos\"\n",
         ":3: default_runtime_name = \"podqos\" still needs"},
        {"NriWithoutPods", kContainerd, kNri, k21,
         "version = 3\ndisabled_plugins = [\"io.containerd.cri.v1.runtime\"]\n",
         ":2: \"io.containerd.cri.v1.runtime\" is disabled, and this containerd starts no pods"},
        {"NriUnset", kContainerd, kNri, k17, kNriTable, ":2: NRI is off"},
        {"NriOff", kContainerd, kNri, k21, kNriTable + "disable = true\n",
         ":3: NRI is off; write \"disable = false\""},
        {"NriWithoutConnections", kContainerd, kNri, k21,
         kNriTable + "disable_connections = true\ndisable = false\n",
         ":3: NRI is off; write \"disable_connections = false\""},
        {"NriOffByDefault", kContainerd, kNri, k17,
         project_file("tests/data/engines/containerd-1.7-default.toml"),
         ":191: NRI is off; write \"disable = false\""},
    }),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Crio, Refused,
    testing::ValuesIn(std::vector<Refusal>{
        {"AnotherRow",
         kCrio,
         kWrapper,
         {},
         "\n[crio.runtime.runtimes.podqos]\n",
         ":2: a runtime \"podqos\" is there already"},
        {"NriOff", kCrio, kNri, Version{1, 27}, "[crio.nri]\nenable_nri = false\n",
         ":2: NRI is off; write \"enable_nri = true\""},
        {"NriOffIn130", kCrio, kNri, Version{1, 30}, "[crio.nri]\nenable_nri = false\n",
         ":2: NRI is off; write \"enable_nri = true\""},
        {"NriListens", kCrio, kNri, Version{1, 27}, "[crio.nri]\nnri_listen = \"/x\"\n",
         ":2: nri_listen is set"},
        {"Default",
         kCrio,
         kRemoval,
         {},
         "[crio.runtime]\ndefault_runtime = \"podqos\"\n",
         ":2: default_runtime = \"podqos\" still needs podqos"},
    }),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Docker, Refused,
    testing::ValuesIn(std::vector<Refusal>{
        {"Comment",
         kDocker,
         kWrapper,
         {},
         "{\n  // mine\n  \"a\": 1\n}\n",
         ": malformed JSON at line 2, column 3: "},
        {"TrailingComma",
         kDocker,
         kWrapper,
         {},
         "{\n  \"a\": 1,\n}\n",
         ": malformed JSON at line 3, column 1: "},
        {"NoObject", kDocker, kWrapper, {}, "[]\n", ":1: is not an object"},
        {"RuntimesOfNoObject",
         kDocker,
         kWrapper,
         {},
         "{\n\"runtimes\": 1}\n",
         ":2: \"runtimes\" is not an object"},
        {"RuntimesTwice",
         kDocker,
         kWrapper,
         {},
         "{\"runtimes\": {},\n\"runtimes\": {}}\n",
         ":2: duplicate key \"runtimes\""},
        {"PodqosTwice",
         kDocker,
         kWrapper,
         {},
         "{\"runtimes\": {\"podqos\": {},\n\"podqos\": {}}}\n",
         ":2: duplicate key \"podqos\""},
        {"AnotherPodqos",
         kDocker,
         kWrapper,
         {},
         "{\"runtimes\": {\n\"podqos\": {\"path\": \"/x\"}}}\n",
         ":2: a runtime \"podqos\" is there already"},
        {"Utf16", kDocker, kWrapper, {}, "\xff\xfe{", ": malformed JSON at byte 1: "},
        {"TooDeep",
         kDocker,
         kWrapper,
         {},
         std::string(100'000, '['),
         ": JSON nested deeper than 64 levels at byte 65"},
        {"Default",
         kDocker,
         kRemoval,
         {},
         "{\"runtimes\": {\"podqos\": {\"path\": \"/usr/bin/podqos-runtime\"}},\n"
         "\"default-runtime\": \"podqos\"}",
         ":2: default-runtime = \"podqos\" still needs podqos"},
        {"WithArguments",
         kDocker,
         kRemoval,
         {},
         "{\"runtimes\": {\"podqos\":\n{\"path\": \"/usr/bin/podqos-runtime\", "
         "\"runtimeArgs\": []}}}",
         ":1: the runtime \"podqos\" is not as podqosctl"},
    }),
    [](const auto& tested) { return tested.param.name; });

struct MethodCase {
  const char* name;
  EngineId engine;
  Method method;
  std::optional<Version> version;
  const char* says;
};

class RefusedMethod : public testing::TestWithParam<MethodCase> {};

TEST_P(RefusedMethod, SaysWhatToUseInstead) {
  const MethodCase& tested = GetParam();
  EXPECT_EQ(Tree{}.plan(tested.engine, tested.method, tested.version).error, tested.says);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedMethod,
    testing::ValuesIn(std::vector<MethodCase>{
        {"Containerd16", kContainerd, kNri, Version{1, 6},
         "containerd 1.6 has no NRI, which came with 1.7; use --method wrapper"},
        {"Crio125", kCrio, kNri, Version{1, 25},
         "CRI-O 1.25 has no NRI, which came with 1.26; use --method wrapper"},
        {"Docker", kDocker, kNri, {}, "Docker has no NRI; use --method wrapper"},
        {"Podman", kPodman, kNri, {}, "Podman has no NRI; use --method hooks or wrapper"},
        {"DockerHooks",
         kDocker,
         Method::kHooks,
         {},
         "Docker reads no directory of hooks, and hooks alone cannot place containers; use "
         "--method wrapper"},
        {"ContainerdHooks", kContainerd, Method::kHooks, k21,
         "containerd reads no directory of hooks, and hooks alone cannot place containers; use "
         "--method wrapper"},
    }),
    [](const auto& tested) { return tested.param.name; });

TEST(PlanContainerd, SaysWhyNoTableCanBeAdded) {
  const std::string path = "/etc/containerd/config.toml";
  EXPECT_THAT((Tree{{path, "version = 2\n" + kCriTable + ".containerd]\nruntimes = {}\n"}})
                  .plan(kContainerd, kWrapper, k17)
                  .error,
              AllOf(StartsWith(path + ":3: no table can be added to what stands here: "),
                    HasSubstr("inline table"), HasSubstr("; add these lines by hand:\n[plugins.")));
}

TEST(PlanCrio, RefusesAnothersFileOfItsName) {
  const std::string path = "/etc/crio/crio.conf.d/50-podqos.conf";
  const Tree tree = {{path, "[crio.api]\n"}};
  EXPECT_THAT(
      tree.plan(kCrio, kWrapper, {}).error,
      StartsWith(path + ":1: is not podqosctl's file, and is left as it is; add these lines "
                        "by hand:\n[crio.runtime.runtimes.podqos]\nruntime_path"));
}

}  // namespace
}  // namespace podqos::ctl
