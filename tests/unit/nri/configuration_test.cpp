#include "nri/configuration.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConfigurationTest : public ::testing::Test {
 protected:
  Configuration load() {
    auto loaded = Configuration::load(
        std::nullopt, {.file = temporary_.path("podqos.json"), .directory = temporary_.path("d")});
    EXPECT_TRUE(loaded) << loaded.error().message;
    return std::move(*loaded);
  }
  TemporaryDirectory temporary_;
};

TEST_F(ConfigurationTest, IsReadAgain) {
  auto configuration = load();
  const core::Settings& settings = configuration.settings();
  EXPECT_EQ(settings.cgroup_root, "/podqos");
  temporary_.write("podqos.json", R"({"cgroupRoot": "/a"})");
  EXPECT_EQ(settings.cgroup_root, "/podqos");
  EXPECT_TRUE(configuration.reload());
  EXPECT_EQ(settings.cgroup_root, "/a");
}

TEST_F(ConfigurationTest, StaysWhenTheNewOneIsBadOrHasAnotherStateDirectory) {
  temporary_.write("podqos.json", R"({"cgroupRoot": "/a"})");
  auto configuration = load();
  for (const auto& [bad, message] :
       {std::pair{R"("cgroupDriver": "x")", temporary_.path("podqos.json")},
        {R"("stateDir": "/run/other")",
         "stateDir: cannot change from /run/podqos to /run/other while podqos-nri is running: "
         "restart it"}}) {
    temporary_.write("podqos.json", std::string{R"({"cgroupRoot": "/b", )"} + bad + "}");
    const auto refused = configuration.reload();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, StartsWith(message));
    EXPECT_EQ(configuration.settings().cgroup_root, "/a");
  }
}

TEST_F(ConfigurationTest, KeepsTheAddressOfTheMetrics) {
  const std::string log = R"("log": {"sink": ")" + temporary_.path("log") + R"("})";
  temporary_.write("podqos.json", R"({"nri": {"metrics": "127.0.0.1:9464"}, )" + log + "}");
  auto configuration = load();
  temporary_.write("podqos.json",
                   R"({"nri": {"metrics": "[::1]:1"}, "podPidsLimit": 5, )" + log + "}");
  EXPECT_TRUE(configuration.reload());
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
  EXPECT_TRUE(configuration.reload());
  log.debug("first");
  EXPECT_THAT(temporary_.read("log"), HasSubstr("debug: first"));
  // As logrotate does it.
  ASSERT_EQ(::rename(temporary_.path("log").c_str(), temporary_.path("log.1").c_str()), 0);
  EXPECT_TRUE(configuration.reload());
  log.debug("second");
  EXPECT_THAT(temporary_.read("log"), HasSubstr("debug: second"));
}

TEST_F(ConfigurationTest, HasTheRuntimesTextOnTop) {
  temporary_.write("podqos.json", R"({"cgroupRoot": "/a", "podPidsLimit": 5})");
  auto configuration = load();
  EXPECT_TRUE(configuration.lay_over(R"({"cgroupRoot": "/b"})"));
  EXPECT_EQ(configuration.settings().cgroup_root, "/b");
  EXPECT_EQ(configuration.settings().pod_pids_limit, 5);
  temporary_.write("podqos.json", R"({"cgroupRoot": "/c", "podPidsLimit": 6})");
  EXPECT_TRUE(configuration.reload());
  EXPECT_EQ(configuration.settings().cgroup_root, "/b");
  EXPECT_EQ(configuration.settings().pod_pids_limit, 6);
}

TEST_F(ConfigurationTest, RefusesABadTextOfTheRuntime) {
  auto configuration = load();
  const auto refused = configuration.lay_over(R"({"cgroupRot": "/b"})");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("configuration from the runtime: "));
  EXPECT_TRUE(configuration.reload());
  EXPECT_TRUE(configuration.lay_over(""));
}

TEST_F(ConfigurationTest, IsNotReadAgainForTheSameText) {
  auto configuration = load();
  EXPECT_TRUE(configuration.lay_over(R"({"podPidsLimit": 7})"));
  temporary_.write("podqos.json", "{");
  EXPECT_TRUE(configuration.lay_over(R"({"podPidsLimit": 7})"));
  EXPECT_FALSE(configuration.lay_over(""));
  EXPECT_EQ(configuration.settings().pod_pids_limit, 7);
}

TEST_F(ConfigurationTest, NeedsAGoodOneToStart) {
  EXPECT_FALSE(Configuration::load(temporary_.path("none.json")));
}

}  // namespace
}  // namespace podqos::nri
