#include "common/app/configuration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadSettings : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::string path = directory_.path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    directory_.write(name, text);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  }
  [[nodiscard]] core::Settings loaded() const {
    const auto settings = load_settings(std::nullopt, paths_);
    EXPECT_TRUE(settings) << settings.error().message;
    return settings.value_or(core::Settings{});
  }
  /// The error of load_settings().
  [[nodiscard]] Error refusal() const {
    const auto settings = load_settings(std::nullopt, paths_);
    EXPECT_FALSE(settings);
    return settings ? Error{} : settings.error();
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
  const auto settings = load_settings(directory_.path("own.json"), paths_);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->cgroup_root, "/podqos");
  EXPECT_TRUE(settings->enabled);
  EXPECT_EQ(settings->pod_pids_limit, 3);
}

TEST_F(LoadSettings, ANamedFileMustExist) {
  const std::string absent = directory_.path("absent.json");
  const auto settings = load_settings(absent, paths_);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(settings.error().message, HasSubstr("absent.json"));
  const auto runtimes = salvage_runtimes(absent, paths_);
  ASSERT_FALSE(runtimes);
  EXPECT_EQ(runtimes.error().code, ErrorCode::kNotFound);
  const ConfigurationReport report = inspect_configuration(absent, paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("absent.json")));
  EXPECT_EQ(report.settings, core::Settings{});
}

TEST_F(LoadSettings, NamesTheFileAndTheField) {
  write("conf.d/10-a.json", R"({"podPidsLimits": 3})");
  EXPECT_THAT(refusal().message, AllOf(HasSubstr("conf.d/10-a.json"), HasSubstr("podPidsLimits"),
                                       HasSubstr("did you mean podPidsLimit?")));
}

TEST_F(LoadSettings, RefusesAFileThatOthersCanWrite) {
  write("podqos.json", R"({"runtimes": ["/main"]})");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  for (const mode_t mode : {mode_t{0664}, mode_t{0646}}) {
    ASSERT_EQ(::chmod(paths_.file.c_str(), mode), 0);
    EXPECT_EQ(refusal().code, ErrorCode::kPermission);
    EXPECT_THAT(refusal().message, HasSubstr("chmod go-w"));
  }
  const auto runtimes = salvage_runtimes(std::nullopt, paths_);
  ASSERT_FALSE(runtimes);
  EXPECT_EQ(runtimes.error().code, ErrorCode::kPermission);
}

TEST_F(LoadSettings, RefusesADirectoryThatOthersCanWrite) {
  write("conf.d/10-a.json", R"({"enabled": false})");
  ASSERT_EQ(::chmod(paths_.directory.c_str(), 0777), 0);
  EXPECT_EQ(refusal().code, ErrorCode::kPermission);
  const ConfigurationReport report = inspect_configuration(std::nullopt, paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("conf.d: writable by group or others")));
  EXPECT_TRUE(report.settings.enabled);
}

TEST_F(LoadSettings, RefusesAStrangersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  write("podqos.json", "{}");
  ASSERT_EQ(::chown(paths_.file.c_str(), 12345, 0), 0);
  EXPECT_EQ(refusal().code, ErrorCode::kPermission);
  EXPECT_THAT(refusal().message, HasSubstr("12345"));
}

TEST_F(LoadSettings, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(paths_.file.c_str(), 0600), 0);
  EXPECT_EQ(refusal().code, ErrorCode::kConflict);
  ASSERT_EQ(::unlink(paths_.file.c_str()), 0);
  ASSERT_EQ(::mkdir(paths_.file.c_str(), 0700), 0);
  EXPECT_EQ(refusal().code, ErrorCode::kConflict);
}

class SalvageRuntimes : public LoadSettings {
 protected:
  void expect_salvaged(const std::vector<std::string>& wanted) const {
    const auto runtimes = salvage_runtimes(std::nullopt, paths_);
    ASSERT_TRUE(runtimes) << runtimes.error().message;
    EXPECT_EQ(*runtimes, wanted);
  }
  void expect_doubt(const char* says) const {
    const auto runtimes = salvage_runtimes(std::nullopt, paths_);
    ASSERT_FALSE(runtimes);
    EXPECT_THAT(runtimes.error().message, HasSubstr(says));
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

}  // namespace
}  // namespace podqos::app
