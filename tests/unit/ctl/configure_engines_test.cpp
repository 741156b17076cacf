#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/configure/plan.h"
#include "ctl/configure/toml.h"
#include "tests/unit/ctl/configure_fixture.h"

namespace podqos::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Result<ConfigurePlan> plan_engine(Engine engine, Method method, const FilesInMemory& files,
                                  std::optional<Version> version = std::nullopt) {
  return plan_registration({.engine = engine, .method = method, .version = version},
                           files.source());
}

/// Registers, sees that twice is once, and that undo restores everything; the registered files.
FilesInMemory there_and_back(Engine engine, Method method, const FilesInMemory& before,
                             std::optional<Version> version = std::nullopt) {
  FilesInMemory files = before;
  const ConfigurePlan plan = must(plan_engine(engine, method, files, version));
  EXPECT_THAT(plan.changes, testing::Not(IsEmpty()));
  files.apply(plan);
  EXPECT_THAT(must(plan_engine(engine, method, files, version)).changes, IsEmpty());
  FilesInMemory undone = files;
  undone.apply(must(plan_removal(engine, undone.source())));
  EXPECT_EQ(undone, before);
  EXPECT_THAT(must(plan_removal(engine, undone.source())).changes, IsEmpty());
  return files;
}

std::string refusal(Engine engine, Method method, const FilesInMemory& files,
                    std::optional<Version> version = std::nullopt) {
  const auto plan = plan_engine(engine, method, files, version);
  return plan ? "no refusal" : plan.error().message;
}

// CRI-O.

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
  const FilesInMemory packaged = {{"/etc/crio/crio.conf.d/10-crio.conf", kPackagedCrio}};
  const auto files = there_and_back(Engine::kCrio, Method::kWrapper, packaged);
  nlohmann::json row = toml_values(kPackagedCrio)["crio"]["runtime"]["runtimes"]["crun"];
  row.update({{"runtime_path", "/usr/bin/podqos-runtime"},
              {"runtime_type", "oci"},
              {"runtime_root", "/run/podqos-runc"}});
  EXPECT_EQ(toml_values(files.at(kCrioDropIn).text)["crio"]["runtime"]["runtimes"]["podqos"], row);
  // The last file counts, and for a runtime that is no conmon's (Kata) that of runc does.
  for (const auto& [more, path] :
       {std::pair{"[crio.runtime]\ndefault_runtime = \"runc\"\n", "/usr/libexec/crio/other"},
        {"[crio.runtime.runtimes.crun]\nmonitor_path = \"/own\"\n", "/own"},
        {"[crio.runtime.runtimes.crun]\nruntime_type = \"pod\"\nmonitor_path = \"/rs\"\n",
         "/usr/libexec/crio/other"},
        {"[crio.runtime]\ndefault_runtime = \"kata\"\n[crio.runtime.runtimes.kata]\n"
         "runtime_type = \"vm\"\n",
         "/usr/libexec/crio/conmon"}}) {
    FilesInMemory both = packaged;
    both.put("/etc/crio/crio.conf.d/99-own.conf", more);
    const auto made = there_and_back(Engine::kCrio, Method::kWrapper, both);
    const auto document = TomlDocument::parse(made.at(kCrioDropIn).text, "text");
    EXPECT_EQ(document->text_at({"crio", "runtime", "runtimes", "podqos", "monitor_path"}), path)
        << more;
  }
}

TEST(PlanCrio, LeavesARowThatIsThereByHand) {
  const FilesInMemory files = {{kCrioDropIn, project_file("examples/cri-o/50-podqos.conf")}};
  const ConfigurePlan plan = must(plan_engine(Engine::kCrio, Method::kWrapper, files));
  EXPECT_THAT(plan.changes, IsEmpty());
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr(kCrioDropIn)));
  EXPECT_THAT(must(plan_removal(Engine::kCrio, files.source())).changes, IsEmpty());
  const FilesInMemory other = {{"/etc/crio/crio.conf", "\n[crio.runtime.runtimes.podqos]\n"}};
  EXPECT_THAT(refusal(Engine::kCrio, Method::kWrapper, other),
              StartsWith("/etc/crio/crio.conf:2: a runtime \"podqos\" is there already"));
  const FilesInMemory foreign = {{kCrioDropIn, "[crio.api]\n"}};
  EXPECT_THAT(refusal(Engine::kCrio, Method::kWrapper, foreign),
              AllOf(HasSubstr("is not podqosctl's file"), HasSubstr("runtime_path")));
}

