#include "ctl/node/not_managed.h"

#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/node/runtime_state.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using enum core::EventKind;

/// What runc 1.1 and crun 1.8 have noted, shortened.
TEST(ParseRuntimeState, ReadsThoseOfRuncAndCrun) {
  const RuntimeContainer wanted{
      .id = "a", .bundle = "/b", .pid = Pid{812}, .start_time = StartTime{5'021}};
  EXPECT_EQ(parse_runtime_state("a", R"({"id":"a","init_process_pid":812,"init_process_start":5021,
      "config":{"labels":["maintainer=joe","bundle=/b"]}})"),
            wanted);
  EXPECT_EQ(parse_runtime_state("a", R"({"pid":812,"process-start-time":5021,"bundle":"/b"})"),
            wanted);
}

TEST(ParseRuntimeState, LeavesOutWhatDoesNotRun) {
  for (const char* text : {"[]", "7", R"({"pid":0,"bundle":"/b"})", R"({"pid":"7","bundle":"/b"})"})
    EXPECT_EQ(parse_runtime_state("a", text), std::nullopt) << text;
}

TEST(IsNoted, TellsWhetherARuntimeHasAContainer) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkdir(directory.path("c1").c_str(), 0700), 0);
  EXPECT_TRUE(is_noted("c1", {"/nowhere", directory.path()}));
  EXPECT_FALSE(is_noted("c2", {"/nowhere", directory.path()}));
  EXPECT_THAT(runtime_roots(), Contains("/run/podqos-runc"));  // which configure gives CRI-O
}

TEST(ParseRuntimeState, RefusesWhatIsDamaged) {
  for (const char* text :
       {"", "{", R"({"pid":7})", R"({"pid":7,"bundle":"b"})", R"({"pid":7,"bundle":7})",
        R"({"init_process_pid":7,"config":{"labels":7}})"})
    EXPECT_FALSE(parse_runtime_state("a", text).has_value()) << text;
}

/// The facts of a container of Docker that runs, from the surest to the least sure.
class Explain : public ::testing::Test {
 protected:
  [[nodiscard]] std::string explained() const {
    NotManaged missed;
    explain(missed, {.configuration = configuration_,
                     .failure = failed_ ? &failure_ : nullptr,
                     .refusal = refusal_,
                     .program = program_,
                     .engine = engine_,
                     .had_plugin = had_plugin_});
    return cat(missed.why, " → ", missed.remedy);
  }
  app::ConfigurationReport configuration_;
  core::Event failure_{.kind = kFailed, .text = "driver"};
  bool failed_ = true;
  std::optional<Error> refusal_ = Error{ErrorCode::kInvalidArgument, "unknown annotation"};
  std::string_view program_ = "podqos-runtime";
  core::Engine engine_ = core::Engine::kDocker;
  bool had_plugin_ = false;
};

TEST_F(Explain, SaysWhatIsSurest) {
  configuration_.settings.enabled = false;
  EXPECT_EQ(explained(),
            "podqos failed, and it started all the same: driver → correct what is said there, then "
            "recreate the container");
  failed_ = false;
  EXPECT_EQ(explained(),
            "unknown annotation → correct the annotation, then recreate the container");
  refusal_.reset();
  EXPECT_EQ(explained(),
            "podqos is switched off by \"enabled\": false → remove \"enabled\": false, then "
            "recreate the container");
  configuration_.settings.enabled = true;
  EXPECT_EQ(explained(),
            "its engine called podqos-runtime, which has recorded nothing of it → see journalctl "
            "-t podqos-runtime, then recreate the container");
  program_ = "";
  // It would not be managed if podqos were on, either.
  configuration_.settings.enabled = false;
  EXPECT_EQ(explained(),
            "podqos was not asked when it was created: its runtime was not podqos-runtime, it has "
            "no hook of podqos's → podqosctl configure docker --restart, and start it with "
            "--runtime podqos; or: podqosctl configure docker "
            "--set-as-default --restart, then recreate the container");
  configuration_.settings.enabled = true;
  engine_ = core::Engine::kContainerd;
  EXPECT_THAT(
      explained(),
      HasSubstr("podqos-nri was not connected → podqosctl configure containerd --restart, then"));
  had_plugin_ = true;
  EXPECT_THAT(
      explained(),
      HasSubstr(
          "podqos-nri was not connected → see the check \"plugin\" of podqosctl doctor, then"));
}

TEST(NotManagedText, IsShownWithin80ColumnsWithoutControlCharacters) {
  const std::vector<NotManaged> missed = {
      {.container = {.engine = "podman", .pod_name = "web", .container = "app"},
       .pid = Pid{7},
       .why = "no room: \x1b[2J",
       .remedy = "make room"}};
  EXPECT_EQ(not_managed_text(missed, {.width = 80}),
            "\n"
            "NOT MANAGED  ENGINE  WHY\n"
            "web/app      podman  no room: \\x1b[2J\n"
            "                     fix: make room\n");
  EXPECT_EQ(not_managed_text({}, {}), "");
}

TEST(NotManagedText, ShowsTheNamesOfTheFirstContainers) {
  std::vector<NotManaged> missed;
  for (int each = 1; each <= 22; ++each)
    missed.push_back({.container = {.engine = "containerd",
                                    .uid = "11111111-2222-3333-4444-555555555555",
                                    .container = cat("web-", each)},
                      .why = "unknown annotation " + std::string(90, 'x'),
                      .remedy = "correct the annotation"});
  const std::string text = not_managed_text(missed, {.width = 80});
  EXPECT_THAT(text, HasSubstr("\n11111111-222…5555555/web-1  containerd  unknown annotation\n"));
  EXPECT_THAT(text, HasSubstr("…555555/web-20 "));
  EXPECT_THAT(text, Not(HasSubstr("/web-21")));
  EXPECT_TRUE(text.ends_with("\nand 2 more: podqosctl status -o json\n"));
  for (std::string_view rest = text; !rest.empty();) {
    const std::string line{read_until(rest, '\n')};
    EXPECT_EQ(shorten(line, 80), line);
  }
}

}  // namespace
}  // namespace podqos::ctl
