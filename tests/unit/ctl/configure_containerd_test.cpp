#include <algorithm>
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
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kContainerdConfig = "/etc/containerd/config.toml";
const std::string kContainerdBackup = "/etc/containerd/config.toml.podqos-backup";
const TomlPath kRuntimes2 = {"plugins", "io.containerd.grpc.v1.cri", "containerd", "runtimes"};
const TomlPath kRuntimes3 = {"plugins", "io.containerd.cri.v1.runtime", "containerd", "runtimes"};

ConfigureRequest containerd_request(Version version, Method method = Method::kWrapper) {
  return {.engine = Engine::kContainerd, .method = method, .version = version};
}

Result<ConfigurePlan> plan_for(const FilesInMemory& files, Version version,
                               Method method = Method::kWrapper) {
  return plan_registration(containerd_request(version, method), files.source());
}

std::string refusal(const std::string& config, Version version, Method method = Method::kWrapper) {
  const auto plan = plan_for({{kContainerdConfig, config}}, version, method);
  return plan ? "no refusal" : plan.error().message;
}

/// The stock files of Debian 12, 13 and testing, and what `containerd config default` prints there.
struct StockCase {
  const char* name;
  const char* file;
  Version version;
  TomlPath runtimes;
};

class StockContainerd : public testing::TestWithParam<StockCase> {};

TEST_P(StockContainerd, GetsAHandlerTwiceIsOnceAndUndoRestoresEachByte) {
  const std::string stock = project_file(std::string{"tests/data/engines/"} + GetParam().file);
  const FilesInMemory before = {{kContainerdConfig, stock}};
  FilesInMemory files = before;
  files.apply(must(plan_for(files, GetParam().version)));
  const std::string after = files.at(kContainerdConfig).text;
  EXPECT_THAT(after, StartsWith(stock));
  EXPECT_EQ(files.at(kContainerdBackup).text, stock);
  const auto document = TomlDocument::parse(after, "after");
  ASSERT_TRUE(document);
  const TomlPath handler = below(GetParam().runtimes, {"podqos"});
  EXPECT_EQ(document->text_at(below(handler, {"options", "BinaryName"})),
            "/usr/bin/podqos-runtime");
  // As soon as one handler is named, 1.x knows none but those that are.
  const bool in_v2 = GetParam().runtimes == kRuntimes2;
  EXPECT_EQ(document->at(below(GetParam().runtimes, {"runc"})) != nullptr,
            in_v2 || stock.contains("default_runtime_name"));

  EXPECT_THAT(must(plan_for(files, GetParam().version)).changes, IsEmpty());
  files.apply(must(plan_removal(Engine::kContainerd, files.source())));
  EXPECT_EQ(files, before);
}

INSTANTIATE_TEST_SUITE_P(
    Table, StockContainerd,
    testing::Values(StockCase{"Debian12", "containerd-debian.toml", {1, 6}, kRuntimes2},
                    StockCase{"Debian13", "containerd-debian.toml", {1, 7}, kRuntimes2},
                    StockCase{"DebianTesting", "containerd-debian.toml", {2, 1}, kRuntimes2},
                    StockCase{"Default16", "containerd-1.6-default.toml", {1, 6}, kRuntimes2},
                    StockCase{"Default17", "containerd-1.7-default.toml", {1, 7}, kRuntimes2},
                    StockCase{
                        "Default17Under21", "containerd-1.7-default.toml", {2, 1}, kRuntimes2},
                    StockCase{"Default21", "containerd-2.1-default.toml", {2, 1}, kRuntimes3}),
    [](const auto& tested) { return tested.param.name; });

TEST(PlanContainerd, WritesAFileWhereThereIsNone) {
  FilesInMemory files;
  const ConfigurePlan plan = must(plan_for(files, {2, 1}));
  ASSERT_EQ(plan.changes.size(), 1U);
  EXPECT_FALSE(plan.changes.front().backup);
  EXPECT_THAT(plan.changes.front().after.text, StartsWith("version = 3\n# podqos: begin wrapper"));
  files.apply(plan);
  files.apply(must(plan_removal(Engine::kContainerd, files.source())));
  EXPECT_EQ(files, FilesInMemory{});
}

