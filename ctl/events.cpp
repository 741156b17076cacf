#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/core/events/event.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "common/sys/clock.h"
#include "ctl/command.h"
#include "ctl/selector.h"
#include "ctl/since.h"

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

/// The pod of an event. One that is only about a container stands for a pod of its own.
const std::string& uid_of(const Event& event) {
  return event.uid.empty() ? event.container_id : event.uid;
}

/// The pods and containers that events are about, by the newest ones, for select().
std::vector<core::PodRecord> pods_in(const std::vector<Event>& events) {
  std::map<std::string, core::PodRecord> pods;
  for (const Event& event : events) {
    if (uid_of(event).empty()) continue;
    core::PodRecord& record = pods[uid_of(event)];
    record.pod.uid = uid_of(event);
    if (!event.pod_name.empty()) {
      record.pod.name = event.pod_name;
      record.pod.pod_namespace = event.pod_namespace;
    }
    if (const auto engine = place_of_word(core::kEngineNames, event.engine))
      record.engine = static_cast<core::Engine>(*engine);
    if (event.container_id.empty()) continue;
    std::erase_if(record.containers, [&](const core::ContainerRecord& container) {
      return container.id == event.container_id || container.name == event.container;
    });
    core::ContainerRecord& container = record.containers.emplace_back();
    container.id = event.container_id;
    container.name = event.container;
  }
  std::vector<core::PodRecord> found;
  found.reserve(pods.size());
  for (auto& [uid, record] : pods)
    found.push_back(std::move(record));
  return found;
}

/// Which events are shown.
class Filter {
 public:
  /// @return the errors of select(); kInvalidArgument for a time that is not one
  static Result<Filter> make(const EventsOptions& options, const std::vector<Event>& events) {
    Filter filter;
    if (!options.since.empty()) {
      const auto since = parse_since(options.since, sys::wall_clock());
      if (!since) {
        return fail(ErrorCode::kInvalidArgument,
                    cat("--since ", printable(options.since),
                        ": expected a time such as 10m, 15:04, today, 2026-01-31 or \"2026-01-31 "
                        "15:04\""));
      }
      filter.since_ = *since;
    }
    if (options.pod.empty()) return filter;
    const std::vector<core::PodRecord> pods = pods_in(events);
    auto selection = select(pods, options.pod);
    if (!selection)
      return fail(std::move(selection).error().with_context("in the journal of events"));
    filter.uid_ = selection->pod->pod.uid;
    if (selection->container != nullptr) filter.container_ = *selection->container;
    return filter;
  }

  [[nodiscard]] bool shows(const Event& event) const {
    if (event.time < since_ || (uid_ && uid_of(event) != *uid_)) return false;
    if (!container_) return true;
    return container_->name.empty() ? event.container_id == container_->id
                                    : event.container == container_->name;
  }

 private:
  UnixMillis since_;
  std::optional<std::string> uid_;
  std::optional<core::ContainerRecord> container_;
};

/// "web/front/app", as --pod takes it.
std::string name_of(const Event& event) {
  core::ContainerRecord container;
  container.id = event.container_id;
  container.name = event.container;
  const bool has_container = !event.container.empty() || !event.container_id.empty();
  if (uid_of(event).empty() && event.pod_name.empty()) return "-";
  if (event.uid.empty() && event.pod_name.empty()) return core::display_name(container);
  const std::string name = core::display_name(
      {.pod_namespace = event.pod_namespace, .name = event.pod_name, .uid = event.uid, .id = {}});
  return has_container ? cat(name, "/", core::display_name(container)) : name;
}

Colour colour_of(core::EventKind kind) {
  using enum core::EventKind;
  switch (kind) {
    case kFailed:
    case kRefused:
    case kOomKilled:
    case kEvicted: return Colour::kRed;
    case kMisplaced:
    case kMoved:
    case kCorrected:
    case kThrottled: return Colour::kYellow;
    case kPlaced:
    case kRegistered:
    case kResized:
    case kReleased: break;
  }
  return Colour::kNone;
}

