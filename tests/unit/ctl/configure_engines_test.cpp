#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ctl/configure_fixture.h"

namespace podqos::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

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
  auto files = there_and_back(EngineId::kCrio, Method::kWrapper, packaged);
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
    auto made = there_and_back(EngineId::kCrio, Method::kWrapper, packaged);
    const auto values = toml_values(made[kCrioDropIn])["crio"]["runtime"]["runtimes"]["podqos"];
    EXPECT_EQ(values.value("monitor_path", ""), path) << more;
    EXPECT_FALSE(values.contains("crun")) << more;
  }
}

TEST(PlanCrio, LeavesARowThatIsThereByHand) {
  const Tree tree = {{kCrioDropIn, project_file("examples/cri-o/50-podqos.conf")}};
  const auto planned = tree.plan(EngineId::kCrio, Method::kWrapper, std::nullopt);
  EXPECT_THAT(planned.changes, IsEmpty());
  EXPECT_THAT(planned.notes, ElementsAre(HasSubstr(kCrioDropIn)));
  EXPECT_THAT(tree.plan_removal(EngineId::kCrio).changes, IsEmpty());
}

TEST(PlanCrio, NeedsNoChangeWhereNriIsOn) {
  const Tree named = {{kCrioConfig, "[crio.nri]\nenable_nri = true\n"}};
  const auto on = named.plan(EngineId::kCrio, Method::kNri, Version{1, 27});
  EXPECT_THAT(on.notes, ElementsAre(HasSubstr("NRI is on in this CRI-O")));
  EXPECT_THAT(on.registered_in, ElementsAre(kCrioConfig));
  const auto by_default = Tree{}.plan(EngineId::kCrio, Method::kNri, Version{1, 30});
  EXPECT_THAT(by_default.notes, ElementsAre(HasSubstr("NRI is on in this CRI-O")));
  EXPECT_THAT(by_default.registered_in, IsEmpty());
  there_and_back(EngineId::kCrio, Method::kNri, {}, Version{1, 29});
}

TEST(PlanCrio, LeavesHooksToThePackage) {
  EXPECT_THAT(Tree{}.plan(EngineId::kCrio, Method::kHooks, std::nullopt).error,
              HasSubstr("is missing: install the package podqos again"));
  const Tree tree = {{"/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}"}};
  EXPECT_THAT(tree.plan(EngineId::kCrio, Method::kHooks, std::nullopt).notes,
              ElementsAre(HasSubstr("registered already by the package")));
}

TEST(PlanCrio, UndoTellsWhatCriOCannotStopAfterwards) {
  const Tree tree;
  const auto harm = [&] { return tree.plan_removal(EngineId::kCrio).restart_harm; };
  Tree::apply(tree.plan(EngineId::kCrio, Method::kWrapper, std::nullopt));
  EXPECT_EQ(harm(), "");
  tree.put("/run/podqos-runc/0123abcd", "");
  EXPECT_THAT(harm(),
              AllOf(StartsWith("1 containers of the runtime"), HasSubstr("remove their pods")));
  // The file is gone, and CRI-O may not have been restarted since.
  Tree::apply(tree.plan_removal(EngineId::kCrio));
  EXPECT_THAT(tree.plan_removal(EngineId::kCrio).changes, IsEmpty());
  EXPECT_THAT(harm(), StartsWith("1 containers of the runtime"));
  // With a row that somebody else wrote, it can.
  tree.put(kCrioConfig,
           "[crio.runtime.runtimes.podqos]\nruntime_path = \"/usr/bin/podqos-runtime\"\n");
  EXPECT_EQ(harm(), "");
}

// Podman.

const std::string kPodmanDropIn = "/etc/containers/containers.conf.d/50-podqos.conf";
const std::string kPodmanLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
const std::string kPodmanShipped = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";

const std::pair<std::string, std::string> kPackage = {
    kPodmanShipped, project_file("packaging/containers.conf.d/zz-podqos.conf")};

Tree::Planned plan_hooks(const Tree& tree, Version version) {
  return tree.plan(EngineId::kPodman, Method::kHooks, version);
}

