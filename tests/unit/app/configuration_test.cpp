#include "common/app/configuration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LoadSettings : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::string path = directory_.path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    directory_.write(name, text);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  }
  [[nodiscard]] core::Settings loaded() const {
    const auto report = inspect_configuration(std::nullopt, paths_);
    EXPECT_THAT(report.errors, IsEmpty());
    EXPECT_EQ(report.source, SettingsSource::kFiles);
    return report.settings;
  }
  /// The only error.
  [[nodiscard]] std::string refusal() const {
    const auto report = inspect_configuration(std::nullopt, paths_);
    EXPECT_THAT(report.errors, SizeIs(1));
    return report.errors.empty() ? "" : report.errors.front();
  }
  [[nodiscard]] std::vector<std::string> runtimes() const {
    return inspect_configuration(std::nullopt, paths_).settings.runtimes;
  }

  TemporaryDirectory directory_;
  ConfigurationPaths paths_{.file = directory_.path("podqos.json"),
                            .directory = directory_.path("conf.d")};
};

TEST_F(LoadSettings, GivesTheDefaultsWhereNothingIsThere) {
  EXPECT_EQ(loaded(), core::Settings{});
}

TEST_F(LoadSettings, ReadsTheMainFileWithComments) {
  write("podqos.json", "{ // lower than usual\n \"lockDeadline\": \"2s\" }");
  EXPECT_EQ(loaded().lock_deadline_ms, 2000);
}

TEST_F(LoadSettings, LaysTheDirectoryOverTheMainFileInNameOrder) {
  write("podqos.json", R"({"cgroupRoot": "/main", "podPidsLimit": 7})");
  write("conf.d/20-b.json", R"({"cgroupRoot": "/second"})");
  write("conf.d/10-a.json", R"({"cgroupRoot": "/first", "enabled": false})");
  const core::Settings settings = loaded();
  EXPECT_EQ(settings.cgroup_root, "/second");
  EXPECT_FALSE(settings.enabled);
  EXPECT_EQ(settings.pod_pids_limit, 7);
}

TEST_F(LoadSettings, LeavesHiddenAndOtherFilesAlone) {
  write("conf.d/.10-a.json.swp", "garbage");
  write("conf.d/.hidden.json", "garbage");
  write("conf.d/README", "garbage");
  EXPECT_EQ(loaded(), core::Settings{});
}

TEST_F(LoadSettings, ANamedFileStandsAlone) {
  write("podqos.json", R"({"cgroupRoot": "/main"})");
  write("conf.d/10-a.json", R"({"enabled": false})");
  write("own.json", R"({"podPidsLimit": 3})");
  const auto report = inspect_configuration(directory_.path("own.json"), paths_);
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_EQ(report.settings.cgroup_root, "/podqos");
  EXPECT_TRUE(report.settings.enabled);
  EXPECT_EQ(report.settings.pod_pids_limit, 3);
}

TEST_F(LoadSettings, ANamedFileMustExist) {
  const std::string absent = directory_.path("absent.json");
  const ConfigurationReport report = inspect_configuration(absent, paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("absent.json: No such file")));
  EXPECT_THAT(report.settings.runtimes, IsEmpty());
}

TEST_F(LoadSettings, NamesTheFileAndTheField) {
  write("conf.d/10-a.json", R"({"podPidsLimits": 3})");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("conf.d/10-a.json"), HasSubstr("podPidsLimits"),
                               HasSubstr("did you mean podPidsLimit?")));
}

TEST_F(LoadSettings, RefusesAFileThatOthersCanWrite) {
  write("podqos.json", R"({"runtimes": ["/main"]})");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  for (const mode_t mode : {mode_t{0664}, mode_t{0646}}) {
    ASSERT_EQ(::chmod(paths_.file.c_str(), mode), 0);
    EXPECT_THAT(refusal(), HasSubstr("chmod go-w"));
  }
  EXPECT_THAT(runtimes(), IsEmpty());
}

TEST_F(LoadSettings, RefusesADirectoryThatOthersCanWrite) {
  write("conf.d/10-a.json", R"({"enabled": false})");
  ASSERT_EQ(::chmod(paths_.directory.c_str(), 0777), 0);
  const ConfigurationReport report = inspect_configuration(std::nullopt, paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("conf.d: writable by group or others")));
  EXPECT_TRUE(report.settings.enabled);
}

