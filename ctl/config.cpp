#include <memory>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "ctl/command.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

struct Options {
  std::string output = "json";
  std::vector<std::string> files;
};

int show(const Globals& globals) {
  if (auto status = narrow({}); !status) return log_failure(status.error());
  const auto settings = app::load_settings(globals.config);
  if (!settings) return log_failure(settings.error());
  const std::string text = codec::format_settings(*settings);
  return finish(print(text) && (text.ends_with('\n') || print("\n")));
}

int show_runtimes(const Globals& globals) {
  if (auto status = narrow({}); !status) return log_failure(status.error());
  const auto runtimes = app::salvage_runtimes(globals.config);
  if (!runtimes) return log_failure(runtimes.error());
  std::string text;
  for (const std::string& path : *runtimes)
    text += cat(text.empty() ? "[" : ", ", json_quote(path));
  return finish(print(cat(text, "]\n")));
}

/// Checks one file by itself, or everything that counts when no file is named.
int check_one(const std::optional<std::string>& file) {
  const auto settings = app::load_settings(file);
  if (!settings) return log_failure(settings.error());
  return finish(print(cat(file ? *file : "/etc/podqos", ": ok\n")));
}

int check(const Options& options, const Globals& globals) {
  if (auto status = narrow({}); !status) return log_failure(status.error());
  if (options.files.empty()) return check_one(globals.config);
  int worst = kDone;
  for (const std::string& file : options.files)
    if (check_one(file) != kDone) worst = kRefused;
  return worst;
}

}  // namespace

Command add_config(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("config", "Show or check the configuration");
  sub->require_subcommand(1);
  CLI::App* show_command =
      sub->add_subcommand("show", "Print the effective settings, every field, as JSON");
  show_command->add_option("-o,--output", options->output, "json, the only form")
      ->check(CLI::IsMember({"json"}));
  CLI::App* check_command = sub->add_subcommand(
      "check",
      "Say of each file whether it is a valid configuration; without a file, of all that "
      "are in force");
  check_command->add_option("FILE", options->files, "Configuration files, each taken by itself");
  CLI::App* runtimes_command = sub->add_subcommand(
      "runtimes",
      "Print the candidates of podqos-runtime as JSON, even if something else in the "
      "configuration is wrong");
  show_command->fallthrough();
  runtimes_command->fallthrough();
  check_command->fallthrough();
  return {.app = sub, .run = [options, &globals, show_command, runtimes_command] {
            if (runtimes_command->parsed()) return show_runtimes(globals);
            return show_command->parsed() ? show(globals) : check(*options, globals);
          }};
}

}  // namespace podqos::ctl
