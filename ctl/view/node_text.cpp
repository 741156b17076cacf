#include "ctl/view/node_text.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/store/event_file.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/node_json.h"
#include "ctl/view/describe.h"

namespace podqos::ctl {
namespace {

/// CAP_SYS_ADMIN reads the ownership marks on cgroups, which are trusted.* attributes (xattr(7)),
/// CAP_DAC_READ_SEARCH bundles of other users.
constexpr std::array kKept = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH};

/// What is printed of a view.
struct Printed {
  std::string text;
  Findings findings;
  bool is_missing_any = false;
};

Result<Printed> read_view(const app::ConfigurationReport& configuration, const ViewOptions& options,
                          const Screen& screen) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  find_engine_names(records);
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  const bool is_json = options.output.is_json();
  const auto journal = store::read_events(configuration.settings.state_dir);
  auto events = journal ? journal->events : std::vector<core::Event>{};
  name_events(events, records);
  if (options.pod.empty()) {
    PODQOS_ASSIGN(const auto node,
                  read_whole_node(configuration, std::move(records), events, cgroups));
    return Printed{.text = is_json ? dump(node_json(node)) + "\n" : options.text(node, screen),
                   .findings = node.findings,
                   .is_missing_any = !node.missed.empty()};
  }
  const auto selected = select(records.pods, options.pod);
  if (!selected) {
    Error error = selected.error();
    if (error.code == ErrorCode::kNotFound)
      error.message += "; podqosctl why also knows what has ended or is not managed";
    return fail(std::move(error));
  }
  PODQOS_ASSIGN(auto pod, describe(configuration, records, cgroups, *selected, events));
  if (!journal)
    pod.findings.push_back({"pods", "failures", Outcome::kWarning, journal.error().message, "",
                            pod.pod.record.pod.uid});
  return Printed{.text = is_json ? dump(describe_json(pod)) + "\n" : describe_text(pod, screen),
                 .findings = pod.findings};
}

std::optional<Bytes> limited(const std::optional<Bytes>& bytes) {
  return bytes == core::kUnlimitedMemory ? std::nullopt : bytes;
}

/// The CPU weight that the rule gives a cgroup, on cgroup v1 its shares; "-" without a rule.
std::string ruled_share(const Entry& entry) {
  const core::CgroupValues& rule = entry.rule;
  if (rule.cpu_idle == true) return "idle";
  if (!rule.cpu_shares) return "-";
  return cat(entry.held.cpu_weight() ? core::cpu_weight_for(*rule.cpu_shares, entry.formula).value()
                                     : rule.cpu_shares->value());
}

}  // namespace

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

std::string shown_class(const core::PodRecord& pod) {
  return cat(core::format_qos_class(pod.qos_class), pod.complete ? "" : " (partial)",
             pod.kubelets_own ? " (kubelet's)" : "");
}

Running running_in(const PodEntry& pod) {
  Running running;
  for (const ContainerEntry& container : pod.containers) {
    if (container.record.sandbox) continue;
    ++running.all;
    running.live += container.is_live() ? 1 : 0;
  }
  return running;
}

Result<int> run_view(const ViewOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  // Nothing untrusted is parsed before the restriction but what root has configured.
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  PODQOS_TRY(narrow(kKept));
  auto view = read_view(configuration, options, screen);
  if (!view) {
    std::ranges::for_each(configuration.errors, warn);
    return fail(for_root(view.error()));
  }
  std::string out = std::move(view->text);
  if (!options.output.is_json()) {
    out.insert(0, format_notices(configuration, screen));
    for (const Finding& each : view->findings)
      out += format_notice("warning: ", app::one_line(each.text), screen);
  }
  const bool wrong = !view->findings.empty() || !configuration.ignored.empty() ||
                     !why_unmanaged(configuration.settings).empty() || view->is_missing_any;
  const int status = print(out);
  return configuration.errors.empty() && !(options.strict && options.pod.empty() && wrong)
             ? status
             : kRefused;
}

std::string shown(const std::optional<std::int64_t>& number) {
  return number ? cat(*number) : "-";
}

std::string shown(const std::optional<Bytes>& bytes) {
  const auto limit = limited(bytes);
  return limit ? rounded_amount(*limit) : "-";
}

std::string shown(const std::optional<MilliCpu>& cpu) {
  return cpu ? format_amount(*cpu) : "-";
}

std::string shown(const Amounts& amounts) {
  std::vector<std::string> parts;
  if (amounts.cpu) parts.push_back(cat("cpu ", shown(amounts.cpu)));
  if (amounts.memory) parts.push_back(cat("memory ", shown(amounts.memory)));
  return parts.empty() ? "-" : join(parts, ", ");
}

std::string with_rule(std::string_view held, std::string_view rule) {
  return cat(held, rule == "-" || rule == held ? "" : cat(" (rule ", rule, ")"));
}

std::string memory_limit_of(const Entry& entry) {
  const auto& rule = entry.rule.memory_limit;
  return with_rule(shown(entry.held.memory_limit()), rule && *rule > Bytes{} ? shown(rule) : "-");
}

std::string share_of(const Entry& entry) {
  return with_rule(held_share(entry), ruled_share(entry));
}

std::string held_share(const Entry& entry) {
  if (entry.held.cpu_idle() == true) return "idle";
  const auto weight = entry.held.cpu_weight();
  const auto shares = entry.shares();
  return weight ? cat(weight->value()) : shares ? cat(shares->value()) : "-";
}

std::string shown_quota(const cgroup::CgroupView& cgroup) {
  const auto quota = cgroup.cpu_quota();
  if (!quota) return "-";
  const Micros period = cgroup.cpu_period().value_or(core::kDefaultPeriod);
  const auto cpu = [&](Micros time) {
    return format_amount(core::milli_cpu_for_quota(time, period).value_or(MilliCpu{0}));
  };
  const Micros burst = cgroup.cpu_burst().value_or(Micros{});
  return cat(cpu(*quota), burst > Micros{} ? cat("+", cpu(burst)) : "",
             period == core::kDefaultPeriod ? "" : cat("/", format_amount(period)));
}

std::string shown(const Protection& protection, const Entry& entry) {
  const auto held = limited(entry.held.memory_qos().*protection.value);
  const auto rule = limited(entry.protection.*protection.value);
  const Bytes none{};
  if (held.value_or(none) == none && rule.value_or(none) == none) return "";
  return with_rule(shown(held), shown(rule));
}

}  // namespace podqos::ctl