TEST(PlanContainerd, UsesADropInWhereContainerdMergesIt) {
  FilesInMemory files = {{kContainerdConfig, "version = 3\nimports = ['conf.d/*.toml']\n"}};
  const FilesInMemory before = files;
  const ConfigurePlan plan = must(plan_for(files, {2, 1}));
  ASSERT_EQ(plan.changes.size(), 1U);
  EXPECT_EQ(plan.changes.front().path, "/etc/containerd/conf.d/50-podqos.toml");
  files.apply(plan);
  EXPECT_EQ(toml_values(files.at(plan.changes.front().path).text).at("version"), 3);
  EXPECT_THAT(must(plan_for(files, {2, 1})).changes, IsEmpty());
  files.apply(must(plan_removal(Engine::kContainerd, files.source())));
  EXPECT_EQ(files, before);
}

TEST(PlanContainerd, UsesNoDropInForCriBefore2) {
  // There it would be the whole configuration of CRI (containerd #5837).
  const FilesInMemory files = {
      {kContainerdConfig, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n"}};
  const ConfigurePlan plan = must(plan_for(files, {1, 7}));
  ASSERT_EQ(plan.changes.size(), 1U);
  EXPECT_EQ(plan.changes.front().path, kContainerdConfig);
}

TEST(PlanContainerd, RefusesAnImportThatWouldHideIt) {
  const FilesInMemory files = {
      {kContainerdConfig, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n"},
      {"/etc/containerd/conf.d/99-nvidia.toml",
       "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
       "default_runtime_name = \"nvidia\"\n"}};
  EXPECT_THAT(plan_for(files, {1, 7}).error().message,
              AllOf(StartsWith("/etc/containerd/conf.d/99-nvidia.toml:2: "),
                    HasSubstr("BinaryName = \"/usr/bin/podqos-runtime\"")));
  EXPECT_TRUE(plan_for(files, {2, 1}));
}

TEST(PlanContainerd, FollowsTheDriverOfTheDefaultHandler) {
  const std::string said =
      "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
      "default_runtime_name = \"own\"\n"
      "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.own.options]\n"
      "SystemdCgroup = ";
  for (const char* driver : {"true", "false"}) {
    const FilesInMemory files = {{kContainerdConfig, said + driver + "\n"}};
    const auto values = toml_values(must(plan_for(files, {1, 7})).changes.at(0).after.text);
    const auto& runtimes =
        values.at("plugins").at("io.containerd.grpc.v1.cri").at("containerd").at("runtimes");
    EXPECT_EQ(runtimes.at("podqos").at("options").at("SystemdCgroup"),
              std::string{driver} == "true");
    EXPECT_FALSE(runtimes.contains("runc"));
  }
}

// Debian's file says nothing about the driver: containerd's default handler uses cgroupfs, and so
// does podqos's beside it.
TEST(PlanContainerd, UsesCgroupfsWhereTheDefaultHandlerDoes) {
  const FilesInMemory files = {
      {kContainerdConfig, project_file("tests/data/engines/containerd-debian.toml")}};
  const auto values = toml_values(must(plan_for(files, {1, 7})).changes.at(0).after.text);
  const auto& runtimes =
      values.at("plugins").at("io.containerd.grpc.v1.cri").at("containerd").at("runtimes");
  EXPECT_EQ(runtimes.at("podqos").at("options").at("SystemdCgroup"), false);
}

TEST(PlanContainerd, UndoKeepsWhatOthersWroteSince) {
  FilesInMemory files = {{kContainerdConfig, "version = 2\r\n"}};
  files.apply(must(plan_for(files, {1, 7})));
  const std::string registered = files.at(kContainerdConfig).text;
  EXPECT_EQ(std::ranges::count(registered, '\n'), std::ranges::count(registered, '\r'));
  files.put(kContainerdConfig, "# mine\r\n" + registered + "[debug]\r\nlevel = \"debug\"\r\n");
  EXPECT_THAT(must(plan_for(files, {1, 7})).changes, IsEmpty());
  const ConfigurePlan removal = must(plan_removal(Engine::kContainerd, files.source()));
  EXPECT_THAT(removal.notes, ElementsAre(StartsWith("kept backup " + kContainerdBackup)));
  files.apply(removal);
  EXPECT_EQ(files.at(kContainerdConfig).text,
            "# mine\r\nversion = 2\r\n[debug]\r\nlevel = \"debug\"\r\n");
}

TEST(PlanContainerd, RestoresALastLineWithoutNewline) {
  const FilesInMemory before = {{kContainerdConfig, "\xef\xbb\xbfversion = 2"}};
  FilesInMemory files = before;
  files.apply(must(plan_for(files, {1, 7})));
  EXPECT_THAT(files.at(kContainerdConfig).text, StartsWith("\xef\xbb\xbfversion = 2\n# podqos"));
  files.apply(must(plan_removal(Engine::kContainerd, files.source())));
  EXPECT_EQ(files, before);
}

TEST(PlanContainerd, Version4HasTheTablesOfVersion3) {
  FilesInMemory files = {{kContainerdConfig, "version = 4\n"}};
  files.apply(must(plan_for(files, {2, 3})));
  EXPECT_THAT(files.at(kContainerdConfig).text,
              HasSubstr("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos]"));
  // NRI needs no table, whatever the version.
  files.put(kContainerdConfig, "version = 9\n");
  EXPECT_THAT(
      must(plan_registration(
               {.engine = Engine::kContainerd, .method = Method::kNri, .version = Version{2, 9}},
               files.source()))
          .changes,
      IsEmpty());
}

TEST(PlanContainerd, LeavesAHandlerThatIsThereByHand) {
  const std::string stock = project_file("tests/data/engines/containerd-debian.toml");
  const std::string by_hand = stock + project_file("examples/containerd/config-v2.toml");
  const FilesInMemory files = {{kContainerdConfig, by_hand}};
  const ConfigurePlan plan = must(plan_for(files, {1, 7}));
  EXPECT_THAT(plan.changes, IsEmpty());
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("registered there already")));
  EXPECT_THAT(plan.registered_in, ElementsAre(kContainerdConfig));
  EXPECT_THAT(must(plan_removal(Engine::kContainerd, files.source())).changes, IsEmpty());

  const std::string other =
      "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos.options]\n"
      "BinaryName = '/opt/podqos'\n";
  EXPECT_THAT(refusal(other, {2, 1}),
              AllOf(StartsWith(kContainerdConfig + ":3: "), HasSubstr("by hand")));
}

struct RefusedCase {
  const char* name;
  std::string config;
  Version version;
  const char* says;
};

class RefusedContainerd : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedContainerd, NamesTheLine) {
  EXPECT_THAT(refusal(GetParam().config, GetParam().version),
              AllOf(StartsWith(kContainerdConfig), HasSubstr(GetParam().says)));
}