TEST(PlanPodman, WritesADropInBefore48) {
  auto hooks = there_and_back(EngineId::kPodman, Method::kHooks, Tree{kPackage}, Version{4, 3});
  EXPECT_EQ(toml_values(hooks[kPodmanDropIn]), nlohmann::json::parse(R"({"engine": {
      "hooks_dir": ["/usr/share/containers/oci/hooks.d", "/usr/share/podqos/podman-hooks.d"],
      "runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
  auto wrapper = there_and_back(EngineId::kPodman, Method::kWrapper, {}, Version{4, 3});
  EXPECT_EQ(toml_values(wrapper[kPodmanDropIn]),
            nlohmann::json::parse(
                R"({"engine": {"runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
}

TEST(PlanPodman, MakesThePackagesLinkFrom48On) {
  const Tree tree{kPackage};
  auto files = there_and_back(EngineId::kPodman, Method::kHooks, tree, Version{5, 4});
  EXPECT_EQ(files[kPodmanLink], "-> " + kPodmanShipped);
  EXPECT_THAT(plan_hooks({}, {5, 4}).error, HasSubstr("install the package"));
  Tree::apply(plan_hooks(tree, {5, 4}));
  EXPECT_THAT(plan_hooks(tree, {4, 3}).error,
              StartsWith(kPodmanLink + ":1: Podman before 4.8 refuses"));
}

TEST(PlanPodman, ReplacesTheOldDropInAfterAnUpgrade) {
  const Tree tree{kPackage};
  Tree::apply(plan_hooks(tree, {4, 3}));
  Tree::apply(plan_hooks(tree, {5, 4}));
  EXPECT_EQ(tree.text(kPodmanDropIn), "");
  EXPECT_EQ(tree.text(kPodmanLink), "-> " + kPodmanShipped);
}

TEST(PlanPodman, KeepsTheDirectoriesOfOthers) {
  // oci-seccomp-bpf-hook and nvidia-container-toolkit have theirs in the common one.
  const Tree tree = {
      {"/etc/containers/containers.conf", "[engine]\nhooks_dir = [\"/own\", \"/b\\\\c\"]\n"}};
  const auto planned = plan_hooks(tree, {4, 3});
  EXPECT_EQ(toml_values(planned.changes.at(0).after.text).at("engine").at("hooks_dir"),
            nlohmann::json::parse(R"(["/own", "/b\\c", "/usr/share/podqos/podman-hooks.d"])"));
  tree.put("/etc/containers/containers.conf.d/99-own.conf", "[engine]\nhooks_dir = []\n");
  EXPECT_THAT(plan_hooks(tree, {4, 3}).error,
              AllOf(StartsWith("/etc/containers/containers.conf.d/99-own.conf:2: "),
                    HasSubstr("add \"/usr/share/podqos/podman-hooks.d\"")));
  EXPECT_EQ(plan_hooks({{"/etc/containers/containers.conf", "[engine]\nhooks_dir = [\"/a\", 1]\n"}},
                       {4, 3})
                .error,
            "/etc/containers/containers.conf:2: hooks_dir is not a list of directories");
}

TEST(PlanPodman, ObeysAnEmptyFileInPlaceOfTheLink) {
  const Tree tree{kPackage, {kPodmanLink, ""}};
  EXPECT_THAT(plan_hooks(tree, {5, 4}).error,
              StartsWith(kPodmanLink + ":1: registration disabled by this file"));
  EXPECT_THAT(tree.plan_removal(EngineId::kPodman).changes, IsEmpty());
}

TEST(PlanPodman, LeavesWhatIsThereByHand) {
  const Tree tree = {{kPodmanDropIn, project_file("examples/podman/50-podqos.conf")}};
  for (const Method method : {Method::kHooks, Method::kWrapper}) {
    const auto planned = tree.plan(EngineId::kPodman, method, Version{4, 3});
    EXPECT_EQ(planned.error, "");
    EXPECT_THAT(planned.changes, IsEmpty());
  }
}

TEST(PlanPodman, UndoNamesThePackagesHooks) {
  const Tree tree = {{"/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}"}};
  EXPECT_THAT(tree.plan_removal(EngineId::kPodman).notes,
              ElementsAre(HasSubstr("50-podqos-createruntime.json stays")));
}

// Docker.

const std::string kDaemonJson = "/etc/docker/daemon.json";

std::string registered_with_docker(const std::string& text) {
  return there_and_back(EngineId::kDocker, Method::kWrapper,
                        Tree{{kDaemonJson, text}})[kDaemonJson];
}

TEST(PlanDocker, WritesAFileWhereThereIsNone) {
  const std::string registration =
      "{\n  \"runtimes\": {\n    \"podqos\": {\n      \"path\": \"/usr/bin/podqos-runtime\"\n"
      "    }\n  }\n}\n";
  EXPECT_EQ(there_and_back(EngineId::kDocker, Method::kWrapper, {})[kDaemonJson], registration);
  EXPECT_EQ(registered_with_docker(" \n"), registration);
}

TEST(PlanDocker, KeepsOrderAndIndentation) {
  EXPECT_EQ(registered_with_docker("{\n    \"log-level\": \"info\",\n    \"mtu\": 1500\n}\n"),
            "{\n    \"log-level\": \"info\",\n    \"mtu\": 1500,\n    \"runtimes\": {\n"
            "        \"podqos\": {\n            \"path\": \"/usr/bin/podqos-runtime\"\n"
            "        }\n    }\n}\n");
  EXPECT_EQ(registered_with_docker("{\"a\": 1}"),
            "{\"a\":1,\"runtimes\":{\"podqos\":{\"path\":\"/usr/bin/podqos-runtime\"}}}\n");
  EXPECT_EQ(registered_with_docker("\xef\xbb\xbf{\r\n\t\"a\": 1\r\n}\r\n"),
            "{\n\t\"a\": 1,\n\t\"runtimes\": {\n\t\t\"podqos\": {\n"
            "\t\t\t\"path\": \"/usr/bin/podqos-runtime\"\n\t\t}\n\t}\n}\n");
  EXPECT_THAT(registered_with_docker("{}"), HasSubstr("podqos"));
  EXPECT_THAT(registered_with_docker("{\"runtimes\": {}}"), HasSubstr("podqos"));
}

TEST(PlanDocker, StandsBesideNvidia) {
  const std::string nvidia =
      "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n"
      "            \"path\": \"nvidia-container-runtime\"\n        }\n    }\n}\n";
  const std::string after = registered_with_docker(nvidia);
  EXPECT_EQ(after,
            "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n"
            "            \"path\": \"nvidia-container-runtime\"\n        },\n"
            "        \"podqos\": {\n            \"path\": \"/usr/bin/podqos-runtime\"\n"
            "        }\n    }\n}\n");
}

TEST(PlanDocker, TakesNullForAbsentAsDockerdDoes) {
  EXPECT_EQ(
      nlohmann::json::parse(registered_with_docker("{\"runtimes\": null, \"debug\": true}\n")),
      nlohmann::json::parse(R"({"debug": true,
                "runtimes": {"podqos": {"path": "/usr/bin/podqos-runtime"}}})"));
}

TEST(PlanDocker, UndoKeepsWhatOthersWroteSince) {
  const Tree tree = {{kDaemonJson, "{\n  \"a\": 1\n}\n"}};
  Tree::apply(tree.plan(EngineId::kDocker, Method::kWrapper, std::nullopt));
  tree.put(kDaemonJson,
           "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\"path\": \"/own\"},\n"
           "    \"podqos\": {\"path\": \"/usr/bin/podqos-runtime\"}\n  }\n}\n");
  const auto removal = tree.plan_removal(EngineId::kDocker);
  EXPECT_THAT(removal.notes, ElementsAre(HasSubstr("kept backup ")));
  Tree::apply(removal);
  EXPECT_EQ(tree.text(kDaemonJson),
            "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\n      \"path\": \"/own\"\n    }\n"
            "  }\n}\n");
}

}  // namespace
}  // namespace podqos::ctl
