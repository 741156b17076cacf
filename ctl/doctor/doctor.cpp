#include "ctl/doctor/doctor.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "ctl/cli/command.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"
#include "ctl/doctor/doctor_checks.h"
#include "ctl/explain/document.h"
#include "ctl/node/node_checks.h"
#include "ctl/node/records.h"

namespace podqos::ctl {
namespace {

/// CAP_SYS_ADMIN reads the ownership marks on cgroups, which are trusted.* attributes (xattr(7)),
/// CAP_DAC_READ_SEARCH bundles of other users.
constexpr std::array kKept = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH};
constexpr const char* kKubeletConfig = "/var/lib/kubelet/config.yaml";  // as kubeadm writes it
constexpr std::array<std::string_view, 4> kOutcomes = {"ok", "warning", "problem", "skipped"};

void add(Findings& checks, Findings more) {
  std::ranges::move(more, std::back_inserter(checks));
}

/// Everything that the state directory tells.
void check_state(const app::ConfigurationReport& configuration, cgroup::Machine& cgroups,
                 ProgramAnswers& answers, Diagnosis& found) {
  const core::Settings& settings = configuration.settings;
  Findings& checks = found.checks;
  checks.push_back(check_directory(read_directory(settings.state_dir)));
  const Finding lock = check_lock(read_lock(settings.state_dir + "/lock"), settings);
  checks.push_back(lock);
  // Programs that wait for the lock at this moment will time out.
  if (lock.outcome == Outcome::kProblem) {
    checks.push_back({"state", "records", Outcome::kSkipped, "not read: see the lock"});
    return;
  }
  const auto unread = [&](const Error& error) {
    checks.push_back({"state", "records", Outcome::kProblem, for_root(error).message, kReconcile});
  };
  auto records = read_records(settings);
  if (!records) return unread(records.error());
  if (configuration.source == app::SettingsSource::kFiles)
    checks.push_back(check_settings(configuration, records->node.settings));
  checks.push_back(check_weights(settings, records->node.weight_formula));
  find_engine_names(*records);
  const auto journal = store::read_events(settings.state_dir);
  const auto& events = journal ? journal->events : std::vector<core::Event>{};
  std::optional<UnitState> unit;
  if (const auto& units = answers.units; units && units->contains(kPluginUnit))
    unit = units->at(kPluginUnit);
  auto node = read_whole_node(configuration, *std::move(records), events, cgroups, unit);
  if (!node) return unread(node.error());
  add(checks, check_node(*node));
  for (EngineFacts& each : answers.engines)
    each.pods = std::ranges::count(node->pods, each.engine->recorded, [](const PodEntry& pod) {
      return core::format_engine(pod.record.engine);
    });
  checks.push_back(check_eviction(settings, *node));
  found.node = *std::move(node);
  checks.push_back(journal
                       ? check_events(events, UnixMillis{std::time(nullptr) * 1000})
                       : Finding{"pods", "failures", Outcome::kSkipped, journal.error().message});
}

}  // namespace

ProgramAnswers ask_programs(const std::string& state_dir) {
  auto names = units_of_engines();
  names.emplace_back(kTimerUnit);
  auto units = read_units(names, run_briefly);
  auto engines = read_engines(units.value_or(Units{}), state_dir, run_briefly);
  return {.units = std::move(units), .engines = std::move(engines)};
}