const std::string kCriTable2 = "[plugins.\"io.containerd.grpc.v1.cri\"";

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedContainerd,
    testing::Values(
        RefusedCase{"NoVersion", "# docker.com's\n\ndisabled_plugins = []\n", {1, 7}, ":1: "},
        RefusedCase{"Version3For1", "version = 3\n", {1, 7}, ":1: unsupported config version 3"},
        RefusedCase{"Version9", "\nversion = 9\n", {2, 1}, ":2: unsupported config version 9"},
        RefusedCase{"CriOff",
                    "version = 2\ndisabled_plugins = [\"cri\"]\n",
                    {1, 7},
                    ":2: \"cri\" is disabled"},
        // containerd.io, Docker's package, comes with this file.
        RefusedCase{"CriOffAsDockerShipsIt",
                    "# Copyright 2018-2022 Docker Inc.\n\ndisabled_plugins = [\"cri\"]\n",
                    {1, 7},
                    "or for Docker run `podqosctl configure docker`"},
        RefusedCase{"DuplicateTables",
                    "version = 2\n" + kCriTable2 + "]\na = 1\n" + kCriTable2 + "]\n",
                    {1, 7},
                    ":4: "},
        RefusedCase{"InlineTable",
                    "version = 2\n" + kCriTable2 + ".containerd]\nruntimes = {}\n",
                    {1, 7},
                    "add these lines by hand:\n[plugins."},
        RefusedCase{"InlineTableNamesItsLine",
                    "version = 2\n" + kCriTable2 + ".containerd]\nruntimes = {}\n",
                    {1, 7},
                    ":3: no table can be added"},
        RefusedCase{"UnknownVersionSaysWhatToAdd",
                    "version = 5\n",
                    {2, 3},
                    "add these lines by hand:\n[plugins.'io.containerd.cri.v1.runtime'"},
        RefusedCase{"NoToml", "{\"version\": 2}\n", {1, 7}, ":1: "},
        RefusedCase{"NotUtf8", "version = 2\n# \xff\xfe\n", {1, 7}, ":2: "},
        RefusedCase{"ImportsOfNoList", "version = 2\nimports = 3\n", {2, 1}, ":2: imports"},
        RefusedCase{"ImportsOfManyDirectories",
                    "version = 2\nimports = [\"/*/a.toml\"]\n",
                    {2, 1},
                    ":2: cannot follow"},
        RefusedCase{"HalfABlock",
                    "version = 2\n# podqos: begin wrapper\n",
                    {1, 7},
                    ":2: \"# podqos: begin wrapper\" has no end"}),
    [](const auto& tested) { return tested.param.name; });

