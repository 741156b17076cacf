#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "ctl/command.h"
#include "ctl/table.h"

namespace {

using podqos::ctl::Command;
using podqos::ctl::fill;
using podqos::ctl::Globals;

constexpr std::size_t kWidth = 80;

/// A name and the text about it, which begins at `column`, below a name that does not end before.
std::string row(std::string_view name, std::string_view text, std::size_t column) {
  constexpr std::string_view kName = "  ";
  constexpr std::string_view kRestOfName = "      ";
  std::string out = podqos::cat(kName, fill(name, kRestOfName, kWidth).substr(kRestOfName.size()));
  if (text.empty()) return out;
  const std::string about = fill(text, std::string(column, ' '), kWidth);
  if (out.size() > column) return out + about;
  out.pop_back();
  return out + about.substr(out.size());
}

/// The text of --help as CLI11 makes it, in lines of at most 80 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_description(const CLI::App* app) const override {
    return fill(app->get_description(), "", kWidth);
  }
  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override {
    return row(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option), get_column_width());
  }
  [[nodiscard]] std::string make_subcommand(const CLI::App* sub) const override {
    return row(sub->get_name(), sub->get_description(), get_column_width());
  }
  [[nodiscard]] std::string make_footer(const CLI::App* app) const override {
    return fill(app->get_footer(), "", kWidth);
  }
};

/// The subcommand `version`, and --version.
int print_version() {
  return podqos::ctl::finish(podqos::ctl::print("podqosctl " PODQOS_VERSION "\n"));
}

/// All subcommands, in the order of --help.
std::vector<Command> add_commands(CLI::App& app, const Globals& globals) {
  using namespace podqos::ctl;  // NOLINT(google-build-using-namespace): the list below is all of it
  std::vector<Command> commands = {add_explain(app, globals),   add_annotate(app),
                                   add_status(app, globals),    add_tree(app, globals),
                                   add_reconcile(app, globals), add_configure(app),
                                   add_config(app, globals)};
  CLI::App* version = app.add_subcommand("version", "Print the version");
  commands.push_back({.app = version, .run = print_version});
  return commands;
}

/// Whether a subcommand reads the configuration.
bool reads_configuration(const CLI::App& command) {
  constexpr std::array<std::string_view, 3> kOthers = {"annotate", "configure", "version"};
  return std::ranges::find(kOthers, command.get_name()) == kOthers.end();
}

/// Adds the option that they share to the --help of all subcommands that read the configuration.
void add_footer(CLI::App& app) {
  app.footer("Also accepts --config FILE, which is read instead of /etc/podqos.");
  for (CLI::App* sub : app.get_subcommands([](CLI::App* /*sub*/) { return true; }))
    add_footer(*sub);
}

/// The innermost subcommand on the command line.
const CLI::App& named(const CLI::App& app) {
  const auto found = app.get_subcommands();
  return found.empty() ? app : named(*found.front());
}

/// Reports the unknown word in the place of a subcommand; CLI11 only reports that one is missing.
/// @return false if there is no such word.
bool log_unknown_command(const CLI::App& app) {
  const CLI::App& parent = named(app);
  const std::vector<std::string> words = app.remaining(true);
  if (parent.get_require_subcommand_min() == 0 || words.empty()) return false;
  if (words.front().starts_with('-')) {
    podqos::ctl::warn(podqos::cat("unknown option \"", podqos::printable(words.front()),
                                  "\"; use --help to list the options"));
    return true;
  }
  const auto commands = parent.get_subcommands([](const CLI::App* /*sub*/) { return true; });
  std::vector<std::string> names(commands.size());
  std::ranges::transform(commands, names.begin(), [](const auto* sub) { return sub->get_name(); });
  podqos::ctl::warn(
      podqos::cat("unknown command \"", podqos::printable(words.front()), "\"",
                  podqos::codec::hint_for(words.front(), {names.begin(), names.end()})));
  return true;
}

/// Parses the command line and runs the chosen subcommand.
/// @return the exit status.
int run(int argc, char** argv) {
  CLI::App app{"Inspect, explain and repair the pod cgroups of this node.", "podqosctl"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "podqosctl " PODQOS_VERSION);
  app.require_subcommand(1);
  app.footer("Exit status: 0 done, 1 refused or failed, 2 usage error. See podqosctl(1).");
  Globals globals;
  app.add_option("--config", globals.config,
                 "Read this configuration file instead of /etc/podqos/podqos.json and conf.d");
  const std::vector<Command> commands = add_commands(app, globals);
  for (const Command& command : commands)
    command.app->fallthrough();
  for (const Command& command : commands)
    if (reads_configuration(*command.app)) add_footer(*command.app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return podqos::ctl::finish(podqos::ctl::print(app.help()));
  } catch (const CLI::CallForVersion&) {
    return print_version();
  } catch (const CLI::ParseError& error) {
    if (!log_unknown_command(app)) app.exit(error);
    return podqos::ctl::kUsage;
  }
  const auto chosen =
      std::ranges::find_if(commands, [](const Command& command) { return command.app->parsed(); });
  if (chosen == commands.end()) return podqos::ctl::kUsage;
  if (globals.config && !reads_configuration(*chosen->app)) {
    podqos::ctl::warn(
        podqos::cat("--config: podqosctl ", chosen->app->get_name(), " reads no configuration"));
    return podqos::ctl::kUsage;
  }
  const auto status = chosen->run();
  return status ? *status : podqos::ctl::log_failure(status.error());
}

}  // namespace

/// An exception, from CLI11 or the allocator, ends the program with kRefused and its text.
int main(int argc, char** argv) {
  ::umask(S_IRWXG | S_IRWXO);
  try {
    return run(argc, argv);
  } catch (const std::exception& exception) {
    podqos::ctl::warn(exception.what());
    return podqos::ctl::kRefused;
  }
}