TEST(PlanCrio, SwitchesNriOnWhereNobodyHasSwitchedItOff) {
  const auto with = [](const std::string& text, Version version) {
    return plan_engine(Engine::kCrio, Method::kNri, {{"/etc/crio/crio.conf", text}}, version);
  };
  EXPECT_THAT(must(with("[crio.nri]\nenable_nri = true\n", {1, 27})).changes, IsEmpty());
  EXPECT_THAT(must(with("", {1, 30})).changes, IsEmpty());
  for (const Version version : {Version{1, 27}, Version{1, 30}})
    EXPECT_THAT(with("[crio.nri]\nenable_nri = false\n", version).error().message,
                StartsWith("/etc/crio/crio.conf:2: NRI is off; write \"enable_nri = true\""));
  EXPECT_THAT(with("[crio.nri]\nnri_listen = \"/x\"\n", {1, 27}).error().message,
              StartsWith("/etc/crio/crio.conf:2: nri_listen is set"));
  EXPECT_FALSE(with("", {1, 25}));
}

TEST(PlanCrio, LeavesHooksToThePackage) {
  EXPECT_EQ(plan_engine(Engine::kCrio, Method::kHooks, {}).error().code, ErrorCode::kNotFound);
  const FilesInMemory files = {
      {"/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}"}};
  EXPECT_THAT(must(plan_engine(Engine::kCrio, Method::kHooks, files)).notes,
              ElementsAre(HasSubstr("registered already by the package")));
}

TEST(PlanCrio, UndoRefusesWhileTheRuntimeIsTheDefault) {
  const FilesInMemory files = {
      {"/etc/crio/crio.conf", "[crio.runtime]\ndefault_runtime = \"podqos\"\n"}};
  EXPECT_THAT(plan_removal(Engine::kCrio, files.source()).error().message,
              StartsWith("/etc/crio/crio.conf:2: default_runtime = \"podqos\" still needs podqos"));
}

// Podman.

const std::string kPodmanDropIn = "/etc/containers/containers.conf.d/50-podqos.conf";
const std::string kPodmanLink = "/etc/containers/containers.conf.d/zz-podqos.conf";
const std::string kPodmanShipped = "/usr/share/podqos/containers.conf.d/zz-podqos.conf";

FilesInMemory with_package() {
  return {{kPodmanShipped, project_file("packaging/containers.conf.d/zz-podqos.conf")}};
}

