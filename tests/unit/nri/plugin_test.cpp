#include "nri/plugin.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "nri/exposition.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;

TEST_F(PluginTest, TakesTheConfigurationOfTheRuntimeThatStartsIt) {
  ConfigureRequest request;
  request.runtime_name = "containerd";
  request.runtime_version = "v2.1.0";
  request.config = R"({"podPidsLimit": 77})";
  ASSERT_TRUE(plugin().configure(request, kNoBudget));
  EXPECT_EQ(configuration().settings().pod_pids_limit, 77);
  EXPECT_THAT(log(), HasSubstr("configured by containerd v2.1.0"));
}

TEST_F(PluginTest, RefusesABadConfigurationOfTheRuntime) {
  ConfigureRequest request;
  request.config = R"({"podPidLimit": 77})";
  const auto refused = plugin().configure(request, kNoBudget);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podPidsLimit"));
  EXPECT_EQ(configuration().settings().pod_pids_limit, std::nullopt);
}

TEST_F(PluginTest, CountsEachRequestOfTheRuntime) {
  EXPECT_TRUE(plugin().configure({}, kNoBudget));
  EXPECT_TRUE(plugin().synchronize({}, kNoBudget));
  for (std::size_t i = 2; i < kRequests.size(); ++i)
    EXPECT_TRUE(plugin().handle(static_cast<Request>(i), {}, kNoBudget));
  const std::string shown = test::text_of(metrics());
  for (const RequestKind& request : kRequests)
    EXPECT_THAT(shown, HasSubstr(cat("podqos_nri_request_duration_seconds_count{request=\"",
                                     request.name, "\"} 1\n")));
}

TEST_F(PluginTest, CountsAConfigurationThatItRefuses) {
  ConfigureRequest request;
  request.config = "{";
  const auto refused = plugin().configure(request, kNoBudget);
  ASSERT_FALSE(refused);
  EXPECT_THAT(test::text_of(metrics()),
              HasSubstr(cat("podqos_errors_total{code=\"", format_error_code(refused.error().code),
                            "\"} 1\n")));
}

TEST_F(PluginTest, DoesNothingAfterTheFact) {
  const auto sandbox = pod("1", start_process(), kSmall);
  const auto both = event(sandbox, container(sandbox, "app", kSmall));
  for (const Request request : {Request::kPostCreateContainer, Request::kPostStartContainer,
                                Request::kPostUpdateContainer, Request::kPostUpdatePodSandbox})
    EXPECT_EQ(plugin().handle(request, both, kNoBudget), "");
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, AdmitsWhatItCannotPlace) {
  const auto sandbox = broken(pod("1", start_process()));
  const auto adjustment = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_TRUE(adjustment);
  EXPECT_EQ(adjustment->ByteSizeLong(), 0U);
  EXPECT_TRUE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  EXPECT_THAT(log(), HasSubstr("create container: "));
  EXPECT_THAT(log(), HasSubstr("run pod: "));
  EXPECT_FALSE(temporary().has("state"));
}

TEST_F(PluginTest, RejectsWhatItCannotPlaceIfItShall) {
  reconfigure(R"(, "onError": "reject")");
  const auto sandbox = broken(pod("1", start_process()));
  const auto refused = create(sandbox, container(sandbox, "app", kSmall));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("podqos.io/pod"));
  EXPECT_FALSE(plugin().run_pod_sandbox(event(sandbox), kNoBudget));
  api::UpdateContainerRequest update;
  *update.mutable_pod() = sandbox;
  *update.mutable_container() = container(sandbox, "app");
  update.mutable_container()->set_pid(sandbox.pid());
  EXPECT_FALSE(
      plugin().update_container(test::event_of(Request::kUpdateContainer, update), kNoBudget));
}

}  // namespace
}  // namespace podqos::nri
