#include <algorithm>
#include <string>

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

const std::string kContainerdToml = "/etc/containerd/config.toml";
const std::string kRuntimes2 = "plugins/io.containerd.grpc.v1.cri/containerd/runtimes";
const std::string kRuntimes3 = "plugins/io.containerd.cri.v1.runtime/containerd/runtimes";
const std::string kCriTable2 = "[plugins.\"io.containerd.grpc.v1.cri\"";

Tree::Planned plan_for(const Tree& tree, Version version, Method method = Method::kWrapper) {
  return tree.plan(EngineId::kContainerd, method, version);
}

std::string stock_file(const std::string& name) {
  return project_file("tests/data/engines/" + name);
}

/// The stock files of Debian 12, 13 and testing, and what `containerd config default` prints there.
struct StockCase {
  const char* name;
  const char* file;
  Version version;
  std::string runtimes;
};

class StockContainerd : public testing::TestWithParam<StockCase> {};

TEST_P(StockContainerd, GetsAHandlerTwiceIsOnceAndUndoRestoresEachByte) {
  const std::string stock = stock_file(GetParam().file);
  auto files = there_and_back(EngineId::kContainerd, Method::kWrapper,
                              Tree{{{kContainerdToml, stock}}}, GetParam().version);
  EXPECT_THAT(files[kContainerdToml], StartsWith(stock));
  EXPECT_EQ(files[kContainerdToml + ".podqos-backup"], stock);
  const auto document = TomlDocument::parse(files[kContainerdToml], "after");
  ASSERT_TRUE(document);
  const std::string& runtimes = GetParam().runtimes;
  EXPECT_EQ(document->at(runtimes + "/podqos/options/BinaryName").text(),
            "/usr/bin/podqos-runtime");
  // Neither file says anything about the driver: podqos's handler has that of the default one.
  EXPECT_EQ(document->at(runtimes + "/podqos/options/SystemdCgroup").flag(), false);
  // As soon as one handler is named, 1.x knows none but those that are.
  EXPECT_EQ(static_cast<bool>(document->at(runtimes + "/runc")),
            runtimes == kRuntimes2 || stock.contains("default_runtime_name"));
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
  const Tree tree;
  EXPECT_FALSE(plan_for(tree, {2, 1}).changes.at(0).backup);
  auto files = there_and_back(EngineId::kContainerd, Method::kWrapper, tree, Version{2, 1});
  EXPECT_THAT(files[kContainerdToml], StartsWith("version = 3\n# podqos: begin wrapper"));
}

TEST(PlanContainerd, UsesADropInWhereContainerdMergesIt) {
  const Tree tree{{kContainerdToml, "version = 3\nimports = ['conf.d/*.toml']\n"}};
  auto files = there_and_back(EngineId::kContainerd, Method::kWrapper, tree, Version{2, 1});
  EXPECT_EQ(files[kContainerdToml], tree.text(kContainerdToml));
  EXPECT_EQ(toml_values(files["/etc/containerd/conf.d/50-podqos.toml"]).at("version"), 3);
}