TEST(PlanPodman, WritesADropInBefore48) {
  const auto hooks = there_and_back(Engine::kPodman, Method::kHooks, with_package(), Version{4, 3});
  EXPECT_EQ(toml_values(hooks.at(kPodmanDropIn).text), nlohmann::json::parse(R"({"engine": {
      "hooks_dir": ["/usr/share/containers/oci/hooks.d", "/usr/share/podqos/podman-hooks.d"],
      "runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
  const auto wrapper = there_and_back(Engine::kPodman, Method::kWrapper, {}, Version{4, 3});
  EXPECT_EQ(toml_values(wrapper.at(kPodmanDropIn).text),
            nlohmann::json::parse(
                R"({"engine": {"runtimes": {"podqos": ["/usr/bin/podqos-runtime"]}}})"));
}

TEST(PlanPodman, MakesThePackagesLinkFrom48On) {
  const auto files = there_and_back(Engine::kPodman, Method::kHooks, with_package(), Version{5, 4});
  EXPECT_EQ(files.at(kPodmanLink), FileState::link(kPodmanShipped));
  EXPECT_THAT(refusal(Engine::kPodman, Method::kHooks, {}, Version{5, 4}),
              HasSubstr("install the package"));
  EXPECT_THAT(refusal(Engine::kPodman, Method::kHooks, files, Version{4, 3}),
              StartsWith(kPodmanLink + ":1: Podman before 4.8 refuses"));
}

TEST(PlanPodman, ReplacesTheOldDropInAfterAnUpgrade) {
  FilesInMemory files = with_package();
  files.apply(must(plan_engine(Engine::kPodman, Method::kHooks, files, Version{4, 3})));
  files.apply(must(plan_engine(Engine::kPodman, Method::kHooks, files, Version{5, 4})));
  EXPECT_EQ(files.at(kPodmanDropIn), FileState{});
  EXPECT_EQ(files.at(kPodmanLink), FileState::link(kPodmanShipped));
}

TEST(PlanPodman, KeepsTheDirectoriesOfOthers) {
  // oci-seccomp-bpf-hook and nvidia-container-toolkit have theirs in the common one.
  FilesInMemory files = {
      {"/etc/containers/containers.conf", "[engine]\nhooks_dir = [\"/own\", \"/b\\\\c\"]\n"}};
  const auto plan = must(plan_engine(Engine::kPodman, Method::kHooks, files, Version{4, 3}));
  EXPECT_EQ(toml_values(plan.changes.at(0).after.text).at("engine").at("hooks_dir"),
            nlohmann::json::parse(R"(["/own", "/b\\c", "/usr/share/podqos/podman-hooks.d"])"));
  files.put("/etc/containers/containers.conf.d/99-own.conf", "[engine]\nhooks_dir = []\n");
  EXPECT_THAT(refusal(Engine::kPodman, Method::kHooks, files, Version{4, 3}),
              AllOf(StartsWith("/etc/containers/containers.conf.d/99-own.conf:2: "),
                    HasSubstr("add \"/usr/share/podqos/podman-hooks.d\"")));
}

TEST(PlanPodman, ObeysAnEmptyFileInPlaceOfTheLink) {
  FilesInMemory files = with_package();
  files.put(kPodmanLink, "");
  EXPECT_THAT(refusal(Engine::kPodman, Method::kHooks, files, Version{5, 4}),
              StartsWith(kPodmanLink + ":1: registration disabled by this file"));
  EXPECT_THAT(must(plan_removal(Engine::kPodman, files.source())).changes, IsEmpty());
}

TEST(PlanPodman, LeavesWhatIsThereByHand) {
  const FilesInMemory files = {{kPodmanDropIn, project_file("examples/podman/50-podqos.conf")}};
  for (const Method method : {Method::kHooks, Method::kWrapper})
    EXPECT_THAT(must(plan_engine(Engine::kPodman, method, files, Version{4, 3})).changes,
                IsEmpty());
}

// Docker.

const std::string kDaemonJson = "/etc/docker/daemon.json";

std::string registered_with_docker(const std::string& text) {
  const auto files = there_and_back(Engine::kDocker, Method::kWrapper, {{kDaemonJson, text}});
  return files.at(kDaemonJson).text;
}

TEST(PlanDocker, WritesAFileWhereThereIsNone) {
  const std::string registration =
      "{\n  \"runtimes\": {\n    \"podqos\": {\n      \"path\": \"/usr/bin/podqos-runtime\"\n"
      "    }\n  }\n}\n";
  const auto files = there_and_back(Engine::kDocker, Method::kWrapper, {});
  EXPECT_EQ(files.at(kDaemonJson).text, registration);
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

TEST(PlanCrio, UndoTellsWhatCriOCannotStopAfterwards) {
  FilesInMemory files;
  files.apply(must(plan_engine(Engine::kCrio, Method::kWrapper, files)));
  EXPECT_EQ(must(plan_removal(Engine::kCrio, files.source())).restart_harm, "");
  files.put("/run/podqos-runc/0123abcd", "");
  EXPECT_THAT(must(plan_removal(Engine::kCrio, files.source())).restart_harm,
              AllOf(StartsWith("1 containers of the runtime"), HasSubstr("remove their pods")));
  // The file is gone, and CRI-O may not have been restarted since.
  files.apply(must(plan_removal(Engine::kCrio, files.source())));
  const ConfigurePlan again = must(plan_removal(Engine::kCrio, files.source()));
  EXPECT_THAT(again.changes, IsEmpty());
  EXPECT_THAT(again.restart_harm, StartsWith("1 containers of the runtime"));
  // With a row that somebody else wrote, it can.
  files.put("/etc/crio/crio.conf",
            "[crio.runtime.runtimes.podqos]\nruntime_path = \"/usr/bin/podqos-runtime\"\n");
  EXPECT_EQ(must(plan_removal(Engine::kCrio, files.source())).restart_harm, "");
}

TEST(PlanPodman, UndoNamesThePackagesHooks) {
  FilesInMemory files;
  files.put("/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json", "{}");
  EXPECT_THAT(must(plan_removal(Engine::kPodman, files.source())).notes,
              ElementsAre(HasSubstr("50-podqos-createruntime.json stays")));
}

TEST(PlanDocker, TakesNullForAbsentAsDockerdDoes) {
  const FilesInMemory files =
      there_and_back(Engine::kDocker, Method::kWrapper,
                     {{"/etc/docker/daemon.json", "{\"runtimes\": null, \"debug\": true}\n"}});
  EXPECT_EQ(nlohmann::json::parse(files.at("/etc/docker/daemon.json").text),
            nlohmann::json::parse(R"({"debug": true,
                "runtimes": {"podqos": {"path": "/usr/bin/podqos-runtime"}}})"));
}

TEST(PlanDocker, UndoKeepsWhatOthersWroteSince) {
  FilesInMemory files = {{kDaemonJson, "{\n  \"a\": 1\n}\n"}};
  files.apply(must(plan_engine(Engine::kDocker, Method::kWrapper, files)));
  files.put(kDaemonJson,
            "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\"path\": \"/own\"},\n"
            "    \"podqos\": {\"path\": \"/usr/bin/podqos-runtime\"}\n  }\n}\n");
  const ConfigurePlan removal = must(plan_removal(Engine::kDocker, files.source()));
  EXPECT_THAT(removal.notes, ElementsAre(HasSubstr("kept backup ")));
  files.apply(removal);
  EXPECT_EQ(files.at(kDaemonJson).text,
            "{\n  \"b\": 2,\n  \"runtimes\": {\n    \"own\": {\n      \"path\": \"/own\"\n    }\n"
            "  }\n}\n");
}

struct DockerRefusal {
  const char* name;
  const char* text;
  const char* says;
};

class RefusedDocker : public testing::TestWithParam<DockerRefusal> {};

TEST_P(RefusedDocker, NamesTheLineAndWhatToAdd) {
  const FilesInMemory files = {{kDaemonJson, GetParam().text}};
  EXPECT_THAT(refusal(Engine::kDocker, Method::kWrapper, files),
              AllOf(StartsWith(kDaemonJson + GetParam().says),
                    HasSubstr(R"("podqos": {"path": "/usr/bin/podqos-runtime"})")));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedDocker,
    testing::Values(DockerRefusal{"Comment", "{\n  // mine\n  \"a\": 1\n}\n",
                                  ": malformed JSON at line 2, column 3: "},
                    DockerRefusal{"TrailingComma", "{\n  \"a\": 1,\n}\n",
                                  ": malformed JSON at line 3, column 1: "},
                    DockerRefusal{"NoObject", "[]\n", ":1: is not an object"},
                    DockerRefusal{"RuntimesOfNoObject", "{\n\"runtimes\": 1}\n",
                                  ":2: \"runtimes\" is not an object"},
                    DockerRefusal{"RuntimesTwice", "{\"runtimes\": {},\n\"runtimes\": {}}\n",
                                  ":2: duplicate key \"runtimes\""},
                    DockerRefusal{"PodqosTwice",
                                  "{\"runtimes\": {\"podqos\": {},\n\"podqos\": {}}}\n",
                                  ":2: duplicate key \"podqos\""},
                    DockerRefusal{"AnotherPodqos",
                                  "{\"runtimes\": {\n\"podqos\": {\"path\": \"/x\"}}}\n",
                                  ":2: a runtime \"podqos\" is there already"},
                    DockerRefusal{"Utf16", "\xff\xfe{", ": malformed JSON at byte 1: "}),
    [](const auto& tested) { return tested.param.name; });

TEST(PlanDocker, UndoRefusesWhatIsNotItsOwn) {
  const auto refused = [](const std::string& text) {
    const FilesInMemory files = {{kDaemonJson, text}};
    return plan_removal(Engine::kDocker, files.source()).error().message;
  };
  EXPECT_THAT(refused("{\"runtimes\": {\"podqos\":\n{\"path\": \"/usr/bin/podqos-runtime\", "
                      "\"runtimeArgs\": []}}}"),
              StartsWith(kDaemonJson + ":1: the runtime \"podqos\" is not as podqosctl"));
  EXPECT_THAT(refused("{\"runtimes\": {\"podqos\": {\"path\": \"/usr/bin/podqos-runtime\"}},\n"
                      "\"default-runtime\": \"podqos\"}"),
              StartsWith(kDaemonJson + ":2: default-runtime = \"podqos\" still needs podqos"));
}

}  // namespace
}  // namespace podqos::ctl