class Printer {
 public:
  Printer(const EventsOptions& options, const Screen& screen)
      : options_(options), screen_(screen) {}

  [[nodiscard]] int show(const std::vector<Event>& events) {
    if (options_.output.is_json()) {
      std::string lines;
      for (const Event& event : events)
        lines += codec::format_event(event);
      return print(lines);
    }
    std::vector<Row> rows;
    if (!std::exchange(has_heading_, true))
      rows.push_back(heading({"TIME", "EVENT", "POD", "WHAT"}));
    for (const Event& event : events)
      rows.push_back(row_of(event));
    constexpr std::array kCuts{Cut{.column = 2, .least = 16}};
    return print(format_table(rows, screen_, kCuts));
  }

 private:
  [[nodiscard]] Row row_of(const Event& event) const {
    std::string kind{core::format_event_kind(event.kind)};
    std::string name = name_of(event);
    // Rows that come later stand below those that are there.
    constexpr std::size_t kKind = 10;
    constexpr std::size_t kName = 16;
    kind.resize(std::max(kind.size(), options_.follow ? kKind : 0), ' ');
    name.resize(std::max(name.size(), options_.follow ? kName : 0), ' ');
    const std::string text = app::one_line(event.text);
    return {cell(format_local(event.time)), cell(std::move(kind), colour_of(event.kind)),
            cell(std::move(name)),
            cell(screen_.width == Screen::kUnlimited ? text : abbreviate(text))};
  }

  const EventsOptions& options_;
  Screen screen_;
  bool has_heading_ = false;
};

void warn_of_damage(const store::EventList& list) {
  if (list.damaged == 0) return;
  warn(cat("skipped ", format_count(static_cast<std::int64_t>(list.damaged), "damaged line"),
           " of the journal of events"));
}

/// Shows what comes, until standard output is closed or a signal ends the program.
Result<int> follow(store::EventReader& reader, const Filter& filter, Printer& printer) {
  while (true) {
    pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
    static_cast<void>(::poll(&out, 1, static_cast<int>(kLook.count())));
    if ((out.revents & (POLLERR | POLLHUP)) != 0) return kDone;
    PODQOS_ASSIGN(auto list, reader.next());
    warn_of_damage(list);
    std::erase_if(list.events, [&](const Event& event) { return !filter.shows(event); });
    if (!list.events.empty() && printer.show(list.events) != kDone) return kRefused;
  }
}

/// Reads nothing but the configuration and the state directory: drops all capabilities.
Result<int> run_events(const EventsOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  PODQOS_TRY(narrow({}));
  PODQOS_ASSIGN(const auto settings, app::load_settings(cli.config));
  if (settings.events_size == Bytes{0}) warn("events.size is 0: no event is recorded");
  auto reader = store::EventReader::open(settings.state_dir);
  if (!reader && reader.error().code == ErrorCode::kNotFound && !options.follow) {
    if (!options.output.is_json()) warn("no events: there has been no pod yet");
    return kDone;
  }
  if (!reader) return fail(std::move(reader).error());
  PODQOS_ASSIGN(auto list, reader->next());
  warn_of_damage(list);
  PODQOS_ASSIGN(const auto filter, Filter::make(options, list.events));
  std::erase_if(list.events, [&](const Event& event) { return !filter.shows(event); });
  const std::int64_t last = options.follow && options.last == 0 ? kFollowed : options.last;
  const auto surplus = std::ssize(list.events) - static_cast<std::ptrdiff_t>(last);
  if (last > 0 && surplus > 0)
    list.events.erase(list.events.begin(), list.events.begin() + surplus);
  Printer printer{options, screen};
  const int shown = printer.show(list.events);
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
                  "Only what came since: 10m, 15:04, today, \"2026-01-31 15:04\"");
  sub->add_flag("-f,--follow", options->follow, "Show what comes as well, until interrupted");
  sub->add_option("-n,--lines", options->last, "Only the newest N; with --follow 10 by default")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  sub->callback([options, &cli] { cli.status = run_events(*options, cli); });
}

}  // namespace podqos::ctl