TEST(PlanContainerd, UsesNoDropInForCriBefore2) {
  // There it would be the whole configuration of CRI (containerd #5837).
  const Tree tree{
      {kContainerdToml, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n"}};
  const auto planned = plan_for(tree, {1, 7});
  ASSERT_EQ(planned.changes.size(), 1U);
  EXPECT_EQ(planned.changes.front().path, kContainerdToml);
}

TEST(PlanContainerd, RefusesAnImportThatWouldHideIt) {
  const Tree tree{
      {kContainerdToml, "version = 2\nimports = [\"/etc/containerd/conf.d//*.toml\"]\n"},
      {"/etc/containerd/conf.d/99-nvidia.toml",
       "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
       "default_runtime_name = \"nvidia\"\n"}};
  EXPECT_THAT(plan_for(tree, {1, 7}).error,
              AllOf(StartsWith("/etc/containerd/conf.d/99-nvidia.toml:2: "),
                    HasSubstr("BinaryName = \"/usr/bin/podqos-runtime\"")));
  EXPECT_EQ(plan_for(tree, {2, 1}).error, "");
}

TEST(PlanContainerd, RefusesMoreImportsThanAnyoneWants) {
  const Tree tree{{kContainerdToml, "version = 2\nimports = [\"conf.d/*.toml\"]\n"}};
  for (int file = 0; file < 256; ++file)
    tree.put("/etc/containerd/conf.d/" + std::to_string(file) + ".toml", "");
  EXPECT_EQ(plan_for(tree, {2, 1}).error, kContainerdToml + ": imports more than 256 files");
}

TEST(PlanContainerd, FollowsTheDriverOfTheDefaultHandler) {
  for (const bool driver : {true, false}) {
    const Tree tree{{kContainerdToml, "version = 2\n" + kCriTable2 +
                                          ".containerd]\ndefault_runtime_name = \"own\"\n" +
                                          kCriTable2 +
                                          ".containerd.runtimes.own.options]\nSystemdCgroup = " +
                                          (driver ? "true\n" : "false\n")}};
    Tree::apply(plan_for(tree, {1, 7}));
    const auto document = TomlDocument::parse(tree.text(kContainerdToml), "after");
    EXPECT_EQ(document->at(kRuntimes2 + "/podqos/options/SystemdCgroup").flag(), driver);
    EXPECT_FALSE(document->at(kRuntimes2 + "/runc"));
  }
}

TEST(PlanContainerd, UndoKeepsWhatOthersWroteSince) {
  const Tree tree{{kContainerdToml, "version = 2\r\n"}};
  Tree::apply(plan_for(tree, {1, 7}));
  const std::string registered = tree.text(kContainerdToml);
  EXPECT_EQ(std::ranges::count(registered, '\n'), std::ranges::count(registered, '\r'));
  tree.put(kContainerdToml, "# mine\r\n" + registered + "[debug]\r\nlevel = \"debug\"\r\n");
  EXPECT_THAT(plan_for(tree, {1, 7}).changes, IsEmpty());
  const auto removal = tree.plan_removal(EngineId::kContainerd);
  EXPECT_THAT(removal.notes,
              ElementsAre(StartsWith("kept backup " + kContainerdToml + ".podqos-backup")));
  Tree::apply(removal);
  EXPECT_EQ(tree.text(kContainerdToml),
            "# mine\r\nversion = 2\r\n[debug]\r\nlevel = \"debug\"\r\n");
}

TEST(PlanContainerd, RestoresALastLineWithoutNewline) {
  auto files = there_and_back(EngineId::kContainerd, Method::kWrapper,
                              Tree{{kContainerdToml, "\xef\xbb\xbfversion = 2"}}, Version{1, 7});
  EXPECT_THAT(files[kContainerdToml], StartsWith("\xef\xbb\xbfversion = 2\n# podqos"));
}

TEST(PlanContainerd, Version4HasTheTablesOfVersion3) {
  const Tree tree{{kContainerdToml, "version = 4\n"}};
  Tree::apply(plan_for(tree, {2, 3}));
  EXPECT_THAT(tree.text(kContainerdToml),
              HasSubstr("[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.podqos]"));
  // NRI needs no table, whatever the version.
  const Tree later = {{kContainerdToml, "version = 9\n"}};
  const auto nri = plan_for(later, {2, 9}, Method::kNri);
  EXPECT_EQ(nri.error, "");
  EXPECT_THAT(nri.changes, IsEmpty());
}

TEST(PlanContainerd, LeavesAHandlerThatIsThereByHand) {
  const Tree tree{{kContainerdToml, stock_file("containerd-debian.toml") +
                                        project_file("examples/containerd/config-v2.toml")}};
  const auto planned = plan_for(tree, {1, 7});
  EXPECT_THAT(planned.changes, IsEmpty());
  EXPECT_THAT(planned.notes, ElementsAre(HasSubstr("registered there already")));
  EXPECT_THAT(planned.registered_in, ElementsAre(kContainerdToml));
  const auto removal = tree.plan_removal(EngineId::kContainerd);
  EXPECT_EQ(removal.error, "");
  EXPECT_THAT(removal.changes, IsEmpty());
}

TEST(PlanContainerd, RefusesSymlinksWithWhatToAddByHand) {
  const Tree tree = {{"/srv/containerd.toml", "version = 2\n"}};
  tree.link(kContainerdToml, "/srv/containerd.toml");
  EXPECT_THAT(plan_for(tree, {1, 7}).error,
              AllOf(HasSubstr("is a symlink to /srv/containerd.toml"),
                    HasSubstr("BinaryName = \"/usr/bin/podqos-runtime\"")));
}

TEST(PlanContainerdNri, SwitchesItOnIn17Only) {
  const Tree tree{{kContainerdToml, stock_file("containerd-debian.toml")}};
  const auto before = tree.all();
  const auto on = plan_for(tree, {2, 1}, Method::kNri);
  EXPECT_EQ(on.error, "");
  EXPECT_THAT(on.changes, IsEmpty());
  // No file decides it: no change of one makes a daemon out of date.
  EXPECT_THAT(on.registered_in, IsEmpty());
  EXPECT_NE(plan_for(tree, {1, 6}, Method::kNri).error, "");
  Tree::apply(plan_for(tree, {1, 7}, Method::kNri));
  const auto values = toml_values(tree.text(kContainerdToml));
  EXPECT_EQ(values.at("plugins").at("io.containerd.nri.v1.nri").at("disable"), false);
  EXPECT_THAT(plan_for(tree, {1, 7}, Method::kNri).changes, IsEmpty());
  // The wrapper beside it; undo takes both away.
  Tree::apply(plan_for(tree, {1, 7}));
  EXPECT_THAT(tree.text(kContainerdToml),
              AllOf(HasSubstr("# podqos: end nri\n"), EndsWith("# podqos: end wrapper\n")));
  Tree::apply(tree.plan_removal(EngineId::kContainerd));
  EXPECT_EQ(tree.all(), before);
}

TEST(PlanContainerdNri, AnImportedTableReplacesTheWholeOneBefore2) {
  const std::string table = "[plugins.\"io.containerd.nri.v1.nri\"]\n";
  const Tree tree{{kContainerdToml,
                   "version = 2\nimports = [\"conf.d/*.toml\"]\n" + table + "disable = false\n"},
                  {"/etc/containerd/conf.d/10.toml", "\n" + table + "plugin_path = \"/x\"\n"}};
  EXPECT_EQ(
      plan_for(tree, {1, 7}, Method::kNri).error,
      "/etc/containerd/conf.d/10.toml:2: NRI is off; write \"disable = false\" there by hand");
  EXPECT_EQ(plan_for(tree, {2, 1}, Method::kNri).error, "");
}

}  // namespace
}  // namespace podqos::ctl
