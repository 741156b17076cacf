#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/cli/command.h"

namespace podqos::ctl {
namespace {

/// What main() ends with exit status 2 for.
struct UsageErrorCase {
  const char* name;
  void (*add)(Cli& cli);
  const char* line;
  const char* says;
};
class UsageError : public testing::TestWithParam<UsageErrorCase> {};
TEST_P(UsageError, IsFoundBeforeAnythingIsDone) {
  Cli cli;
  GetParam().add(cli);
  try {
    cli.app.parse(GetParam().line);
    ADD_FAILURE() << "no usage error";
  } catch (const CLI::ValidationError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(GetParam().says));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Table, UsageError,
    testing::ValuesIn<UsageErrorCase>({
        {"Requests", add_resize, "resize web --requests cpu=x",
         "--requests: cpu: \"x\" is not a quantity: "},
        {"Limits", add_resize, "resize web --limits nonsense",
         "--limits: \"nonsense\": expected name=quantity"},
        {"Since", add_events, "events --since nonsense",
         "--since: expected a time such as 10m, 15:04, today, 2026-01-31 or \"2026-01-31 15:04\", "
         "found nonsense"},
        {"ThisMachineAsTree", add_configure, "configure crio --root / --engine-version 1.30",
         "--root: expected a tree other than /"},
        {"ThisMachineByAnotherName", add_configure, "configure crio --root /usr/..",
         "--root: expected a tree other than /"},
    }),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace podqos::ctl
