#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/configure_fixture.h"

namespace podqos::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kConfigToml = "/etc/containerd/config.toml";
const std::string kCri = "[plugins.\"io.containerd.grpc.v1.cri\"";
const std::string kNri = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\n";

struct Refusal {
  const char* name;
  const char* run;   ///< see Tree::plan()
  std::string text;  ///< of the engine's file
  std::string says;  ///< behind the name of the file
};

void expect_refused(const std::string& path, const std::vector<Refusal>& cases) {
  for (const auto& [name, run, text, says] : cases)
    EXPECT_THAT((Tree{{path, text}}).plan(run).error, StartsWith(path + says)) << name;
}

TEST(PlanContainerd, RefusesNamingTheLine) {
  expect_refused(
      kConfigToml,
      {{"NoVersion", "containerd 1.7", "# docker.com's\n\nimports = []\n", ":1: config "},
       {"Version3For1", "containerd 1.7", "version = 3\n", ":1: unsupported config version 3"},
       {"Version9", "containerd 2.1", "\nversion = 9\n", ":2: unsupported config version 9"},
       {"UnknownVersionSaysWhatToAdd", "containerd 2.3", "version = 5\n",
        ":1: unsupported config version 5 (containerd 2.3: 2 to 4); if its tables have the same "
        "names, add these lines by hand:\n[plugins.'io.containerd.cri.v1.runtime'"},
       {"CriOff", "containerd 1.7", "version = 2\ndisabled_plugins = [\"cri\"]\n",
        ":2: \"cri\" is disabled"},
       // containerd.io, Docker's package, comes with this file.
       {"CriOffAsDockerShipsIt", "containerd 1.7",
        "# Copyright 2018-2022 Docker Inc.\n\ndisabled_plugins = [\"cri\"]\n",
        ":3: \"cri\" is disabled, and this containerd starts no pods: remove it from "
        "disabled_plugins, or for Docker run `podqosctl configure docker`"},
       {"DuplicateTables", "containerd 1.7", "version = 2\n" + kCri + "]\na = 1\n" + kCri + "]\n",
        ":4: "},
       {"NoToml", "containerd 1.7", "{\"version\": 2}\n", ":1: "},
       {"NotUtf8", "containerd 1.7", "version = 2\n# \xff\xfe\n", ":2: "},
       {"ZeroBytes", "containerd 1.7", "version = 2\n" + std::string(9, '\0'), ":2: "},
       {"ImportsOfNoList", "containerd 2.1", "version = 2\nimports = 3\n", ":2: imports"},
       {"ImportsOfManyDirectories", "containerd 2.1", "version = 2\nimports = [\"/*/a.toml\"]\n",
        ":2: cannot follow"},
       {"HalfABlock", "containerd 1.7", "version = 2\n# podqos: begin wrapper\n",
        ":2: \"# podqos: begin wrapper\" is not one of a pair; remove"},
       {"EndOfABlock", "containerd undo", "# podqos: end x\r\n",
        ":1: \"# podqos: end x\" is not one of a pair; remove"},
       {"EndOfAnotherBlock", "containerd undo", "# podqos: begin x\n# podqos: end y\n",
        ":2: \"# podqos: end y\" is not one of a pair; remove"},
       {"BlockInABlock", "containerd undo",
        "# podqos: begin x\n# podqos: begin x\n# podqos: end x\n",
        ":2: \"# podqos: begin x\" is not one of a pair; remove"},
       {"AnotherHandler", "containerd 2.1",
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos."
        "options]\nBinaryName = '/opt/podqos'\n",
        ":3: a runtime \"podqos\" is there already, and does not call /usr/bin/podqos-runtime: "
        "correct or remove it by hand"},
       {"Default", "containerd 1.7 undo",
        "version = 2\n" + kCri + ".containerd]\ndefault_runtime_name = \"podqos\"\n",
        ":3: default_runtime_name = \"podqos\" still needs"},
       {"NriWithoutPods", "containerd 2.1 nri",
        "version = 3\ndisabled_plugins = [\"io.containerd.cri.v1.runtime\"]\n",
        ":2: \"io.containerd.cri.v1.runtime\" is disabled, and this containerd starts no pods"},
       {"NriUnset", "containerd 1.7 nri", kNri, ":2: NRI is off"},
       {"NriOff", "containerd 2.1 nri", kNri + "disable = true\n",
        ":3: NRI is off; write \"disable = false\""},
       {"NriWithoutConnections", "containerd 2.1 nri",
        kNri + "disable_connections = true\ndisable = false\n",
        ":3: NRI is off; write \"disable_connections = false\""},
       {"NriOffByDefault", "containerd 1.7 nri",
        project_file("tests/data/engines/containerd-1.7-default.toml"),
        ":191: NRI is off; write \"disable = false\""}});
}

