#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/text.h"
#include "ctl/command.h"

namespace {

using podqos::ctl::Command;
using podqos::ctl::Globals;

int print_version() {
  return podqos::ctl::finish(podqos::ctl::print("podqosctl " PODQOS_VERSION "\n"));
}

std::vector<Command> add_commands(CLI::App& app, const Globals& globals) {
  using namespace podqos::ctl;  // NOLINT(google-build-using-namespace): the list below is all of it
  std::vector<Command> commands = {add_explain(app, globals),   add_annotate(app),
                                   add_status(app, globals),    add_tree(app, globals),
                                   add_reconcile(app, globals), add_config(app, globals)};
  CLI::App* version = app.add_subcommand("version", "Print the version");
  commands.push_back({.app = version, .run = print_version});
  return commands;
}

int run(int argc, char** argv) {
  CLI::App app{"Looks at, explains and repairs the pod cgroups of this node.", "podqosctl"};
  app.set_version_flag("--version", "podqosctl " PODQOS_VERSION);
  app.require_subcommand(1);
  app.footer("Exit status: 0 done, 1 refused or failed, 2 wrong usage. See podqosctl(1).");
  Globals globals;
  app.add_option("--config", globals.config,
                 "Read this configuration file instead of /etc/podqos/podqos.json and conf.d");
  const std::vector<Command> commands = add_commands(app, globals);
  for (const Command& command : commands)
    command.app->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports --help and bad usage the same way; only its message to the user differs.
    return app.exit(error) == 0 ? podqos::ctl::finish() : podqos::ctl::kUsage;
  }
  const auto chosen =
      std::ranges::find_if(commands, [](const Command& command) { return command.app->parsed(); });
  return chosen == commands.end() ? podqos::ctl::kUsage : chosen->run();
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(S_IRWXG | S_IRWXO);
  try {
    return run(argc, argv);
  } catch (const std::exception& exception) {
    podqos::ctl::warn(exception.what());
    return podqos::ctl::kRefused;
  }
}
