#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/configure_fixture.h"

namespace podqos::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// containerd.

const std::string kContainerdToml = "/etc/containerd/config.toml";
const std::string kRuntimes2 = "plugins/io.containerd.grpc.v1.cri/containerd/runtimes";
const std::string kRuntimes3 = "plugins/io.containerd.cri.v1.runtime/containerd/runtimes";
const std::string kCriTable2 = "[plugins.\"io.containerd.grpc.v1.cri\"";

std::string stock_file(const std::string& name) {
  return project_file("tests/data/engines/" + name);
}

/// The stock files of Debian 12, 13 and testing, and what `containerd config default` prints there.
TEST(PlanContainerd, AddsAHandlerToStockFilesAndUndoRestoresEachByte) {
  for (const auto& [file, run, runtimes] :
       {std::tuple{"containerd-debian.toml", "containerd 1.6", kRuntimes2},
        {"containerd-debian.toml", "containerd 1.7", kRuntimes2},
        {"containerd-debian.toml", "containerd 2.1", kRuntimes2},
        {"containerd-1.6-default.toml", "containerd 1.6", kRuntimes2},
        {"containerd-1.7-default.toml", "containerd 1.7", kRuntimes2},
        {"containerd-1.7-default.toml", "containerd 2.1", kRuntimes2},
        {"containerd-2.1-default.toml", "containerd 2.1", kRuntimes3}}) {
    SCOPED_TRACE(std::string{file} + " of " + run);
    const std::string stock = stock_file(file);
    auto files = there_and_back(Tree{{{kContainerdToml, stock}}}, run);
    EXPECT_THAT(files[kContainerdToml], StartsWith(stock));
    EXPECT_EQ(files[kContainerdToml + ".podqos-backup"], stock);
    const auto document = TomlDocument::parse(files[kContainerdToml], "after");
    ASSERT_TRUE(document);
    EXPECT_EQ(document->at(runtimes + "/podqos/options/BinaryName").text(),
              "/usr/bin/podqos-runtime");
    // No file says anything about the driver: podqos's handler has that of the default one.
    EXPECT_EQ(document->at(runtimes + "/podqos/options/SystemdCgroup").flag(), false);
    // As soon as one handler is named, 1.x knows none but those that are.
    EXPECT_EQ(static_cast<bool>(document->at(runtimes + "/runc")),
              runtimes == kRuntimes2 || stock.contains("default_runtime_name"));
  }
}

TEST(PlanContainerd, WritesAFileWhereThereIsNone) {
  const Tree tree;
  EXPECT_FALSE(tree.plan("containerd 2.1").changes.at(0).backup);
  auto files = there_and_back(tree, "containerd 2.1");
  EXPECT_THAT(files[kContainerdToml], StartsWith("version = 3\n# podqos: begin wrapper"));
}

TEST(PlanContainerd, UsesADropInWhereContainerdMergesIt) {
  const Tree tree{{kContainerdToml, "version = 3\nimports = ['conf.d/*.toml']\n"}};
  auto files = there_and_back(tree, "containerd 2.1");
  EXPECT_EQ(files[kContainerdToml], tree.text(kContainerdToml));
  EXPECT_EQ(toml_values(files["/etc/containerd/conf.d/50-podqos.toml"]).at("version"), 3);
}