Diagnosis diagnose(const app::ConfigurationReport& configuration, Result<cgroup::Cgroupfs>& cgroups,
                   ProgramAnswers answers) {
  const core::Settings& settings = configuration.settings;
  Diagnosis found;
  Findings& checks = found.checks;
  if (cgroups)
    add(checks, check_kernel(read_kernel(*cgroups), settings));
  else
    checks.push_back({"kernel", "controllers", Outcome::kProblem,
                      cat(cgroups.error().message, ": podqos manages nothing")});
  add(checks, check_configuration(configuration));
  const auto kubelet = read_input(kKubeletConfig, kMaxInput);
  add(checks,
      check_kubelet(kKubeletConfig, kubelet ? std::optional{*kubelet} : std::nullopt, settings));
  if (cgroups) check_state(configuration, *cgroups, answers, found);
  add(checks, check_engines(answers.engines, settings));
  for (const EngineFacts& each : answers.engines)
    add(checks, check_engine(each));
  checks.push_back(check_timer(answers.units));
  // Groups stand together, in the order of their first checks.
  std::vector<std::string> groups;
  for (const Finding& each : checks)
    if (std::ranges::find(groups, each.group) == groups.end()) groups.push_back(each.group);
  std::ranges::stable_sort(checks, {}, [&](const Finding& each) {
    return std::ranges::find(groups, each.group) - groups.begin();
  });
  return found;
}

std::string format_checks(const Findings& checks, const Screen& screen) {
  constexpr std::array kMarks = {"OK    ", "WARN  ", "FAIL  ", "-     "};
  constexpr std::array kColours = {Colour::kDim, Colour::kYellow, Colour::kRed, Colour::kDim};
  const std::size_t name_width =
      std::ranges::max(checks, {}, [](const Finding& each) { return each.name.size(); })
          .name.size() +
      2;
  const std::string indent(name_width + 8, ' ');
  std::string out;
  std::string_view group;
  for (const Finding& check : checks) {
    if (check.group != group)
      out += cat(paint(cell(check.group, Colour::kBold), screen.colour), "\n");
    group = check.group;
    const auto outcome = static_cast<std::size_t>(check.outcome);
    const auto painted = [&](std::string lines) {
      lines.pop_back();
      return cat(paint(cell(std::move(lines), kColours.at(outcome)), screen.colour), "\n");
    };
    const std::string name = check.name + std::string(name_width - check.name.size(), ' ');
    const std::string text = fitted(app::one_line(check.text), screen);
    out += painted(fold(cat("  ", kMarks.at(outcome), name, text), indent, screen.width));
    if (!check.remedy.empty())
      out += painted(fold(cat(indent, "fix: ", app::one_line(check.remedy)), indent, screen.width));
  }
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(checks, outcome, &Finding::outcome);
  };
  return cat(out, format_count(count(Outcome::kProblem), "problem"), ", ",
             format_count(count(Outcome::kWarning), "warning"), "\n");
}

Json json_of(const Findings& checks) {
  Json list = Json::array();
  for (const Finding& check : checks)
    list.push_back({{"group", check.group},
                    {"name", check.name},
                    {"outcome", kOutcomes.at(static_cast<std::size_t>(check.outcome))},
                    {"text", check.text},
                    {"remedy", check.remedy.empty() ? Json(nullptr) : Json(check.remedy)}});
  return list;
}

void add_doctor(Cli& cli) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "doctor", "Check kernel, configuration, engines and pods, and say how to mend what is wrong");
  add_coloured_output(*sub, *options);
  sub->callback([options, &cli] {
    const Screen screen = options->screen();
    const auto run = [&]() -> Result<int> {
      // Nothing untrusted is parsed before the restriction but what root has configured.
      const auto configuration = app::inspect_configuration(cli.config);
      ProgramAnswers answers = ask_programs(configuration.settings.state_dir);
      PODQOS_TRY(narrow(kKept));
      auto cgroups = cgroup::Cgroupfs::open({.access = cgroup::Access::kRead});
      const Findings checks = diagnose(configuration, cgroups, std::move(answers)).checks;
      const int status =
          print(options->is_json() ? dump(json_of(checks)) + "\n" : format_checks(checks, screen));
      const bool well = std::ranges::count(checks, Outcome::kProblem, &Finding::outcome) == 0;
      return well ? status : kRefused;
    };
    cli.status = run();
  });
}

}  // namespace podqos::ctl
