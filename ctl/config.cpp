#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"
#include "podqos_manual.h"  // generated

namespace podqos::ctl {
namespace {

struct ConfigOptions {
  std::string form = "text";
  std::vector<std::string> files;
};

/// What the manual says of a field: paragraphs, each in one line, with an empty one between them.
std::string manual_text(std::string_view path) {
  constexpr std::string_view kBegin = "\n:   ";
  constexpr std::string_view kIndent = "\n    ";
  std::string_view entry = kManualFields.substr(kManualFields.find(cat("\n**", path, "** (")));
  entry = entry.substr(0, entry.find("\n\n**"));
  entry.remove_prefix(entry.find(kBegin) + kBegin.size());
  std::string text{without_newline(entry)};
  for (std::size_t at = 0; (at = text.find(kIndent, at)) != std::string::npos;)
    text.replace(at, kIndent.size(), text[at - 1] == '\n' ? "\n" : " ");
  return text;
}

/// A field for a terminal, or as a definition list of the manual in pandoc's Markdown.
std::string format_field(const codec::Setting& field, bool markdown) {
  constexpr std::string_view kIndent = "    ";
  constexpr std::string_view kParagraph = "\n\n";
  const std::size_t width = markdown ? 110 : 79;
  const std::string expected = codec::expected_value(field.kind);
  const std::string standard = codec::format_value(field.kind, field.get(core::Settings{}));
  std::string help;
  const std::string text = manual_text(field.path);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view paragraph = rest.substr(0, rest.find(kParagraph));
    rest.remove_prefix(std::min(paragraph.size() + kParagraph.size(), rest.size()));
    help += cat(help.empty() ? "" : "\n", fill(paragraph, kIndent, width));
  }
  if (!markdown) {
    std::erase_if(help, [](char c) { return c == '*' || c == '\\'; });
    return cat(field.path, "\n", fill(cat(expected, "; default ", standard), kIndent, width), help,
               "\n");
  }
  help.front() = ':';
  return cat(
      fill(cat("**", field.path, "** (", expected, "; default *", standard, "*)"), "", width), help,
      "\n");
}

Result<int> show_fields(const ConfigOptions& options) {
  std::string text;
  for (const codec::Setting& field : codec::settings_table())
    text += format_field(field, options.form == "markdown");
  text.pop_back();  // the empty line that separates it from the next
  return finish(print(text));
}

Result<int> show(const Globals& globals) {
  PODQOS_ASSIGN(const auto settings, app::load_settings(globals.config));
  return finish(print(codec::format_settings(settings)));
}

Result<int> show_runtimes(const Globals& globals) {
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
  auto commands = std::make_shared<std::vector<Command>>();
  const auto add = [&](const char* name, const char* description,
                       std::function<Result<int>()> run) {
    CLI::App* nested = sub->add_subcommand(name, description);
    nested->fallthrough();
    commands->push_back({.app = nested, .run = std::move(run)});
    return nested;
  };
  add("show", "Print the effective settings, every field, as JSON",
      [&globals] { return show(globals); });
  add("check",
      "Check whether each file is a valid configuration; without a file, all files that are in "
      "force",
      [options, &globals] { return check(*options, globals); })
      ->add_option("FILE", options->files, "Configuration files, each checked by itself");
  add("runtimes",
      "Print the candidates of podqos-runtime as JSON, even if something else in the "
      "configuration is wrong",
      [&globals] { return show_runtimes(globals); });
  add("fields", "List every field with its type, default and meaning",
      [options] { return show_fields(*options); })
      ->add_option("-o,--output", options->form,
                   "text, or markdown as in the manual page podqos.json(5)")
      ->check(CLI::IsMember({"text", "markdown"}));
  return {.app = sub, .run = [commands]() -> Result<int> {
            PODQOS_TRY(narrow({}));
            const auto chosen = std::ranges::find_if(
                *commands, [](const Command& command) { return command.app->parsed(); });
            return chosen->run();
          }};
}

}  // namespace podqos::ctl
