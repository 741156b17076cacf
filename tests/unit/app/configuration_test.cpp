#include "common/app/configuration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadSettings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "podqos-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    paths_ = {.file = root_ + "/podqos.json", .directory = root_ + "/conf.d"};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::FILE* file = std::fopen(path.c_str(), "we");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
    ASSERT_EQ(std::fclose(file), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  }
  [[nodiscard]] Result<core::Settings> load() const { return load_settings(std::nullopt, paths_); }

  std::string root_;
  ConfigurationPaths paths_;
};

TEST_F(LoadSettings, GivesTheDefaultsWhereNothingIsThere) {
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(*settings, core::Settings{});
}

TEST_F(LoadSettings, ReadsTheMainFileWithComments) {
  write("podqos.json", "{ // lower than usual\n \"lockDeadline\": \"2s\" }");
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->lock_deadline_ms, 2000);
}

TEST_F(LoadSettings, LaysTheDirectoryOverTheMainFileInNameOrder) {
  write("podqos.json", R"({"cgroupRoot": "/main", "podPidsLimit": 7})");
  write("conf.d/20-b.json", R"({"cgroupRoot": "/second"})");
  write("conf.d/10-a.json", R"({"cgroupRoot": "/first", "enabled": false})");
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->cgroup_root, "/second");
  EXPECT_FALSE(settings->enabled);
  EXPECT_EQ(settings->pod_pids_limit, 7);
}

TEST_F(LoadSettings, LeavesHiddenAndOtherFilesAlone) {
  write("conf.d/.10-a.json.swp", "garbage");
  write("conf.d/.hidden.json", "garbage");
  write("conf.d/README", "garbage");
  const auto settings = load();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(*settings, core::Settings{});
}

TEST_F(LoadSettings, ANamedFileStandsAlone) {
  write("podqos.json", R"({"cgroupRoot": "/main"})");
  write("conf.d/10-a.json", R"({"enabled": false})");
  write("own.json", R"({"podPidsLimit": 3})");
  const auto settings = load_settings(root_ + "/own.json", paths_);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->cgroup_root, "/podqos");
  EXPECT_TRUE(settings->enabled);
  EXPECT_EQ(settings->pod_pids_limit, 3);
}

TEST_F(LoadSettings, ANamedFileMustExist) {
  const auto settings = load_settings(root_ + "/absent.json", paths_);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(settings.error().message, HasSubstr("absent.json"));
}

TEST_F(LoadSettings, NamesTheFileAndTheField) {
  write("conf.d/10-a.json", R"({"podPidsLimits": 3})");
  const auto settings = load();
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, HasSubstr("conf.d/10-a.json"));
  EXPECT_THAT(settings.error().message, HasSubstr("podPidsLimits"));
  EXPECT_THAT(settings.error().message, HasSubstr("podPidsLimit"));
}

TEST_F(LoadSettings, RefusesAFileThatOthersCanWrite) {
  write("podqos.json", "{}");
  for (const mode_t mode : {mode_t{0664}, mode_t{0646}}) {
    ASSERT_EQ(::chmod(paths_.file.c_str(), mode), 0);
    const auto settings = load();
    ASSERT_FALSE(settings);
    EXPECT_EQ(settings.error().code, ErrorCode::kPermission);
    EXPECT_THAT(settings.error().message, HasSubstr("chmod go-w"));
  }
}

TEST_F(LoadSettings, RefusesADirectoryThatOthersCanWrite) {
  write("conf.d/10-a.json", "{}");
  ASSERT_EQ(::chmod(paths_.directory.c_str(), 0777), 0);
  const auto settings = load();
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kPermission);
}

TEST_F(LoadSettings, RefusesAStrangersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  write("podqos.json", "{}");
  ASSERT_EQ(::chown(paths_.file.c_str(), 12345, 0), 0);
  const auto settings = load();
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, ErrorCode::kPermission);
  EXPECT_THAT(settings.error().message, HasSubstr("12345"));
}

TEST_F(LoadSettings, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(paths_.file.c_str(), 0600), 0);
  const auto fifo = load();
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().code, ErrorCode::kConflict);
  ASSERT_EQ(::unlink(paths_.file.c_str()), 0);
  ASSERT_EQ(::mkdir(paths_.file.c_str(), 0700), 0);
  const auto directory = load();
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kConflict);
}

class SalvageRuntimes : public LoadSettings {
 protected:
  [[nodiscard]] Result<std::vector<std::string>> salvage() const {
    return salvage_runtimes(std::nullopt, paths_);
  }
};

