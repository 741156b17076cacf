#include "ctl/doctor/version.h"

#include <algorithm>
#include <memory>

#include "common/base/text.h"
#include "ctl/cli/command.h"
#include "ctl/configure/setup.h"
#include "ctl/node/engines.h"

namespace podqos::ctl {
namespace {

/// The version that a program says: "podqos-hook 0.1.0".
Result<std::string> ask_version(const std::string& path, std::string_view name, const Run& run) {
  PODQOS_ASSIGN(const std::string said, run({path, "--version"}));
  if (said.starts_with(cat(name, " "))) return printable(said.substr(name.size() + 1));
  return fail(ErrorCode::kInvalidArgument, cat("unexpected reply \"", printable(said), "\""));
}

Result<int> run_version(const OutputOptions& options) {
  std::vector<std::string> warnings;
  const Json versions = read_versions(run_briefly, warnings);
  std::string text;
  for (const auto& [name, version] : versions.items())
    text += cat(name, " ", version.is_null() ? "-" : version.get<std::string>(), "\n");
  const int status = print(options.is_json() ? dump(versions) + "\n" : text);
  std::ranges::for_each(warnings, warn);
  return status;
}

}  // namespace

Json read_versions(const Run& run, std::vector<std::string>& warnings) {
  Json versions = {{"podqosctl", PODQOS_VERSION}};
  for (const std::string path : {kHookPath, kPlugin}) {
    const std::string name = path.substr(path.rfind('/') + 1);
    auto version = ask_version(path, name, run);
    if (!version && version.error().code != ErrorCode::kNotFound)
      warnings.push_back(
          cat("cannot determine the version of ", path, ": ", version.error().message));
    if (version && *version != PODQOS_VERSION)
      warnings.push_back(cat(path, " has version ", *version, ", podqosctl ", PODQOS_VERSION,
                             ": install the packages podqos and podqos-nri in one version"));
    versions[name] = version ? Json(*std::move(version)) : Json{};
  }
  return versions;
}

void add_version(Cli& cli) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "version", "Print the versions of podqosctl, podqos-hook and podqos-nri");
  sub->footer("");
  add_output(*sub, *options);
  sub->callback([options, &cli] { cli.status = run_version(*options); });
}

}  // namespace podqos::ctl
