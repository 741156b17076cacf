#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "ctl/cli/command.h"
#include "ctl/cli/json.h"

namespace podqos::ctl {
namespace {

/// Says whether a file is valid by itself, or all that count.
int print_report(const app::ConfigurationReport& report) {
  for (const std::string& error : report.errors)
    warn(error);
  for (const std::string& ignored : report.ignored)
    warn(cat("warning: ", ignored, ": not read: the names of files in conf.d end in .json"));
  if (!report.errors.empty()) return kRefused;
  std::string text;
  for (const std::string& path : report.files)
    text += cat(path, ": ok\n");
  if (text.empty()) text = "/etc/podqos: ok, no files: the built-in settings count\n";
  if (!report.settings.enabled) text += cat(kSwitchedOff, "\n");
  return print(text);
}

int check(const std::vector<std::string>& files, const std::optional<std::string>& config) {
  if (files.empty()) {
    const app::ConfigurationReport report = app::inspect_configuration(config);
    const int status = print_report(report);
    if (!report.errors.empty())
      warn(cat("until it is corrected, ", app::describe_source(report.source)));
    return status;
  }
  int worst = kDone;
  for (const std::string& file : files)
    if (print_report(app::inspect_configuration(file)) != kDone) worst = kRefused;
  return worst;
}

}  // namespace

void add_config(Cli& cli) {
  CLI::App* sub = cli.app.add_subcommand("config", "Show or check the configuration");
  sub->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, const auto& run) {
    CLI::App* nested = sub->add_subcommand(name, description);
    nested->callback([&cli, run]() {
      const auto narrowed = narrow({});
      cli.status = narrowed ? run() : fail(narrowed.error());
    });
    return nested;
  };
  add("show", "Print the effective settings, every field, as JSON", [&cli]() -> Result<int> {
    PODQOS_ASSIGN(const auto settings, settings_in_force(cli));
    return print(codec::format_settings(settings));
  });
  auto files = std::make_shared<std::vector<std::string>>();
  add("check",
      "Check whether each file is a valid configuration; without a file, all files that are in "
      "force",
      [files, &cli]() -> Result<int> { return check(*files, cli.config); })
      ->add_option("FILE", *files, "Configuration files, each checked by itself");
  add("runtimes",
      "Print the candidates of podqos-runtime as JSON, even if something else in the "
      "configuration is wrong",
      [&cli]() -> Result<int> {
        const auto configuration = app::inspect_configuration(cli.config);
        const auto& runtimes = configuration.settings.runtimes;
        if (!runtimes.empty()) return print(dump(runtimes) + "\n");
        return fail(ErrorCode::kInvalidArgument, app::describe_errors(configuration));
      });
}

}  // namespace podqos::ctl
