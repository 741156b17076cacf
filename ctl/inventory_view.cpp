#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "common/sys/clock.h"
#include "ctl/describe.h"
#include "ctl/engines.h"
#include "ctl/inventory.h"
#include "ctl/not_managed.h"

namespace podqos::ctl {
namespace {

/// CAP_SYS_ADMIN reads the ownership marks on cgroups, which are trusted.* attributes (xattr(7)),
/// CAP_DAC_READ_SEARCH bundles of other users.
constexpr std::array kKept = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH};

/// inventory_json() of this machine, or describe_json() of one pod.
Result<Json> read_view(const app::ConfigurationReport& configuration, std::string_view pod) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  find_engine_names(records);
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  if (!pod.empty()) {
    const auto selected = select(records.pods, pod);
    if (selected) return describe_json(configuration, records, cgroups, *selected);
    Error error = selected.error();
    if (error.code == ErrorCode::kNotFound)
      error.message += "; podqosctl why also knows what has ended or is not managed";
    return fail(std::move(error));
  }
  auto events = store::read_events(configuration.settings.state_dir);
  const auto missed = find_not_managed(
      configuration, records, events ? events->events : std::vector<core::Event>{}, cgroups);
  PODQOS_ASSIGN(auto view, checked_inventory(configuration, std::move(records), cgroups));
  add_missed(view, missed);
  if (const auto plugin = read_plugin(configuration.settings.state_dir, std::nullopt))
    view["plugin"] = {{"process", plugin->process ? Json(plugin->process->value()) : Json(nullptr)},
                      {"status", plugin->status}};
  else
    view["plugin"] = nullptr;
  return view;
}

}  // namespace

Result<Json> checked_inventory(const app::ConfigurationReport& configuration, NodeRecords records,
                               cgroup::Machine& cgroups, std::string_view uid) {
  const auto names = records.names;
  const auto look = [&](NodeRecords seen, const Json& before) {
    if (!uid.empty())
      std::erase_if(seen.pods, [&](const core::PodRecord& pod) { return pod.pod.uid != uid; });
    return inventory_json(configuration, std::move(seen), cgroups, before);
  };
  PODQOS_ASSIGN(Json view, look(std::move(records), Json::array()));
  if ((uid.empty() ? view : view.at("pods").at(0)).at("warnings").empty()) return view;
  // For the hook of a container whose runtime has just deleted it.
  static_cast<void>(
      sys::kSteadyClock.poll({}, sys::kSteadyClock.now() + std::chrono::milliseconds{100}));
  PODQOS_ASSIGN(auto store, open_records(configuration.settings));
  PODQOS_ASSIGN(auto now, records_in(store, store::Opening::kRead));
  // Engines are not asked while the lock is held.
  now.names = names;
  add_engine_names(now);
  return look(std::move(now), view.at("pods"));
}

std::string format_notices(const app::ConfigurationReport& configuration, const Screen& screen) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += format_notice("error: ", error, screen);
  const auto warn_of = [&](std::string_view text) {
    out += format_notice("warning: ", text, screen);
  };
  if (!configuration.errors.empty())
    warn_of(cat("until it is corrected, ", app::describe_source(configuration.source)));
  for (const std::string& ignored : configuration.ignored)
    warn_of(cat(ignored, ": not read: the names of files in conf.d end in .json"));
  if (const auto why = why_unmanaged(configuration.settings); !why.empty()) warn_of(why);
  return out;
}

std::string pod_title(const Json& pod) {
  return core::display_name({.pod_namespace = text_in(pod, "namespace"),
                             .name = text_in(pod, "name"),
                             .uid = text_in(pod, "uid"),
                             .id = text_in(pod, "id")});
}

std::string container_title(const Json& container) {
  const std::string& name = text_in(container, "name");
  return printable(core::short_id(name.empty() ? text_in(container, "id") : name));
}

std::string shown_class(const Json& pod) {
  return cat(text_in(pod, "qosClass"), pod.at("complete") ? "" : " (partial)",
             pod.at("kubeletsOwn") ? " (kubelet's)" : "");
}

Running running_in(const Json& pod) {
  Running running;
  for (const Json& container : pod.at("containers")) {
    if (container.at("sandbox") == true) continue;
    ++running.all;
    running.live += container.at("state") == "live" ? 1 : 0;
  }
  return running;
}

bool is_set(const Json& value) {
  return value != nullptr && value != false && value != 0;
}

Result<int> run_view(const ViewOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  // Nothing untrusted is parsed before the restriction but what root has configured.
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  PODQOS_TRY(narrow(kKept));
  auto view = read_view(configuration, options.pod);
  if (!view) {
    std::ranges::for_each(configuration.errors, warn);
    return fail(for_root(view.error()));
  }
  const Json& warnings = view->at("warnings");
  std::string out = dump(*view) + "\n";
  if (!options.output.is_json()) {
    out = cat(format_notices(configuration, screen),
              options.pod.empty() ? options.text(*view, screen) : describe_text(*view, screen));
    for (const Json& warning : warnings)
      out +=
          format_notice("warning: ", app::one_line(warning.get_ref<const std::string&>()), screen);
  }
  const bool wrong = !warnings.empty() || !configuration.ignored.empty() ||
                     !why_unmanaged(configuration.settings).empty() ||
                     !view->value("notManaged", Json::array()).empty();
  const int status = print(out);
  return configuration.errors.empty() && !(options.strict && options.pod.empty() && wrong)
             ? status
             : kRefused;
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

std::string shown_quota(const Json& cgroup) {
  const Json& quota = cgroup.at("cpuQuotaUs");
  if (quota.is_null()) return "-";
  const Json& held = cgroup.at("cpuPeriodUs");
  const Micros period = held.is_null() ? core::kDefaultPeriod : Micros{held.get<std::int64_t>()};
  const auto cpu = [&](const Json& micros) {
    return format_amount(core::milli_cpu_for_quota(Micros{micros.get<std::int64_t>()}, period)
                             .value_or(MilliCpu{0}));
  };
  const Json& burst = cgroup.at("cpuBurstUs");
  const bool bursts = burst.is_number() && burst != 0;
  return cat(cpu(quota), bursts ? cat("+", cpu(burst)) : "",
             period == core::kDefaultPeriod ? "" : cat("/", format_amount(period)));
}

std::string held_share(const Json& cgroup) {
  if (cgroup.at("cpuIdle") == true) return "idle";
  return number_in(cgroup, cgroup.at("cpuWeight").is_null() ? "cpuShares" : "cpuWeight");
}

}  // namespace podqos::ctl
