#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/core/events/event.h"
#include "common/store/event_file.h"
#include "common/sys/clock.h"
#include "ctl/cli/command.h"
#include "ctl/cli/since.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/selector.h"

namespace podqos::ctl {
namespace {

using core::Event;

/// How many events --follow shows of those that are there, as journalctl does.
constexpr std::int64_t kFollowed = 10;
constexpr std::chrono::milliseconds kLook{250};

struct EventsOptions {
  OutputOptions output;
  std::string pod;    ///< see select(); "": all
  std::string since;  ///< see parse_since(); "": all
  bool follow = false;
  std::int64_t last = 0;  ///< 0: all
};

/// Which events are shown.
struct Filter {
  UnixMillis since;
  std::optional<Selection> selection;

  void apply_to(std::vector<Event>& events) const {
    std::erase_if(events, [&](const Event& event) {
      return event.time < since || (selection && !is_about(event, *selection));
    });
  }
};

/// Among which --pod selects.
std::vector<core::PodRecord> pods_of(const EventsOptions& options, std::vector<Event> events,
                                     const core::Settings& settings) {
  if (options.pod.empty()) return {};
  name_events(events, settings);
  return pods_in(events);
}

/// @return the errors of select()
/// @param pods  have to outlive the filter
Result<Filter> filter_of(const EventsOptions& options, const std::vector<core::PodRecord>& pods) {
  Filter filter;
  if (!options.since.empty())
    filter.since = parse_since(options.since, sys::wall_clock()).value_or(UnixMillis{0});
  if (options.pod.empty()) return filter;
  const auto selection = select(pods, options.pod);
  if (selection) filter.selection = *selection;
  if (selection) return filter;
  Error error = Error{selection.error()}.with_context("in the journal of events");
  if (error.code == ErrorCode::kNotFound)
    error.message +=
        "; of what has ended it has ids in place of names that docker or podman run --name gave";
  return fail(std::move(error));
}

class Printer {
 public:
  Printer(const EventsOptions& options, const core::Settings& settings, const Screen& screen)
      : options_(options), settings_(settings), screen_(screen) {}

  [[nodiscard]] int show(std::vector<Event> events) {
    if (options_.output.is_json()) {
      std::string lines;
      for (const Event& event : events)
        lines += codec::format_event(event);
      return print(lines);
    }
    name_events(events, settings_);
    std::vector<Row> rows;
    if (!std::exchange(has_heading_, true))
      rows.push_back(heading({"TIME", "EVENT", "POD", "WHAT"}));
    for (const Event& event : events) {
      Row& row = rows.emplace_back(row_of(event, screen_));
      // Rows that come later stand below those that are there.
      if (!options_.follow) continue;
      constexpr std::size_t kKind = 10;
      constexpr std::size_t kName = 16;
      row[1].text.resize(std::max(row[1].text.size(), kKind), ' ');
      row[2].text.resize(std::max(row[2].text.size(), kName), ' ');
    }
    constexpr std::array kCuts{Cut{.column = 2, .least = 16, .in_the_middle = true}};
    return print(format_table(rows, screen_, kCuts));
  }

 private:
  const EventsOptions& options_;
  const core::Settings& settings_;
  Screen screen_;
  bool has_heading_ = false;
};

void warn_of_damage(const store::EventList& list) {
  if (list.damaged == 0) return;
  warn(cat("skipped ", format_count(static_cast<std::int64_t>(list.damaged), "damaged line"),
           " of the journal of events"));
}

/// Waits until it is time to look again.
/// @return false: standard output was closed
bool waits_for_output() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  static_cast<void>(::poll(&out, 1, static_cast<int>(kLook.count())));
  return (out.revents & (POLLERR | POLLHUP)) == 0;
}

/// Shows what comes, until standard output is closed or a signal ends the program.
Result<int> follow(store::EventReader& reader, const Filter& filter, Printer& printer) {
  while (waits_for_output()) {
    PODQOS_ASSIGN(auto list, reader.next());
    warn_of_damage(list);
    filter.apply_to(list.events);
    if (!list.events.empty() && printer.show(std::move(list.events)) != kDone) return kRefused;
  }
  return kDone;
}

/// Reads the configuration, the state directory and what engines call their containers: drops all
/// capabilities.
Result<int> run_events(const EventsOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  PODQOS_TRY(narrow({}));
  PODQOS_ASSIGN(const auto settings, settings_in_force(cli));
  if (settings.events_size == Bytes{0}) warn("events.size is 0: no event is recorded");
  auto reader = store::EventReader::open(settings.state_dir);
  while (!reader && reader.error().code == ErrorCode::kNotFound && options.follow) {
    if (!waits_for_output()) return kDone;
    reader = store::EventReader::open(settings.state_dir);
  }
  if (!reader && reader.error().code == ErrorCode::kNotFound) {
    if (!options.output.is_json()) warn("no events: there has been no pod yet");
    return kDone;
  }
  if (!reader) return fail(std::move(reader).error());
  PODQOS_ASSIGN(auto list, reader->next());
  warn_of_damage(list);
  const std::vector<core::PodRecord> pods = pods_of(options, list.events, settings);
  PODQOS_ASSIGN(const auto filter, filter_of(options, pods));
  filter.apply_to(list.events);
  const std::int64_t last = options.follow && options.last == 0 ? kFollowed : options.last;
  const auto surplus = std::ssize(list.events) - static_cast<std::ptrdiff_t>(last);
  if (last > 0 && surplus > 0)
    list.events.erase(list.events.begin(), list.events.begin() + surplus);
  Printer printer{options, settings, screen};
  const int shown = printer.show(std::move(list.events));
  return shown == kDone && options.follow ? follow(*reader, filter, printer) : shown;
}

}  // namespace

void add_events(Cli& cli) {
  auto options = std::make_shared<EventsOptions>();
  CLI::App* sub = cli.app.add_subcommand("events", "Show what happened to pods and containers");
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  sub->add_option("--pod", options->pod, std::string{kContainerSelectorHelp});
  sub->add_option("--since", options->since,
                  "Only what came since: 10m, 15:04, today, \"2026-01-31 15:04\"")
      ->check([](const std::string& text) {
        return parse_since(text, sys::wall_clock())
                   ? ""
                   : cat("expected a time such as 10m, 15:04, today, 2026-01-31 or \"2026-01-31 "
                         "15:04\", found ",
                         printable(text));
      });
  sub->add_flag("-f,--follow", options->follow, "Show what comes as well, until interrupted");
  sub->add_option("-n,--lines", options->last, "Only the newest N; with --follow 10 by default")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  sub->callback([options, &cli] { cli.status = run_events(*options, cli); });
}

}  // namespace podqos::ctl
