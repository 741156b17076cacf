#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "ctl/inventory.h"

namespace podqos::ctl {
namespace {

/// The ownership marks on cgroups are trusted.* attributes, readable with this capability only
/// (xattr(7)).
constexpr std::array kKept = {CAP_SYS_ADMIN};

/// Prints the inventory as text or JSON, and what is wrong with it.
/// @return kRefused if the configuration has errors, which do not hide the pods.
Result<int> run_view(const OutputOptions& options, const Cli& cli, TextOfView text) {
  // Nothing untrusted is parsed before the restriction.
  PODQOS_TRY(narrow(kKept));
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  const auto view = read_inventory(configuration);
  if (!view) {
    std::ranges::for_each(configuration.errors, warn);
    return fail(for_root(view.error()));
  }
  std::string out = dump(*view) + "\n";
  if (const ColourMode mode = options.mode(); !options.is_json()) {
    out = cat(format_notices(configuration, mode), text(*view, mode));
    for (const Json& warning : view->at("warnings"))
      out += cat(paint(cell("warning: ", Colour::kRed), mode),
                 warning.get_ref<const std::string&>(), "\n");
  }
  const int status = print(out);
  return configuration.errors.empty() ? status : kRefused;
}

}  // namespace

Result<Json> read_inventory(const app::ConfigurationReport& configuration) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  return inventory_json(configuration, std::move(records), cgroups);
}

std::string format_notices(const app::ConfigurationReport& configuration, ColourMode mode) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += cat(paint(cell("error: ", Colour::kRed), mode), error, "\n");
  const std::string warning = paint(cell("warning: ", Colour::kRed), mode);
  if (!configuration.errors.empty())
    out += cat(warning,
               "with errors in the configuration, podqos-hook and podqos-runtime leave new "
               "containers unmanaged\n");
  for (const std::string& ignored : configuration.ignored)
    out += cat(warning, ignored, ": not read: the names of files in conf.d end in .json\n");
  if (!configuration.settings.enabled) out += cat(warning, kSwitchedOff, "\n");
  return out;
}

std::string pod_title(const Json& pod) {
  const std::string& name = text_in(pod, "name");
  const std::string& space = text_in(pod, "namespace");
  if (name.empty()) return printable(text_in(pod, "uid"));
  return cat(printable(space), space.empty() ? "" : "/", printable(name));
}

void add_view(Cli& cli, TextOfView text, const char* name, const char* description) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = cli.app.add_subcommand(name, description);
  add_coloured_output(*sub, *options);
  sub->callback([options, &cli, text] { cli.status = run_view(*options, cli, text); });
}

const std::string& text_in(const Json& object, const char* key) {
  return object.at(key).get_ref<const std::string&>();
}

std::string number_in(const Json& object, const char* key) {
  return object.at(key).is_null() ? "-" : object.at(key).dump();
}

std::string bytes_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : format_bytes(Bytes{value.get<std::int64_t>()});
}

std::string flag_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : cat(value.get<bool>() ? 1 : 0);
}

std::string amounts_in(const Json& object, const char* key) {
  const Json& amounts = object.at(key);
  const Json& cpu = amounts.at("cpuMilli");
  std::vector<std::string> shown;
  if (!cpu.is_null())
    shown.push_back(cat("cpu ", format_amount(MilliCpu{cpu.get<std::int64_t>()})));
  if (!amounts.at("memoryBytes").is_null())
    shown.push_back(cat("memory ", bytes_in(amounts, "memoryBytes")));
  return shown.empty() ? "-" : join(shown, ", ");
}

}  // namespace podqos::ctl