TEST(PlanContainerd, UsesNoDropInForCriBefore2) {
  // There it would be the whole configuration of CRI (containerd #5837).
  const Tree tree{
      {kContainerdToml, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n"}};
  const auto planned = tree.plan("containerd 1.7");
  ASSERT_EQ(planned.changes.size(), 1U);
  EXPECT_EQ(planned.changes.front().path, kContainerdToml);
}

/// containerd 1.x would read CRI's table of the backup in place of the one with the handler.
TEST(PlanContainerd, LeavesNoBackupThatAnImportNames) {
  for (const char* import : {"*", "/etc/containerd/*", "../containerd/config.*"}) {
    const Tree tree{{kContainerdToml, cat("version = 2\nimports = [\"", import, "\"]\n")}};
    auto files = there_and_back(tree, "containerd 1.7");
    EXPECT_THAT(files[kContainerdToml], HasSubstr("# podqos: begin wrapper")) << import;
    EXPECT_FALSE(files.contains(std::string{kContainerdToml} + ".podqos-backup")) << import;
  }
  const Tree tree{{kContainerdToml, "version = 2\nimports = [\"/etc/containerd/*.toml\"]\n"}};
  EXPECT_TRUE(there_and_back(tree, "containerd 1.7")
                  .contains(std::string{kContainerdToml} + ".podqos-backup"));
}

TEST(PlanContainerd, RefusesAnImportThatWouldHideIt) {
  const Tree tree{
      {kContainerdToml, "version = 2\nimports = [\"/etc/containerd/conf.d//*.toml\"]\n"},
      {"/etc/containerd/conf.d/99-nvidia.toml",
       "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
       "default_runtime_name = \"nvidia\"\n"}};
  EXPECT_THAT(tree.plan("containerd 1.7").error,
              AllOf(StartsWith("/etc/containerd/conf.d/99-nvidia.toml:2: "),
                    HasSubstr("BinaryName = \"/usr/bin/podqos-runtime\"")));
  EXPECT_EQ(tree.plan("containerd 2.1").error, "");
}

TEST(PlanContainerd, FollowsTheDriverOfTheDefaultHandler) {
  for (const bool driver : {true, false}) {
    const Tree tree{{kContainerdToml, "version = 2\n" + kCriTable2 +
                                          ".containerd]\ndefault_runtime_name = \"own\"\n" +
                                          kCriTable2 +
                                          ".containerd.runtimes.own.options]\nSystemdCgroup = " +
                                          (driver ? "true\n" : "false\n")}};
    Tree::apply(tree.plan("containerd 1.7"));
    const auto document = TomlDocument::parse(tree.text(kContainerdToml), "after");
    EXPECT_EQ(document->at(kRuntimes2 + "/podqos/options/SystemdCgroup").flag(), driver);
    EXPECT_FALSE(document->at(kRuntimes2 + "/runc"));
  }
}

TEST(PlanContainerd, UndoKeepsWhatOthersWroteSince) {
  const Tree tree{{kContainerdToml, "version = 2\r\n"}};
  Tree::apply(tree.plan("containerd 1.7"));
  const std::string registered = tree.text(kContainerdToml);
  EXPECT_EQ(std::ranges::count(registered, '\n'), std::ranges::count(registered, '\r'));
  tree.put(kContainerdToml, "# mine\r\n" + registered + "[debug]\r\nlevel = \"debug\"\r\n");
  EXPECT_THAT(tree.plan("containerd 1.7").changes, IsEmpty());
  const auto removal = tree.plan("containerd undo");
  EXPECT_THAT(removal.notes,
              ElementsAre(StartsWith("kept backup " + kContainerdToml + ".podqos-backup")));
  Tree::apply(removal);
  EXPECT_EQ(tree.text(kContainerdToml),
            "# mine\r\nversion = 2\r\n[debug]\r\nlevel = \"debug\"\r\n");
}

TEST(PlanContainerd, RestoresALastLineWithoutNewline) {
  auto files = there_and_back(Tree{{kContainerdToml, "\xef\xbb\xbfversion = 2"}}, "containerd 1.7");
  EXPECT_THAT(files[kContainerdToml], StartsWith("\xef\xbb\xbfversion = 2\n# podqos"));
}

TEST(PlanContainerd, Version4HasTheTablesOfVersion3) {
  const Tree tree{{kContainerdToml, "version = 4\n"}};
  Tree::apply(tree.plan("containerd 2.3"));
  EXPECT_THAT(tree.text(kContainerdToml),
              HasSubstr("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos]"));
  // NRI needs no table, whatever the version.
  const Tree later = {{kContainerdToml, "version = 9\n"}};
  const auto nri = later.plan("containerd 2.9 nri");
  EXPECT_EQ(nri.error, "");
  EXPECT_THAT(nri.changes, IsEmpty());
}

TEST(PlanContainerdNri, SwitchesItOnIn17Only) {
  const Tree tree{{kContainerdToml, stock_file("containerd-debian.toml")}};
  const auto before = tree.all();
  const auto on = tree.plan("containerd 2.1 nri");
  EXPECT_EQ(on.error, "");
  EXPECT_THAT(on.changes, IsEmpty());
  // No file decides it: no change of one makes a daemon out of date.
  EXPECT_THAT(on.registered_in, IsEmpty());
  EXPECT_NE(tree.plan("containerd 1.6 nri").error, "");
  Tree::apply(tree.plan("containerd 1.7 nri"));
  const auto values = toml_values(tree.text(kContainerdToml));
  EXPECT_EQ(values.at("plugins").at("io.containerd.nri.v1.nri").at("disable"), false);
  EXPECT_THAT(tree.plan("containerd 1.7 nri").changes, IsEmpty());
  // The wrapper beside it; undo takes both away.
  Tree::apply(tree.plan("containerd 1.7"));
  EXPECT_THAT(tree.text(kContainerdToml),
              AllOf(HasSubstr("# podqos: end nri\n"), EndsWith("# podqos: end wrapper\n")));
  Tree::apply(tree.plan("containerd undo"));
  EXPECT_EQ(tree.all(), before);
}

TEST(PlanContainerdNri, AnImportedTableReplacesTheWholeOneBefore2) {
  const std::string table = "[plugins.\"io.containerd.nri.v1.nri\"]\n";
  const Tree tree{{kContainerdToml,
                   "version = 2\nimports = [\"conf.d/*.toml\"]\n" + table + "disable = false\n"},
                  {"/etc/containerd/conf.d/10.toml", "\n" + table + "plugin_path = \"/x\"\n"}};
  EXPECT_EQ(
      tree.plan("containerd 1.7 nri").error,
      "/etc/containerd/conf.d/10.toml:2: NRI is off; write \"disable = false\" there by hand");
  EXPECT_EQ(tree.plan("containerd 2.1 nri").error, "");
}

// CRI-O.

const std::string kCrioConfig = "/etc/crio/crio.conf";
const std::string kCrioDropIn = "/etc/crio/crio.conf.d/50-podqos.conf";

/// As CRI-O's own packages have it (cri-o/packaging, 10-crio.conf), and more of what a row may say.
constexpr const char* kPackagedCrio = R"([crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
monitor_env = ["PATH=/usr/libexec/crio:/usr/bin", "QUOTED=\"1\""]
allowed_annotations = [
    "io.containers.trace-syscall",
]
privileged_without_host_devices = true
default_annotations = { "run.oci.systemd.force_cgroup_v1" = "/sys/fs/cgroup" }

[crio.runtime.runtimes.runc]
monitor_path = "/usr/libexec/crio/other"
)";

TEST(PlanCrio, TakesOverWhatTheDefaultRuntimesRowSays) {
  // Without monitor_path CRI-O looks for conmon in PATH, and does not start where it is elsewhere.
  const Tree packaged = {{"/etc/crio/crio.conf.d/10-crio.conf", kPackagedCrio}};
  auto files = there_and_back(packaged, "crio");
  nlohmann::json row = toml_values(kPackagedCrio)["crio"]["runtime"]["runtimes"]["crun"];
  row.update({{"runtime_path", "/usr/bin/podqos-runtime"},
              {"runtime_type", "oci"},
              {"runtime_root", "/run/podqos-runc"}});
  EXPECT_EQ(toml_values(files[kCrioDropIn])["crio"]["runtime"]["runtimes"]["podqos"], row);
  // The last file counts, and for a runtime that is no conmon's (Kata) that of runc does.
  for (const auto& [more, path] :
       {std::pair{"[crio.runtime]\ndefault_runtime = \"runc\"\n", "/usr/libexec/crio/other"},
        {"[crio.runtime]\ndefault_runtime = \"\"\n", "/usr/libexec/crio/conmon"},
        {"[crio.runtime.runtimes.crun]\nmonitor_path = \"/own\"\n", "/own"},
        {"[crio.runtime.runtimes.crun]\nruntime_type = \"pod\"\nmonitor_path = \"/rs\"\n",
         "/usr/libexec/crio/other"},
        {"[crio.runtime]\ndefault_runtime = \"kata\"\n[crio.runtime.runtimes.kata]\n"
         "runtime_type = \"vm\"\n",
         "/usr/libexec/crio/conmon"}}) {
    packaged.put("/etc/crio/crio.conf.d/99-own.conf", more);
    auto made = there_and_back(packaged, "crio");
    const auto values = toml_values(made[kCrioDropIn])["crio"]["runtime"]["runtimes"]["podqos"];
    EXPECT_EQ(values.value("monitor_path", ""), path) << more;
    EXPECT_FALSE(values.contains("crun")) << more;
  }
}

TEST(PlanCrio, NeedsNoChangeWhereNriIsOn) {
  const Tree named = {{kCrioConfig, "[crio.nri]\nenable_nri = true\n"}};
  const auto on = named.plan("crio 1.27 nri");
  EXPECT_THAT(on.notes, ElementsAre(HasSubstr("NRI is on in this CRI-O")));
  EXPECT_THAT(on.registered_in, ElementsAre(kCrioConfig));
  const auto by_default = Tree{}.plan("crio 1.30 nri");
  EXPECT_THAT(by_default.notes, ElementsAre(HasSubstr("NRI is on in this CRI-O")));
  EXPECT_THAT(by_default.registered_in, IsEmpty());
  there_and_back(Tree{}, "crio 1.29 nri");
}

TEST(PlanCrio, LeavesHooksToThePackage) {
  EXPECT_THAT(Tree{}.plan("crio hooks").error,
              HasSubstr("is missing: install the package podqos again"));
  const Tree tree = {{"/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}"}};
  EXPECT_THAT(tree.plan("crio hooks").notes,
              ElementsAre(HasSubstr("registered already by the package")));
}

TEST(PlanCrio, UndoTellsWhatCriOCannotStopAfterwards) {
  const Tree tree;
  const auto harm = [&] { return tree.plan("crio undo").notes; };
  Tree::apply(tree.plan("crio"));
  EXPECT_THAT(harm(), IsEmpty());
  tree.put("/run/podqos-runc/0123abcd", "");
  EXPECT_THAT(harm(),
              ElementsAre(AllOf(
                  StartsWith("1 container of the runtime \"podqos\" in /run/podqos-runc: once"),
                  HasSubstr("remove their pods"))));
  // The file is gone, and CRI-O may not have been restarted since.
  Tree::apply(tree.plan("crio undo"));
  EXPECT_THAT(tree.plan("crio undo").changes, IsEmpty());
  EXPECT_THAT(
      harm(),
      ElementsAre(StartsWith("1 container of the runtime \"podqos\" in /run/podqos-runc: once")));
  // With a row that somebody else wrote, it can.
  tree.put(kCrioConfig,
           "[crio.runtime.runtimes.podqos]\nruntime_path = \"/usr/bin/podqos-runtime\"\n");
  EXPECT_THAT(harm(), IsEmpty());
}

// Podman.

const std::string kPodmanDropIn = "/etc/containers/containers.conf.d/50-podqos.conf";
const std::string kPodmanLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
const std::string kPodmanShipped = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";

const std::pair<std::string, std::string> kPackage = {
    kPodmanShipped, project_file("packaging/containers.conf.d/zz-podqos.conf")};

TEST(PlanPodman, WritesADropInBefore48) {
  auto hooks = there_and_back(Tree{kPackage}, "podman 4.3 hooks");
  EXPECT_EQ(toml_values(hooks[kPodmanDropIn]), nlohmann::json::parse(R"({"engine": {
      "hooks_dir": ["/usr/share/containers/oci/hooks.d", "/usr/share/podqos/podman-hooks.d"],
      "runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
  auto wrapper = there_and_back(Tree{}, "podman 4.3");
  EXPECT_EQ(toml_values(wrapper[kPodmanDropIn]),
            nlohmann::json::parse(
                R"({"engine": {"runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
}

TEST(PlanPodman, MakesThePackagesLinkFrom48On) {
  const Tree tree{kPackage};
  auto files = there_and_back(tree, "podman 5.4 hooks");
  EXPECT_EQ(files[kPodmanLink], "-> " + kPodmanShipped);
  EXPECT_THAT(Tree{}.plan("podman 5.4 hooks").error, HasSubstr("install the package"));
  Tree::apply(tree.plan("podman 5.4 hooks"));
  EXPECT_THAT(tree.plan("podman 4.3 hooks").error,
              StartsWith(kPodmanLink + ":1: Podman before 4.8 refuses"));
}

TEST(PlanPodman, ReplacesTheOldDropInAfterAnUpgrade) {
  const Tree tree{kPackage};
  Tree::apply(tree.plan("podman 4.3 hooks"));
  const auto upgrade = tree.plan("podman 5.4 hooks");
  Tree::apply(upgrade);
  auto files = tree.all();
  EXPECT_FALSE(files.contains(kPodmanDropIn));
  EXPECT_EQ(files[kPodmanLink], "-> " + kPodmanShipped);
  EXPECT_THAT(format_text(upgrade, ColourMode::kPlain).value_or(""),
              HasSubstr(kPodmanDropIn + ": podqos's lines removed (file deleted)\n"));
  EXPECT_THAT(format_json(upgrade).value_or(""), HasSubstr("\"action\":\"remove\""));
  // Of what an operator has added since, the rest stays.
  Tree mixed{kPackage};
  Tree::apply(mixed.plan("podman 4.3 hooks"));
  mixed.put(kPodmanDropIn, "[network]\n" + mixed.text(kPodmanDropIn));
  const auto kept = mixed.plan("podman 5.4 hooks");
  Tree::apply(kept);
  EXPECT_EQ(mixed.text(kPodmanDropIn), "[network]\n");
  EXPECT_THAT(format_text(kept, ColourMode::kPlain).value_or(""),
              HasSubstr(kPodmanDropIn + ": podqos's lines removed\n"));
}

TEST(PlanPodman, KeepsTheDirectoriesOfOthers) {
  // oci-seccomp-bpf-hook and nvidia-container-toolkit have theirs in the common one.
  const Tree tree = {
      {"/etc/containers/containers.conf", "[engine]\nhooks_dir = [\"/own\", \"/b\\\\c\"]\n"}};
  const auto planned = tree.plan("podman 4.3 hooks");
  EXPECT_EQ(toml_values(planned.changes.at(0).after.text).at("engine").at("hooks_dir"),
            nlohmann::json::parse(R"(["/own", "/b\\c", "/usr/share/podqos/podman-hooks.d"])"));
  tree.put("/etc/containers/containers.conf.d/99-own.conf", "[engine]\nhooks_dir = []\n");
  EXPECT_THAT(tree.plan("podman 4.3 hooks").error,
              AllOf(StartsWith("/etc/containers/containers.conf.d/99-own.conf:2: "),
                    HasSubstr("add \"/usr/share/podqos/podman-hooks.d\"")));
  EXPECT_EQ((Tree{{"/etc/containers/containers.conf", "[engine]\nhooks_dir = [\"/a\", 1]\n"}})
                .plan("podman 4.3 hooks")
                .error,
            "/etc/containers/containers.conf:2: hooks_dir is not a list of directories");
}

TEST(PlanPodman, ObeysAnEmptyFileInPlaceOfTheLink) {
  const Tree tree{kPackage, {kPodmanLink, ""}};
  EXPECT_THAT(tree.plan("podman 5.4 hooks").error,
              StartsWith(kPodmanLink + ":1: registration disabled by this file"));
  EXPECT_THAT(tree.plan("podman undo").changes, IsEmpty());
}

TEST(PlanPodman, UndoNamesThePackagesHooks) {
  const Tree tree = {{"/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}"}};
  EXPECT_THAT(tree.plan("podman undo").notes,
              ElementsAre(HasSubstr("50-podqos-createruntime.json stays")));
}

TEST(Plan, LeavesWhatIsThereByHand) {
  for (const auto& [run, path, text] :
       {std::tuple{"containerd 1.7", kContainerdToml,
                   stock_file("containerd-debian.toml") +
                       project_file("examples/containerd/config-v2.toml")},
        {"crio", kCrioDropIn, project_file("examples/cri-o/50-podqos.conf")},
        {"podman 4.3 hooks", kPodmanDropIn, project_file("examples/podman/50-podqos.conf")},
        {"podman 4.3", kPodmanDropIn, project_file("examples/podman/50-podqos.conf")}}) {
    SCOPED_TRACE(run);
    const Tree tree = {{path, text}};
    const auto planned = tree.plan(run);
    EXPECT_EQ(planned.error, "");
    EXPECT_THAT(planned.changes, IsEmpty());
    EXPECT_THAT(planned.notes,
                ElementsAre(AllOf(StartsWith(path + ":"), HasSubstr("registered there already"))));
    EXPECT_THAT(planned.registered_in, ElementsAre(path));
    const auto removal =
        tree.plan(std::string{run}.substr(0, std::string{run}.find(' ')) + " undo");
    EXPECT_EQ(removal.error, "");
    EXPECT_THAT(removal.changes, IsEmpty());
  }
}

// Docker.

const std::string kDaemonJson = "/etc/docker/daemon.json";

TEST(PlanDocker, KeepsOrderAndIndentation) {
  const std::string registration =
      "{\n  \"runtimes\": {\n    \"podqos\": {\n      \"path\": \"/usr/bin/podqos-runtime\"\n"
      "    }\n  }\n}\n";
  EXPECT_EQ(there_and_back(Tree{}, "docker")[kDaemonJson], registration);
  for (const auto& [before, after] :
       {std::pair{std::string{" \n"}, registration},
        {"{}", registration},
        {"{}\n", registration},
        {"{\n    \"log-level\": \"info\",\n    \"mtu\": 1500\n}\n",
         "{\n    \"log-level\": \"info\",\n    \"mtu\": 1500,\n    \"runtimes\": {\n"
         "        \"podqos\": {\n            \"path\": \"/usr/bin/podqos-runtime\"\n"
         "        }\n    }\n}\n"},
        {"{\"a\": 1}",
         "{\"a\":1,\"runtimes\":{\"podqos\":{\"path\":\"/usr/bin/podqos-runtime\"}}}\n"},
        {"\xef\xbb\xbf{\r\n\t\"a\": 1\r\n}\r\n",
         "{\n\t\"a\": 1,\n\t\"runtimes\": {\n\t\t\"podqos\": {\n"
         "\t\t\t\"path\": \"/usr/bin/podqos-runtime\"\n\t\t}\n\t}\n}\n"},
        {"{\"runtimes\": {}}",
         "{\"runtimes\":{\"podqos\":{\"path\":\"/usr/bin/podqos-runtime\"}}}\n"},
        // dockerd takes null for absent.
        {"{\"runtimes\": null, \"debug\": true}\n",
         "{\"runtimes\":{\"podqos\":{\"path\":\"/usr/bin/podqos-runtime\"}},\"debug\":true}\n"},
        // Beside Nvidia's.
        {"{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": []\n        }\n    "
         "}\n}\n",
         "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": []\n        },\n"
         "        \"podqos\": {\n            \"path\": \"/usr/bin/podqos-runtime\"\n"
         "        }\n    }\n}\n"}})
    EXPECT_EQ(there_and_back(Tree{{kDaemonJson, before}}, "docker")[kDaemonJson], after) << before;
}

TEST(PlanDocker, UndoKeepsWhatOthersWroteSince) {
  const Tree tree = {{kDaemonJson, "{\n  \"a\": 1\n}\n"}};
  Tree::apply(tree.plan("docker"));
  tree.put(kDaemonJson,
           "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\"path\": \"/own\"},\n"
           "    \"podqos\": {\"path\": \"/usr/bin/podqos-runtime\"}\n  }\n}\n");
  const auto removal = tree.plan("docker undo");
  EXPECT_THAT(removal.notes, ElementsAre(HasSubstr("kept backup ")));
  Tree::apply(removal);
  EXPECT_EQ(tree.text(kDaemonJson),
            "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\n      \"path\": \"/own\"\n    }\n"
            "  }\n}\n");
}

}  // namespace
}  // namespace podqos::ctl
