#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

struct ConfigOptions {
  std::string form = "text";
  std::vector<std::string> files;
};

/// A definition list of the manual, in pandoc's Markdown.
std::string format_markdown(const codec::SettingHelp& field) {
  constexpr std::size_t kWidth = 110;
  constexpr std::string_view kIndent = "    ";
  const std::string term =
      fill(cat("**", field.path, "** (", field.expected, "; default *", field.default_value, "*)"),
           "", kWidth);
  std::string help = fill_paragraphs(field.help, kIndent, kWidth);
  help.front() = ':';
  return cat(term, help, "\n");
}

std::string format_text(const codec::SettingHelp& field) {
  constexpr std::size_t kWidth = 79;
  constexpr std::string_view kIndent = "    ";
  std::string help = fill_paragraphs(field.help, kIndent, kWidth);
  std::erase_if(help, [](char c) { return c == '*' || c == '\\'; });
  return cat(field.path, "\n",
             fill(cat(field.expected, "; default ", field.default_value), kIndent, kWidth), help,
             "\n");
}

Result<int> show_fields(const ConfigOptions& options) {
  PODQOS_TRY(narrow({}));
  std::string text;
  for (const codec::SettingHelp& field : codec::describe_settings())
    text += options.form == "markdown" ? format_markdown(field) : format_text(field);
  text.pop_back();  // the empty line that separates it from the next
  return finish(print(text));
}

Result<int> show(const Globals& globals) {
  PODQOS_TRY(narrow({}));
  PODQOS_ASSIGN(const auto settings, app::load_settings(globals.config));
  const std::string text = codec::format_settings(settings);
  return finish(print(text) && (text.ends_with('\n') || print("\n")));
}

Result<int> show_runtimes(const Globals& globals) {
  PODQOS_TRY(narrow({}));
  PODQOS_ASSIGN(const auto runtimes, app::salvage_runtimes(globals.config));
  return finish(print(dump(runtimes) + "\n"));
}

/// Checks one file by itself, or everything that counts when no file is named.
int check_one(const std::optional<std::string>& file) {
  const app::ConfigurationReport report = app::inspect_configuration(file);
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
  return finish(print(text));
}

Result<int> check(const ConfigOptions& options, const Globals& globals) {
  PODQOS_TRY(narrow({}));
  if (options.files.empty()) return check_one(globals.config);
  int worst = kDone;
  for (const std::string& file : options.files)
    if (check_one(file) != kDone) worst = kRefused;
  return worst;
}

}  // namespace

Command add_config(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* sub = app.add_subcommand("config", "Show or check the configuration");
  sub->require_subcommand(1);
  CLI::App* show_command =
      sub->add_subcommand("show", "Print the effective settings, every field, as JSON");
  CLI::App* check_command = sub->add_subcommand(
      "check",
      "Check whether each file is a valid configuration; without a file, all files that are in "
      "force");
  check_command->add_option("FILE", options->files, "Configuration files, each checked by itself");
  CLI::App* runtimes_command = sub->add_subcommand(
      "runtimes",
      "Print the candidates of podqos-runtime as JSON, even if something else in the "
      "configuration is wrong");
  CLI::App* fields_command =
      sub->add_subcommand("fields", "List every field with its type, default and meaning");
  fields_command
      ->add_option("-o,--output", options->form,
                   "text, or markdown as in the manual page podqos.json(5)")
      ->check(CLI::IsMember({"text", "markdown"}));
  fields_command->fallthrough();
  show_command->fallthrough();
  runtimes_command->fallthrough();
  check_command->fallthrough();
  return {.app = sub, .run = [options, &globals, show_command, runtimes_command, fields_command] {
            if (fields_command->parsed()) return show_fields(*options);
            if (runtimes_command->parsed()) return show_runtimes(globals);
            return show_command->parsed() ? show(globals) : check(*options, globals);
          }};
}

}  // namespace podqos::ctl
