#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/configure_fixture.h"

// --set-as-default and --config of `podqosctl configure`.
namespace podqos::ctl {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kToml = "/etc/containerd/config.toml";
const std::string kCrioFile = "/etc/crio/crio.conf.d/50-podqos.conf";
const std::string kPodmanFile = "/etc/containers/containers.conf.d/50-podqos.conf";
const std::string kDaemon = "/etc/docker/daemon.json";

/// The string at a path of a TOML text.
std::string value_at(const std::string& text, const std::string& path) {
  const auto document = TomlDocument::parse(text, "text");
  EXPECT_TRUE(document) << document.error().message;
  return document ? document->at(path).text() : "";
}

TEST(SetAsDefault, IsWrittenForEachEngineAndTakenBack) {
  auto files = there_and_back(Tree{}, "containerd 2.1 default");
  EXPECT_EQ(value_at(files[kToml],
                     "plugins/io.containerd.cri.v1.runtime/containerd/default_runtime_name"),
            "podqos");
  files = there_and_back(Tree{{kToml, project_file("tests/data/engines/containerd-debian.toml")}},
                         "containerd 1.7 default");
  EXPECT_EQ(
      value_at(files[kToml], "plugins/io.containerd.grpc.v1.cri/containerd/default_runtime_name"),
      "podqos");
  files = there_and_back(
      Tree{{"/etc/crio/crio.conf.d/10-crio.conf", "[crio.runtime]\ndefault_runtime = \"crun\"\n"}},
      "crio 1.30 default");
  EXPECT_EQ(value_at(files[kCrioFile], "crio/runtime/default_runtime"), "podqos");
  files =
      there_and_back(Tree{{"/etc/containers/containers.conf", "[engine]\nruntime = \"crun\"\n"}},
                     "podman 5.4 default");
  EXPECT_EQ(value_at(files[kPodmanFile], "engine/runtime"), "podqos");
  EXPECT_EQ(there_and_back(Tree{}, "docker 28.5 default")[kDaemon],
            "{\n  \"runtimes\": {\n    \"podqos\": {\n      \"path\": "
            "\"/usr/bin/podqos-runtime\"\n    }\n  },\n  \"default-runtime\": \"podqos\"\n}\n");
}

TEST(SetAsDefault, StaysWhenPodqosIsRegisteredAgain) {
  for (const auto& [engine, version] : {std::pair{"containerd", " 2.1"},
                                        {"crio", " 1.30"},
                                        {"podman", " 5.4"},
                                        {"docker", " 28"}}) {
    SCOPED_TRACE(engine);
    const Tree tree;
    Tree::apply(tree.plan(engine + std::string{version} + " default"));
    EXPECT_THAT(tree.plan(engine + std::string{version}).changes, IsEmpty());
  }
}

TEST(SetAsDefault, IsAddedToARegistration) {
  for (const auto* run : {"containerd 2.1", "crio 1.30", "podman 5.4", "docker 28.5"}) {
    SCOPED_TRACE(run);
    const Tree tree;
    Tree::apply(tree.plan(run));
    const auto planned = tree.plan(run + std::string{" default"});
    ASSERT_EQ(planned.changes.size(), 1U) << planned.error;
    EXPECT_THAT(planned.changes.front().what, StartsWith("default "));
  }
}

TEST(SetAsDefault, NeedsNoMoreThanALineBesideThePackagesLinkOfPodman) {
  const Tree tree{{"/usr/share/podqos/containers.conf.d/zz-podqos.conf",
                   project_file("packaging/containers.conf.d/zz-podqos.conf")}};
  tree.link("/etc/containers/containers.conf.d/zz-podqos.conf",
            "/usr/share/podqos/containers.conf.d/zz-podqos.conf");
  Tree::apply(tree.plan("podman 5.4 default"));
  EXPECT_EQ(toml_values(tree.text(kPodmanFile)),
            nlohmann::json::parse(R"({"engine": {"runtime": "podqos"}})"));
  EXPECT_THAT(tree.plan("podman 5.4 default").changes, IsEmpty());
}

TEST(SetAsDefault, LeavesLinesOfOthersThatCountMore) {
  const std::string by_hand = "; write default_runtime_name = \"podqos\" there by hand";
  const Tree dump{{kToml, project_file("tests/data/engines/containerd-1.7-default.toml")}};
  EXPECT_EQ(dump.plan("containerd 1.7 default").error,
            kToml + ":86: this line counts more than one of podqosctl's" + by_hand);
  const Tree late{
      {"/etc/crio/crio.conf.d/99-mine.conf", "[crio.runtime]\ndefault_runtime = \"runc\"\n"}};
  EXPECT_THAT(late.plan("crio 1.30 default").error,
              StartsWith("/etc/crio/crio.conf.d/99-mine.conf:2: this line counts more"));
  // The wrapper would start runc in its place.
  const Tree nvidia{{kToml,
                     "version = 3\nimports = [\"conf.d/*.toml\"]\n[plugins.'io.containerd.cri.v1."
                     "runtime'.containerd]\ndefault_runtime_name = \"nvidia\"\n"},
                    {kDaemon, "{\n\"default-runtime\": \"nvidia\"}\n"}};
  EXPECT_THAT(nvidia.plan("containerd 2.1 default").error,
              StartsWith(kToml + ":4: the default runtime is \"nvidia\", which podqos-runtime"));
  EXPECT_THAT(nvidia.plan("docker 28.5 default").error,
              StartsWith(kDaemon + ":2: the default runtime is \"nvidia\", which podqos-runtime"));
}

/// A handler of containerd's, in a configuration of version 2.
std::string handler(const std::string& name, const std::string& lines) {
  return "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes." + name + "]\n" + lines + "\n";
}

TEST(SetAsDefault, GoesByTheProgramOfTheDefaultRuntime) {
  const std::string v2 = "version = 2\n";
  const std::string named = v2 +
                            "imports = ['conf.d/*.toml']\n[plugins.'io.containerd.grpc.v1.cri'."
                            "containerd]\ndefault_runtime_name = 'own'\n";
  const std::string nvidia = "options.BinaryName = '/usr/bin/nvidia-container-runtime'";
  const std::string crio = "[crio.runtime.runtimes.crun]\nruntime_path = '/opt/";
  const std::string podman = "[engine]\nruntime = '";
  const std::string docker = R"({"default-runtime": "own", "runtimes": {"own": {"path": "/opt/)";
  const std::string engines = "/etc/crio/crio.conf";
  const std::string containers = "/etc/containers/containers.conf";
  const std::string other = ", which podqos-runtime calls only if";
  for (const auto& [file, text, run, says] :
       {std::tuple{
            kToml, v2 + handler("runc", nvidia), "containerd 1.7",
            ":2: the default runtime is \"runc\" (/usr/bin/nvidia-container-runtime)" + other},
        {kToml, named + handler("own", nvidia), "containerd 2.1",
         ":4: the default runtime is \"own\" (/usr/bin/nvidia-container-runtime)" + other},
        {kToml, named + handler("own", "runtime_type = 'io.containerd.runsc.v1'"), "containerd 2.1",
         ":4: the default runtime is \"own\" (io.containerd.runsc.v1)" + other},
        {kToml, named + handler("own", "runtime_type = 'io.containerd.runc.v2'"), "containerd 2.1",
         ""},
        {kToml, named + handler("own", "options.BinaryName = '/opt/crun'"), "containerd 2.1", ""},
        {engines, crio + "nvidia-container-runtime'\n", "crio 1.31",
         ":1: the default runtime is \"crun\" (/opt/nvidia-container-runtime)" + other},
        {engines, crio + "bin/crun'\n", "crio 1.31", ""},
        {containers, podman + "crun'\nruntimes.crun = ['/opt/nvidia-container-runtime']\n",
         "podman 5.4",
         ":2: the default runtime is \"crun\" (/opt/nvidia-container-runtime)" + other},
        {containers, podman + "/opt/bin/crun'\n", "podman 5.4", ""},
        {kDaemon, docker + "nvidia-container-runtime\"}}}", "docker 28.5",
         ":1: the default runtime is \"own\" (/opt/nvidia-container-runtime)" + other},
        {kDaemon, docker + "runc\"}}}", "docker 28.5", ""}}) {
    const std::string refused = says.empty() ? "" : file + says;
    const std::string error = Tree{{file, text}}.plan(run + std::string{" default"}).error;
    EXPECT_EQ(error.substr(0, refused.empty() ? error.size() : refused.size()), refused) << text;
  }
}