TEST(PlanCrio, RefusesNamingTheLine) {
  expect_refused("/etc/crio/crio.conf",
                 {{"AnotherRow", "crio", "\n[crio.runtime.runtimes.podqos]\n",
                   ":2: a runtime \"podqos\" is there already"},
                  {"NriOff", "crio 1.27 nri", "[crio.nri]\nenable_nri = false\n",
                   ":2: NRI is off; write \"enable_nri = true\""},
                  {"NriOffIn130", "crio 1.30 nri", "[crio.nri]\nenable_nri = false\n",
                   ":2: NRI is off; write \"enable_nri = true\""},
                  {"NriListens", "crio 1.27 nri", "[crio.nri]\nnri_listen = \"/x\"\n",
                   ":2: nri_listen is set"},
                  {"Default", "crio undo", "[crio.runtime]\ndefault_runtime = \"podqos\"\n",
                   ":2: default_runtime = \"podqos\" still needs podqos"}});
}

TEST(PlanDocker, RefusesNamingTheLine) {
  const std::string path = "/etc/docker/daemon.json";
  const std::vector<Refusal> registrations = {
      {"Comment", "docker", "{\n  // mine\n  \"a\": 1\n}\n",
       ": malformed JSON at line 2, column 3: "},
      {"TrailingComma", "docker", "{\n  \"a\": 1,\n}\n", ": malformed JSON at line 3, column 1: "},
      {"NoObject", "docker", "[]\n", ":1: is not an object"},
      {"RuntimesOfNoObject", "docker", "{\n\"runtimes\": 1}\n",
       ":2: \"runtimes\" is not an object"},
      {"RuntimesTwice", "docker", "{\"runtimes\": {},\n\"runtimes\": {}}\n",
       ":2: duplicate key \"runtimes\""},
      {"PodqosTwice", "docker", "{\"runtimes\": {\"podqos\": {},\n\"podqos\": {}}}\n",
       ":2: duplicate key \"podqos\""},
      {"AnotherPodqos", "docker", "{\"runtimes\": {\n\"podqos\": {\"path\": \"/x\"}}}\n",
       ":2: a runtime \"podqos\" is there already"},
      {"Utf16", "docker", "\xff\xfe{", ": malformed JSON at byte 1: "},
      {"TooDeep", "docker", std::string(100'000, '['),
       ": JSON nested deeper than 64 levels at byte 65"}};
  expect_refused(path, registrations);
  for (const Refusal& each : registrations)
    EXPECT_THAT((Tree{{path, each.text}}).plan("docker").error,
                HasSubstr(R"("podqos": {"path": "/usr/bin/podqos-runtime"})"));
  expect_refused(path, {{"WithArguments", "docker undo",
                         "{\"runtimes\": {\"podqos\":\n{\"path\": \"/usr/bin/podqos-runtime\", "
                         "\"runtimeArgs\": []}}}",
                         ":1: the runtime \"podqos\" is not as podqosctl"}});
}

TEST(Plan, SaysWhatToUseInsteadOfAMethodThatIsNotThere) {
  for (const auto& [run, says] :
       {std::pair{"containerd 1.6 nri",
                  "containerd 1.6 has no NRI, which came with 1.7; use --method wrapper"},
        {"crio 1.25 nri", "CRI-O 1.25 has no NRI, which came with 1.26; use --method wrapper"},
        {"docker nri", "Docker has no NRI; use --method wrapper"},
        {"podman nri", "Podman has no NRI; use --method hooks or wrapper"},
        {"docker hooks",
         "Docker reads no directory of hooks, and hooks alone cannot place containers; use "
         "--method wrapper"},
        {"containerd 2.1 hooks",
         "containerd reads no directory of hooks, and hooks alone cannot place containers; use "
         "--method wrapper"}})
    EXPECT_EQ(Tree{}.plan(run).error, says);
}

TEST(PlanContainerd, SaysWhyNoTableCanBeAdded) {
  const Tree tree = {{kConfigToml, "version = 2\n" + kCri + ".containerd]\nruntimes = {}\n"}};
  EXPECT_THAT(tree.plan("containerd 1.7").error,
              AllOf(StartsWith(kConfigToml + ":3: no table can be added to what stands here: "),
                    HasSubstr("inline table"), HasSubstr("; add these lines by hand:\n[plugins.")));
}

TEST(PlanCrio, NamesItsOwnFileWhereNoTableCanBeAdded) {
  const std::string path = "/etc/crio/crio.conf.d/50-podqos.conf";
  const Tree tree = {{"/etc/crio/crio.conf", "[crio.runtime]\n"}};
  Tree::apply(tree.plan("crio"));
  tree.put(path, "\ncrio.runtime.runtimes = {}\n" + tree.text(path));
  EXPECT_THAT(tree.plan("crio").error,
              StartsWith(path + ":2: no table can be added to what stands here: "));
}

TEST(PlanCrio, RefusesAnothersFileOfItsName) {
  const std::string path = "/etc/crio/crio.conf.d/50-podqos.conf";
  for (const char* text : {"[crio.api]\n", ""})
    EXPECT_THAT(
        (Tree{{path, text}}).plan("crio").error,
        StartsWith(path + ":1: is not podqosctl's file, and is left as it is; add these lines "
                          "by hand:\n[crio.runtime.runtimes.podqos]\nruntime_path"));
}

}  // namespace
}  // namespace podqos::ctl
