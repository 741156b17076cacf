#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/node_metrics.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/codec/exposition.h"
#include "common/core/events/event.h"
#include "common/core/settings.h"
#include "common/store/event_file.h"
#include "common/sys/atomic_file.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "ctl/cli/command.h"

namespace podqos::ctl {
namespace {

/// The directory belongs to the user of node_exporter on Debian.
constexpr std::array kTextfileCapabilities = {CAP_DAC_OVERRIDE};

/// Writes what happened in the last hour, for nodes where no plugin counts what fails.
/// @return an error if the journal cannot be read
Status write_events(const core::Settings& settings, codec::Exposition& out) {
  PODQOS_ASSIGN(const auto journal, store::read_events(settings.state_dir));
  const UnixMillis now = sys::wall_clock();
  const std::vector<std::string> kinds = parts_of(core::kEventKinds, ' ');
  std::vector<std::int64_t> counts(kinds.size());
  for (const core::Event& event : journal.events)
    if (core::is_recent(event, now)) ++counts.at(static_cast<std::size_t>(event.kind));
  out.metric("gauge", "podqos_recent_events",
             "Events of the last hour in the journal of podqos, by kind.");
  for (std::size_t i = 0; i < kinds.size(); ++i)
    out.sample({{"event", kinds[i]}}, static_cast<double>(counts[i]));
  return {};
}

/// Puts the metrics where the textfile collector of node_exporter takes them from.
/// @return the errno of the failing call, with the path
Status write_textfile(const std::string& directory, std::string_view text) {
  constexpr mode_t kReadable = 0644;
  PODQOS_ASSIGN(const auto place, sys::Directory::open(directory));
  return sys::replace_shared_file(
      place, "podqos.prom", text,
      sys::FileOwner{.uid = ::geteuid(), .gid = ::getegid(), .mode = kReadable});
}

/// @param directory  of the textfile; nullopt: standard output
Result<int> run_metrics(const std::optional<std::string>& directory, const Cli& cli) {
  PODQOS_TRY(narrow(directory ? kTextfileCapabilities : std::span<const int>{}));
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  std::ranges::for_each(configuration.errors, warn);
  app::NodeMetrics metrics = app::node_metrics(configuration.settings);
  codec::Exposition more;
  more.single(
      "gauge", "podqos_configuration_errors",
      "Errors in the configuration; the last valid settings stay in force until it is corrected.",
      static_cast<double>(configuration.errors.size()));
  if (!metrics.error)
    if (auto written = write_events(configuration.settings, more); !written)
      metrics.error = std::move(written).error().with_context("metrics omit events");
  metrics.text += std::move(more).release();
  if (metrics.error) log_failure(*metrics.error);
  if (!metrics.incidents.empty()) warn(metrics.incidents);
  int status = kDone;
  if (directory) {
    PODQOS_TRY(write_textfile(*directory, metrics.text));
  } else {
    status = print(metrics.text);
  }
  return !metrics.error && configuration.errors.empty() ? status : kRefused;
}

}  // namespace

void add_metrics(Cli& cli) {
  auto directory = std::make_shared<std::optional<std::string>>();
  CLI::App* sub =
      cli.app.add_subcommand("metrics", "Print metrics of pods and tiers for Prometheus");
  sub->add_option("--textfile", *directory,
                  "Write them to DIR/podqos.prom, for node_exporter's textfile collector")
      ->type_name("DIR");
  sub->callback([directory, &cli] { cli.status = run_metrics(*directory, cli); });
}

}  // namespace podqos::ctl