TEST(SetAsDefault, SaysWhichLineGoesIntoATableThatIsThere) {
  const Tree tree{{kToml,
                   "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = "
                   "'native'\n"}};
  EXPECT_EQ(tree.plan("containerd 1.7 default").error,
            kToml +
                ":2: the table [plugins.\"io.containerd.grpc.v1.cri\".containerd] is there "
                "already; write default_runtime_name = \"podqos\" into "
                "[plugins.\"io.containerd.grpc.v1.cri\".containerd] by hand");
  tree.put(kToml, tree.text(kToml) + "default_runtime_name = \"podqos\"\n");
  EXPECT_EQ(tree.plan("containerd 1.7 default").error, "");
}

TEST(SetAsDefault, IsRefusedWhileCrioHasContainersOfItsDefault) {
  const std::string ours = R"({"annotations": {"io.kubernetes.cri-o.ContainerType": "container"}})";
  const std::string harm =
      "containers of CRI-O's default runtime are in /run/own (2): once restarted, CRI-O would look "
      "for them in /run/podqos-runc and take them for ended";
  const Tree tree{{"/etc/crio/crio.conf.d/10-crio.conf",
                   "[crio.runtime]\ndefault_runtime = \"crun\"\n[crio.runtime.runtimes.crun]\n"
                   "runtime_root = \"/run/own\"\n"},
                  {"/run/own/podmans/config.json", "{}"},
                  {"/run/crun/other/config.json", ours}};
  EXPECT_EQ(tree.plan("crio 1.30 default").error, "");
  tree.put("/run/own/crun/config.json", ours);
  // runc keeps annotations among the labels.
  tree.put("/run/own/runc/state.json", R"({"labels": ["io.kubernetes.cri-o.SandboxID=1"]})");
  EXPECT_THAT(tree.plan("crio 1.30 default").error, StartsWith(harm));
  EXPECT_EQ(tree.plan("crio 1.30").error, "");
  Tree::apply(tree.plan("crio 1.30 default force"));
  EXPECT_EQ(tree.plan("crio 1.30 default").error, "");
  // No file says where they are.
  EXPECT_THAT((Tree{{"/run/runc/1/state.json", ours}}).plan("crio 1.30 default").error,
              HasSubstr("default runtime are in /run/runc (1): "));
}

