#include "nri/plugin_configuration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/record_json.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using ::testing::HasSubstr;

class ConfigurationTest : public ::testing::Test {
 protected:
  Configuration load() {
    auto loaded = Configuration::load(
        std::nullopt, {.file = temporary_.path("podqos.json"), .directory = temporary_.path("d")});
    EXPECT_TRUE(loaded) << loaded.error().message;
    return std::move(*loaded);
  }
  /// The file, with a log.
  void write(const std::string& fields) {
    temporary_.write("podqos.json",
                     cat(R"({"log": {"sink": ")", temporary_.path("log"), R"("}, )", fields, "}"));
  }
  TemporaryDirectory temporary_;
};

TEST_F(ConfigurationTest, IsReadAgain) {
  auto configuration = load();
  const core::Settings& settings = configuration.settings();
  EXPECT_EQ(settings.cgroup_root, "/podqos");
  temporary_.write("podqos.json", R"({"cgroupRoot": "/a"})");
  EXPECT_EQ(settings.cgroup_root, "/podqos");
  configuration.reload();
  EXPECT_EQ(settings.cgroup_root, "/a");
}

TEST_F(ConfigurationTest, FollowsItsFiles) {
  write(R"("podPidsLimit": 1)");
  auto configuration = load();
  const auto limit = [&] {
    configuration.follow();
    return configuration.settings().pod_pids_limit;
  };
  EXPECT_EQ(limit(), 1);
  EXPECT_FALSE(temporary_.has("log"));
  write(R"("podPidsLimit": 2)");
  EXPECT_EQ(limit(), 2);
  ASSERT_EQ(::mkdir(temporary_.path("d").c_str(), 0755), 0);
  temporary_.write("d/10.json", R"({"podPidsLimit": 3})");
  EXPECT_EQ(limit(), 3);
  temporary_.write("d/new", R"({"podPidsLimit": 4})");
  ASSERT_EQ(::rename(temporary_.path("d/new").c_str(), temporary_.path("d/10.json").c_str()), 0);
  EXPECT_EQ(limit(), 4);
  temporary_.write("d/10.json", "{");
  EXPECT_EQ(limit(), 4);
  EXPECT_EQ(limit(), 4);
  ASSERT_EQ(::unlink(temporary_.path("d/10.json").c_str()), 0);
  EXPECT_EQ(limit(), 2);
  const std::string log = temporary_.read("log");
  EXPECT_EQ(std::ranges::count(log, '\n'), 5) << log;
  EXPECT_THAT(log, HasSubstr("error: configuration not reloaded, keeping the previous one: " +
                             temporary_.path("d/10.json")));
}

TEST_F(ConfigurationTest, TakesWhatOtherProgramsFoundValid) {
  ASSERT_EQ(::mkdir(temporary_.path("state").c_str(), 0700), 0);
  const std::string state = cat(R"("stateDir": ")", temporary_.path("state"), R"(", )");
  write(state + R"("podPidsLimit": 1)");
  auto configuration = load();
  core::NodeState tiers;
  tiers.settings = configuration.settings();
  tiers.settings->pod_pids_limit = 2;
  temporary_.write("state/node.json", codec::format_node(tiers));
  write(state + R"("podPidsLimit": "three")");
  configuration.follow();
  EXPECT_EQ(configuration.settings().pod_pids_limit, 2);
  EXPECT_THAT(temporary_.read("log"), HasSubstr("error: configuration not reloaded"));
}

TEST_F(ConfigurationTest, StaysWhenTheNewOneIsBadOrHasAnotherStateDirectory) {
  write(R"("cgroupRoot": "/a")");
  auto configuration = load();
  for (const auto& [bad, message] :
       {std::pair{R"("cgroupDriver": "x")", temporary_.path("podqos.json")},
        {R"("stateDir": "/run/other")",
         "stateDir: cannot change from /run/podqos to /run/other while podqos-nri is running: "
         "restart it"}}) {
    write(std::string{R"("cgroupRoot": "/b", )"} + bad);
    configuration.reload();
    EXPECT_THAT(temporary_.read("log"),
                HasSubstr("not reloaded, keeping the previous one: " + std::string{message}));
    EXPECT_EQ(configuration.settings().cgroup_root, "/a");
  }
}

TEST_F(ConfigurationTest, KeepsTheAddressOfTheMetrics) {
  const std::string log = R"("log": {"sink": ")" + temporary_.path("log") + R"("})";
  temporary_.write("podqos.json", R"({"nri": {"metrics": "127.0.0.1:9464"}, )" + log + "}");
  auto configuration = load();
  temporary_.write("podqos.json",
                   R"({"nri": {"metrics": "[::1]:1"}, "podPidsLimit": 5, )" + log + "}");
  configuration.reload();
  EXPECT_EQ(configuration.settings().pod_pids_limit, 5);
  EXPECT_EQ(configuration.settings().metrics,
            (core::MetricsAddress{core::TcpPort{.host = "127.0.0.1", .port = 9464}}));
  EXPECT_THAT(
      temporary_.read("log"),
      HasSubstr("warning: nri.metrics: keeping 127.0.0.1:9464; to use [::1]:1, set it in "));
}

TEST_F(ConfigurationTest, OpensTheLogAnew) {
  auto configuration = load();
  app::Log& log = configuration.log();
  temporary_.write("podqos.json",
                   R"({"log": {"sink": ")" + temporary_.path("log") + R"(", "level": "debug"}})");
  configuration.reload();
  log.debug("first");
  EXPECT_THAT(temporary_.read("log"), HasSubstr("debug: first"));
  // As logrotate does it.
  ASSERT_EQ(::rename(temporary_.path("log").c_str(), temporary_.path("log.1").c_str()), 0);
  configuration.reload();
  log.debug("second");
  EXPECT_THAT(temporary_.read("log"), HasSubstr("debug: second"));
}

TEST_F(ConfigurationTest, NeedsAGoodOneToStart) {
  EXPECT_FALSE(Configuration::load(temporary_.path("none.json")));
}

}  // namespace
}  // namespace podqos::nri