TEST_F(LoadSettings, RefusesAStrangersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  write("podqos.json", "{}");
  ASSERT_EQ(::chown(paths_.file.c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("12345"));
}

TEST_F(LoadSettings, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(paths_.file.c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
  ASSERT_EQ(::unlink(paths_.file.c_str()), 0);
  ASSERT_EQ(::mkdir(paths_.file.c_str(), 0700), 0);
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
}

class SalvageRuntimes : public LoadSettings {
 protected:
  void expect_salvaged(const std::vector<std::string>& wanted) const {
    EXPECT_EQ(runtimes(), wanted);
  }
  void expect_doubt(const char* says) const {
    const auto report = inspect_configuration(std::nullopt, paths_);
    EXPECT_THAT(report.settings.runtimes, IsEmpty());
    EXPECT_THAT(report.errors, Contains(HasSubstr(says)));
  }
};

TEST_F(SalvageRuntimes, GivesTheDefaultsWhereNoFileNamesThem) {
  const std::vector<std::string> defaults = {"/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun",
                                             "/usr/libexec/crio/crun"};
  expect_salvaged(defaults);
  write("podqos.json", R"({"onErorr": "reject"})");
  expect_salvaged(defaults);
}

TEST_F(SalvageRuntimes, LetsTheLastFileThatNamesThemCount) {
  write("podqos.json", R"({"runtimes": ["/main"], "onErorr": "reject"})");
  write("conf.d/20-b.json", R"({"runtimes": ["/second"]})");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  write("conf.d/30-c.json", R"({"enabled": "perhaps"})");
  expect_salvaged({"/second"});
}

TEST_F(SalvageRuntimes, LeavesADoubtToALaterFile) {
  write("podqos.json", R"({"runtime": ["/main"]})");
  expect_doubt("podqos.json: field runtime");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  expect_salvaged({"/first"});
  write("conf.d/20-b.json", R"({"runtimes": )");
  expect_doubt("20-b.json: malformed JSON");
}

TEST_F(LoadSettings, AnInspectionNamesAllErrorsAndGoesOn) {
  write("podqos.json", R"({"nodememory": "1Gi", "podPidsLimit": 7, "log": {"Level": "info"}})");
  write("conf.d/10-broken.json", "{");
  write("conf.d/20-open.json", R"({"enabled": false})");
  ASSERT_EQ(::chmod((directory_.path("conf.d/20-open.json")).c_str(), 0666), 0);
  write("conf.d/30-good.json", R"({"cgroupRoot": "/x"})");
  write("conf.d/40-site.yaml", "enabled: false");
  write("conf.d/README", "garbage");
  const ConfigurationReport report = inspect_configuration(std::nullopt, paths_);
  EXPECT_THAT(report.errors,
              ElementsAre(AllOf(HasSubstr("/podqos.json: "), HasSubstr("nodeMemory")),
                          AllOf(HasSubstr("/podqos.json: "), HasSubstr("log.level")),
                          HasSubstr("/conf.d/10-broken.json: "),
                          AllOf(HasSubstr("/conf.d/20-open.json: "), HasSubstr("chmod go-w"))));
  EXPECT_THAT(report.files, ElementsAre(paths_.file, directory_.path("conf.d/10-broken.json"),
                                        directory_.path("conf.d/30-good.json")));
  EXPECT_THAT(report.ignored, ElementsAre(directory_.path("conf.d/40-site.yaml")));
  EXPECT_EQ(report.settings.pod_pids_limit, 7);
  EXPECT_EQ(report.settings.cgroup_root, "/x");
  EXPECT_TRUE(report.settings.enabled);
}

class LastValid : public LoadSettings {
 protected:
  void SetUp() override {
    ASSERT_EQ(::mkdir(directory_.path("state").c_str(), 0700), 0);
    core::NodeState node;
    core::Settings& last = node.settings.emplace();
    last.runtimes = {"/kata"};
    last.pod_pids_limit = 7;
    last.io_weight.besteffort = 10;
    write("state/node.json", codec::format_node(node));
  }
  [[nodiscard]] ConfigurationReport report(const std::string& fields) const {
    write("podqos.json", R"({"stateDir": ")" + directory_.path("state") + "\", " + fields);
    return inspect_configuration(std::nullopt, paths_);
  }
};

TEST_F(LastValid, StaysInForceWithAnyError) {
  for (const char* broken :
       {R"("podPidsLimit": 8, "runtimes": ["/runc"], "scope": "x"})",
        R"("podPidsLimit": 8, "runtimes": ["/runc")", R"("podPidsLimit": 8} x)"}) {
    const ConfigurationReport found = report(broken);
    EXPECT_THAT(found.errors, SizeIs(1)) << broken;
    EXPECT_EQ(found.source, SettingsSource::kLastValid) << broken;
    EXPECT_EQ(found.settings.pod_pids_limit, 7) << broken;
    EXPECT_EQ(found.settings.io_weight.besteffort, 10) << broken;
    EXPECT_THAT(found.settings.runtimes, ElementsAre("/kata")) << broken;
    EXPECT_THAT(describe_errors(found), EndsWith("; fix it and verify it with `podqosctl config "
                                                 "check`; until then the last valid settings stay "
                                                 "in force"));
  }
}

TEST_F(LastValid, IsReplacedByWhatIsValid) {
  const ConfigurationReport found = report(R"("podPidsLimit": 8})");
  EXPECT_EQ(found.source, SettingsSource::kFiles);
  EXPECT_EQ(found.settings.pod_pids_limit, 8);
}

TEST_F(LastValid, IsNoneAfterABoot) {
  ASSERT_EQ(::unlink(directory_.path("state/node.json").c_str()), 0);
  const ConfigurationReport found = report(R"("podPidsLimit": 8, "scope": "x"})");
  EXPECT_EQ(found.source, SettingsSource::kReadable);
  EXPECT_EQ(found.settings.pod_pids_limit, 8);
  EXPECT_EQ(found.settings.scope, core::Scope::kPods);
  EXPECT_EQ(found.settings.runtimes, core::Settings{}.runtimes);
}

}  // namespace
}  // namespace podqos::app
