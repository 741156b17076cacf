#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "ctl/cli/command.h"
#include "ctl/cli/completion.h"
#include "ctl/cli/table.h"

namespace podqos::ctl {
namespace {

constexpr const char* kVersion = "podqosctl " PODQOS_VERSION "\n";

/// The text of --help as CLI11 makes it, in lines of at most 80 columns.
std::string folded(std::string_view help) {
  constexpr std::size_t kWidth = 80;
  const std::string column(30, ' ');  // where CLI11 puts what an option does
  std::string out;
  while (!help.empty()) {
    const std::string_view line = read_until(help, '\n');
    out += fold(std::string{line}, line.starts_with(' ') ? column : "", kWidth);
  }
  return out;
}

/// Reports a word that is no command, option or argument; in the place of a subcommand CLI11 only
/// reports that one is missing.
/// @return false if there is no such word.
bool log_unknown_word(const CLI::App& app) {
  const CLI::App* parent = &app;
  while (!parent->get_subcommands().empty())
    parent = parent->get_subcommands().front();
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return false;
  const std::string& word = words.front();
  const bool option = word.starts_with('-');
  const bool command = !option && parent->get_require_subcommand_min() > 0;
  std::vector<std::string> names;
  for (const CLI::App* sub : parent->get_subcommands([](const CLI::App* /*sub*/) { return true; }))
    names.push_back(sub->get_name());
  warn(cat(option    ? "unknown option \""
           : command ? "unknown command \""
                     : "unexpected argument \"",
           printable(word), "\"",
           command ? codec::hint_for(word, {names.begin(), names.end()})
                   : "; use --help to list the options"));
  return true;
}

/// Refuses empty values of options and arguments, which are variables of scripts that are not set.
void refuse_empty(const CLI::App& app) {
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* /*option*/) { return true; }))
    if (std::ranges::find(option->results(), "") != option->results().end())
      throw CLI::ValidationError(option->get_name(),
                                 cat("expected ", option->get_type_name(), ", found \"\""));
  for (const CLI::App* sub : app.get_subcommands())
    refuse_empty(*sub);
}

/// Adds all subcommands, in the order of --help.
void add_subcommands(Cli& cli) {
  cli.app.footer("Also accepts --config FILE, which is read instead of /etc/podqos.");
  add_explain(cli);
  add_annotate(cli);
  add_status(cli);
  add_describe(cli);
  add_tree(cli);
  add_top(cli);
  add_events(cli);
  add_why(cli);
  add_metrics(cli);
  add_doctor(cli);
  add_report(cli);
  add_reconcile(cli);
  add_resize(cli);
  add_configure(cli);
  add_config(cli);
  add_version(cli);
  cli.app.footer("Exit status: 0 done, 1 refused or failed, 2 usage error. See podqosctl(1).");
  cli.app.parse_complete_callback([&cli] {
    refuse_empty(cli.app);
    const std::string& name = cli.app.get_subcommands().front()->get_name();
    if (cli.config && !reads_configuration(*cli.app.get_subcommands().front()))
      throw CLI::ValidationError("--config", cat("podqosctl ", name, " reads no configuration"));
  });
}

/// Parses the command line, which runs the chosen subcommand.
/// @return the exit status.
int run(int argc, char** argv) {
  Cli cli;
  CLI::App& app = cli.app;
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--config", cli.config,
                 "Read this configuration file instead of /etc/podqos/podqos.json and conf.d")
      ->type_name("FILE");
  add_subcommands(cli);
  const std::span<char*> words{argv, static_cast<std::size_t>(argc)};
  if (words.size() > 1 && words[1] == std::string_view{kComplete})
    return print(completions(app, {words.begin() + 2, words.end()}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return print(folded(app.help()));
  } catch (const CLI::CallForVersion&) {
    return print(kVersion);
  } catch (const CLI::ParseError& error) {
    if (!log_unknown_word(app)) warn(cat(error.what(), "; use --help to list the options"));
    return kUsage;
  }
  return cli.status ? *cli.status : log_failure(cli.status.error());
}

}  // namespace
}  // namespace podqos::ctl

/// An exception, from CLI11 or the allocator, ends the program with kRefused and its text.
int main(int argc, char** argv) {
  ::umask(S_IWGRP | S_IWOTH);
  try {
    return podqos::ctl::run(argc, argv);
  } catch (const std::exception& exception) {
    podqos::ctl::warn(exception.what());
    return podqos::ctl::kRefused;
  }
}
