#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pods/pod_name.h"
#include "ctl/inventory.h"

namespace podqos::ctl {
namespace {

/// The ownership marks on cgroups are trusted.* attributes, readable with this capability only
/// (xattr(7)).
constexpr std::array kKept = {CAP_SYS_ADMIN};

/// A line that begins with this word in red, folded to the screen, with long words shortened where
/// it is narrow.
std::string notice(std::string_view word, std::string_view text, const Screen& screen) {
  const std::string line = cat(word, screen.is_wide() ? std::string{text} : abbreviate(text));
  const std::string folded = fold(line, "  ", screen.width);
  return cat(paint(cell(std::string{word}, Colour::kRed), screen.colour),
             folded.substr(word.size()));
}

}  // namespace

Result<Json> read_inventory(const app::ConfigurationReport& configuration) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  return inventory_json(configuration, std::move(records), cgroups);
}

std::string format_notices(const app::ConfigurationReport& configuration, const Screen& screen) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += notice("error: ", error, screen);
  const auto warn_of = [&](std::string_view text) { out += notice("warning: ", text, screen); };
  if (!configuration.errors.empty())
    warn_of(
        "with errors in the configuration, podqos-hook and podqos-runtime leave new containers "
        "unmanaged");
  for (const std::string& ignored : configuration.ignored)
    warn_of(cat(ignored, ": not read: the names of files in conf.d end in .json"));
  if (!configuration.settings.enabled) warn_of(kSwitchedOff);
  return out;
}

std::string pod_title(const Json& pod) {
  const std::string& name = text_in(pod, "name");
  const std::string& space = text_in(pod, "namespace");
  if (name.empty()) return printable(core::short_id(text_in(pod, "uid")));
  return cat(printable(space), space.empty() ? "" : "/", printable(name));
}

Result<int> run_view(const ViewOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  // Nothing untrusted is parsed before the restriction.
  PODQOS_TRY(narrow(kKept));
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  const auto view = read_inventory(configuration);
  if (!view) {
    std::ranges::for_each(configuration.errors, warn);
    return fail(for_root(view.error()));
  }
  const Json& warnings = view->at("warnings");
  std::string out = dump(*view) + "\n";
  if (!options.output.is_json()) {
    out = cat(format_notices(configuration, screen), options.text(*view, screen));
    for (const Json& warning : warnings)
      out += notice("warning: ", warning.get_ref<const std::string&>(), screen);
  }
  const bool wrong = !warnings.empty() || !configuration.ignored.empty();
  const int status = print(out);
  return configuration.errors.empty() && !(options.strict && wrong) ? status : kRefused;
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

std::string cpu_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : format_amount(MilliCpu{value.get<std::int64_t>()});
}

std::string flag_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : cat(value.get<bool>() ? 1 : 0);
}

std::string amounts_in(const Json& object, const char* key) {
  const Json& amounts = object.at(key);
  std::vector<std::string> shown;
  if (!amounts.at("cpuMilli").is_null()) shown.push_back(cat("cpu ", cpu_in(amounts, "cpuMilli")));
  if (!amounts.at("memoryBytes").is_null())
    shown.push_back(cat("memory ", bytes_in(amounts, "memoryBytes")));
  return shown.empty() ? "-" : join(shown, ", ");
}

std::string with_rule(std::string_view held, std::string_view rule) {
  return cat(held, rule == "-" || rule == held ? "" : cat(" (rule ", rule, ")"));
}

std::string ruled_share(const Json& view, const Json& cgroup) {
  const Json& rule = cgroup.at("rule");
  if (rule.value("cpuIdle", Json(nullptr)) == true) return "idle";
  const Json shares = rule.value("cpuShares", Json(nullptr));
  if (shares.is_null()) return "-";
  if (cgroup.at("cpuWeight").is_null()) return shares.dump();
  const auto formula =
      view.at("weightFormula") == "log" ? core::WeightFormula::kLog : core::WeightFormula::kLinear;
  return cat(core::cpu_weight_for(CpuShares{shares.get<std::int64_t>()}, formula).value());
}

std::string held_share(const Json& cgroup) {
  if (cgroup.at("cpuIdle") == true) return "idle";
  return number_in(cgroup, cgroup.at("cpuWeight").is_null() ? "cpuShares" : "cpuWeight");
}

}  // namespace podqos::ctl