TEST(SetAsDefault, IsNoMatterOfHooksAndPlugins) {
  EXPECT_EQ(Tree{}.plan("containerd 2.1 nri default").error,
            "--set-as-default is for --method wrapper: with nri podqos sees all containers without "
            "it");
}

TEST(ConfigOption, LeadsToTheEnginesFile) {
  const std::string file = "/var/snap/docker/current/config/daemon.json";
  const auto files = there_and_back(Tree{{file, "{\"debug\": true}\n"}}, "docker 28.5 " + file);
  EXPECT_THAT(files.at(file), HasSubstr("\"runtimes\":{\"podqos\""));
  EXPECT_FALSE(files.contains(kDaemon));
}

/// K3s writes config.toml anew when it starts, and leaves the directory that it imports.
TEST(ConfigOption, UsesTheDropInsOfK3s) {
  const std::string directory = "/var/lib/rancher/k3s/agent/etc/containerd/";
  const std::string text =
      "version = 3\nimports = [\"" + directory + "config-v3.toml.d/*.toml\"]\n";
  const auto files = there_and_back(Tree{{directory + "config.toml", text}},
                                    "containerd 2.1 " + directory + "config.toml");
  EXPECT_EQ(files.at(directory + "config.toml"), text);
  EXPECT_THAT(files.at(directory + "config-v3.toml.d/50-podqos.toml"),
              HasSubstr("\nversion = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd."));
}

TEST(ConfigOption, IsTheBaseOfRelativeImports) {
  const auto files =
      there_and_back(Tree{{"/opt/config.toml", "version = 3\nimports = [\"own.d/*.toml\"]\n"}},
                     "containerd 2.1 /opt/config.toml");
  EXPECT_TRUE(files.contains("/opt/own.d/50-podqos.toml"));
}

TEST(ConfigOption, IsRefusedForPodman) {
  EXPECT_EQ(Tree{}.plan("podman 5.4 /opt/containers.conf").error,
            "Podman has no option for another configuration file: leave --config out");
}

TEST(ConfigOption, HasTheEngineCheckThatFileAndLeavesItsService) {
  std::vector<std::string> asked;
  struct Setup setup{.engine = &engines()[3],
                     .version = Version{.major = 28, .minor = 5},
                     .program = "/opt/dockerd",
                     .restart = Restart::kHarmless,
                     .config = "/opt/daemon.json",
                     .changes = {FileChange{.path = "/opt/daemon.json"}}};
  EXPECT_TRUE(activate(setup, [&](const auto& argv) -> Result<std::string> {
    for (const std::string& word : argv)
      asked.push_back(word);
    return "";
  }));
  EXPECT_THAT(asked, testing::ElementsAre("/opt/dockerd", "--config-file", "/opt/daemon.json",
                                          "--validate"));
  EXPECT_THAT(format_text(setup, ColourMode::kPlain).value_or(""),
              HasSubstr("next: restart the service whose Docker reads /opt/daemon.json\n"));
}

}  // namespace
}  // namespace podqos::ctl