TEST(PlanContainerd, RefusesNriWhereNoPodsAreStarted) {
  const std::string config = "version = 3\ndisabled_plugins = [\"io.containerd.cri.v1.runtime\"]\n";
  EXPECT_THAT(refusal(config, {2, 1}, Method::kNri),
              AllOf(StartsWith(kContainerdConfig + ":2: "), HasSubstr("starts no pods")));
}

TEST(PlanContainerd, RefusesSymlinksWithWhatToAddByHand) {
  const FilesInMemory files = {{kContainerdConfig, FileState::link("/srv/containerd.toml")},
                               {"/srv/containerd.toml", FileState::file("version = 2\n")}};
  EXPECT_THAT(plan_for(files, {1, 7}).error().message,
              AllOf(HasSubstr("is a symlink to /srv/containerd.toml"),
                    HasSubstr("BinaryName = \"/usr/bin/podqos-runtime\"")));
}

TEST(PlanContainerd, UndoRefusesWhileTheHandlerIsTheDefault) {
  FilesInMemory files = {
      {kContainerdConfig,
       "version = 2\n" + kCriTable2 + ".containerd]\ndefault_runtime_name = \"podqos\"\n"}};
  files.apply(must(plan_for(files, {1, 7})));
  EXPECT_THAT(plan_removal(Engine::kContainerd, files.source()).error().message,
              StartsWith(kContainerdConfig + ":3: default_runtime_name = \"podqos\" still needs"));
}

TEST(PlanContainerdNri, SwitchesItOnIn17Only) {
  const std::string stock = project_file("tests/data/engines/containerd-debian.toml");
  FilesInMemory files = {{kContainerdConfig, stock}};
  EXPECT_THAT(must(plan_for(files, {2, 1}, Method::kNri)).changes, IsEmpty());
  // No file decides it: no change of one makes a daemon out of date.
  EXPECT_THAT(must(plan_for(files, {2, 1}, Method::kNri)).registered_in, IsEmpty());
  EXPECT_FALSE(plan_for(files, {1, 6}, Method::kNri));
  files.apply(must(plan_for(files, {1, 7}, Method::kNri)));
  const auto values = toml_values(files.at(kContainerdConfig).text);
  EXPECT_EQ(values.at("plugins").at("io.containerd.nri.v1.nri").at("disable"), false);
  EXPECT_THAT(must(plan_for(files, {1, 7}, Method::kNri)).changes, IsEmpty());
  // The wrapper beside it; undo takes both away.
  files.apply(must(plan_for(files, {1, 7})));
  EXPECT_THAT(files.at(kContainerdConfig).text,
              AllOf(HasSubstr("# podqos: end nri\n"), EndsWith("# podqos: end wrapper\n")));
  files.apply(must(plan_removal(Engine::kContainerd, files.source())));
  EXPECT_EQ(files, (FilesInMemory{{kContainerdConfig, stock}}));
}

TEST(PlanContainerdNri, RefusesWhereItsOwnerHasItOff) {
  const std::string table = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\n";
  EXPECT_THAT(refusal(table, {1, 7}, Method::kNri), HasSubstr(":2: NRI is off"));
  EXPECT_THAT(refusal(table + "disable = true\n", {2, 1}, Method::kNri),
              HasSubstr(":3: NRI is off; write \"disable = false\""));
  EXPECT_THAT(
      refusal(table + "disable_connections = true\ndisable = false\n", {2, 1}, Method::kNri),
      HasSubstr(":3: NRI is off; write \"disable_connections = false\""));
  const std::string default17 = project_file("tests/data/engines/containerd-1.7-default.toml");
  EXPECT_THAT(refusal(default17, {1, 7}, Method::kNri), HasSubstr("write \"disable = false\""));
}

}  // namespace
}  // namespace podqos::ctl