TEST_F(SalvageRuntimes, GivesTheDefaultsWhereNoFileNamesThem) {
  const std::vector<std::string> defaults = {"/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun",
                                             "/usr/libexec/crio/crun"};
  auto runtimes = salvage();
  ASSERT_TRUE(runtimes) << runtimes.error().message;
  EXPECT_EQ(*runtimes, defaults);
  write("podqos.json", R"({"onErorr": "reject"})");
  runtimes = salvage();
  ASSERT_TRUE(runtimes) << runtimes.error().message;
  EXPECT_EQ(*runtimes, defaults);
}

TEST_F(SalvageRuntimes, LetsTheLastFileThatNamesThemCount) {
  write("podqos.json", R"({"runtimes": ["/main"], "onErorr": "reject"})");
  write("conf.d/20-b.json", R"({"runtimes": ["/second"]})");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  write("conf.d/30-c.json", R"({"enabled": "perhaps"})");
  const auto runtimes = salvage();
  ASSERT_TRUE(runtimes) << runtimes.error().message;
  EXPECT_THAT(*runtimes, ElementsAre("/second"));
}

TEST_F(SalvageRuntimes, LeavesADoubtToALaterFile) {
  write("podqos.json", R"({"runtime": ["/main"]})");
  auto runtimes = salvage();
  ASSERT_FALSE(runtimes);
  EXPECT_THAT(runtimes.error().message, HasSubstr("podqos.json: field runtime"));
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  runtimes = salvage();
  ASSERT_TRUE(runtimes) << runtimes.error().message;
  EXPECT_THAT(*runtimes, ElementsAre("/first"));
  write("conf.d/20-b.json", R"({"runtimes": )");
  runtimes = salvage();
  ASSERT_FALSE(runtimes);
  EXPECT_THAT(runtimes.error().message, HasSubstr("20-b.json: malformed JSON"));
}

TEST_F(SalvageRuntimes, RefusesAFileThatCannotBeBelieved) {
  write("podqos.json", R"({"runtimes": ["/main"]})");
  write("conf.d/10-a.json", R"({"runtimes": ["/first"]})");
  ASSERT_EQ(::chmod(paths_.file.c_str(), 0666), 0);
  const auto runtimes = salvage();
  ASSERT_FALSE(runtimes);
  EXPECT_EQ(runtimes.error().code, ErrorCode::kPermission);
}

TEST_F(SalvageRuntimes, RefusesANamedFileThatIsMissing) {
  const auto runtimes = salvage_runtimes(root_ + "/absent.json", paths_);
  ASSERT_FALSE(runtimes);
  EXPECT_EQ(runtimes.error().code, ErrorCode::kNotFound);
}

TEST_F(LoadSettings, AnInspectionNamesAllErrorsAndGoesOn) {
  write("podqos.json", R"({"nodememory": "1Gi", "podPidsLimit": 7, "log": {"Level": "info"}})");
  write("conf.d/10-broken.json", "{");
  write("conf.d/20-open.json", R"({"enabled": false})");
  ASSERT_EQ(::chmod((root_ + "/conf.d/20-open.json").c_str(), 0666), 0);
  write("conf.d/30-good.json", R"({"cgroupRoot": "/x"})");
  write("conf.d/40-site.yaml", "enabled: false");
  write("conf.d/README", "garbage");
  const ConfigurationReport report = inspect_configuration(std::nullopt, paths_);
  EXPECT_THAT(report.errors,
              ElementsAre(AllOf(HasSubstr("/podqos.json: "), HasSubstr("nodeMemory")),
                          AllOf(HasSubstr("/podqos.json: "), HasSubstr("log.level")),
                          HasSubstr("/conf.d/10-broken.json: "),
                          AllOf(HasSubstr("/conf.d/20-open.json: "), HasSubstr("chmod go-w"))));
  EXPECT_THAT(report.files, ElementsAre(root_ + "/podqos.json", root_ + "/conf.d/10-broken.json",
                                        root_ + "/conf.d/30-good.json"));
  EXPECT_THAT(report.ignored, ElementsAre(root_ + "/conf.d/40-site.yaml"));
  EXPECT_EQ(report.settings.pod_pids_limit, 7);
  EXPECT_EQ(report.settings.cgroup_root, "/x");
  EXPECT_TRUE(report.settings.enabled);
}

TEST_F(LoadSettings, AnInspectionNamesAFileThatIsMissing) {
  const ConfigurationReport report = inspect_configuration(root_ + "/none.json", paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("none.json")));
  EXPECT_EQ(report.settings, core::Settings{});
}

TEST_F(LoadSettings, AnInspectionNamesADirectoryThatOthersMayWrite) {
  write("conf.d/10-a.json", R"({"enabled": false})");
  ASSERT_EQ(::chmod((root_ + "/conf.d").c_str(), 0777), 0);
  const ConfigurationReport report = inspect_configuration(std::nullopt, paths_);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("conf.d: writable by group or others")));
  EXPECT_TRUE(report.settings.enabled);
}

}  // namespace
}  // namespace podqos::app
