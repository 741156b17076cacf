#include "ctl/view/why.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/base/utc_time.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "ctl/cli/command.h"
#include "ctl/cli/since.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/selector.h"
#include "ctl/view/describe.h"
#include "ctl/view/node_text.h"

namespace podqos::ctl {
namespace {

using core::Event;

/// By which way in a program hears of containers.
std::string way_in(std::string_view program) {
  if (program == "podqos-runtime") return "The wrapper podqos-runtime";
  if (program == "podqos-hook") return "The hook podqos-hook";
  if (program == "podqos-nri") return "The plugin podqos-nri";
  return printable(program);
}

/// What became of the container or pod of an event.
/// @param placed  "placed", or what else podqos does with pods such as this
std::string sentence_of(const Event& event, std::string_view placed) {
  const std::string who = name_of(event);
  const auto told = [&]() -> std::string {
    switch (event.kind) {
      using enum core::EventKind;
      case kPlaced:
        return cat(way_in(event.program), " ", placed, " ", who, " before it was created");
      case kRegistered: return cat(way_in(event.program), " took in ", who, ", which ran already");
      case kFailed: return cat("podqos failed for ", who);
      case kRefused: return cat(who, " was refused and not started");
      case kMisplaced: return cat(who, " started outside its pod");
      case kCorrected: return cat("podqos corrected ", who);
      case kMoved:
      case kResized:
      case kThrottled:
      case kOomKilled:
      case kEvicted:
      case kReleased: break;
    }
    return cat(who);
  };
  return cat(format_local(event.time), ": ", told(), ": ", event.text,
             event.text.ends_with('?') ? "" : ".");
}

/// Collects facts about what was selected.
class Facts {
 public:
  explicit Facts(const Selection& selected) : selected_(selected) {}

  void add(std::string_view fact, std::string text, const Json& members = Json::object()) {
    Json json = {{"fact", fact}};
    json.update(members);
    list_.push_back(std::move(json));
    sentences_.push_back(std::move(text));
  }

  void add_class(const PodEntry& pod) {
    const core::PodRecord& record = pod.record;
    const auto [running, all] = running_in(pod);
    const std::string name = core::display_name(record);
    const auto paused = std::ranges::count(pod.containers, true, &ContainerEntry::paused);
    const std::string run = cat(": ", running, " of ", all, " containers run",
                                paused > 0 ? cat(", ", paused, " of them paused") : "", ".");
    const Json members = {{"pod", name}, {"running", running}, {"all", all}};
    if (record.released_at)
      add("released",
          cat("Pod ", name, " has ended; memory is still charged to its cgroup, which stays."),
          members);
    else if (record.kubelets_own)
      add("counted", cat("A kubelet manages pod ", name, ", podqos counts its requests", run),
          members);
    else
      add("managed", cat("podqos manages pod ", name, run), members);
    const auto qos_class = core::format_qos_class(record.qos_class);
    const auto source = core::format_source(record.class_source);
    const std::string reason = reason_of(record);
    add("class", cat("Its class is ", qos_class, ": ", reason, " (by ", source, ")."),
        {{"class", qos_class}, {"reason", reason}, {"source", source}});
    if (!record.complete)
      add("partial", "Its containers become known one after another: it may have more.");
  }

  /// The values of the pod, or of one of its containers, in sentences alone.
  /// @param container  nullptr: of the pod
  void add_values(const PodEntry& pod, const ContainerEntry* container) {
    const bool whole = selected_.container == nullptr;
    const std::string whose = whole == (container == nullptr) ? "Its "
                              : whole
                                  ? cat("Container ", core::display_name(container->record), "'s ")
                                  : "Its pod's ";
    for (const Value& each : values_of(pod, container))
      if (!each.sentence.empty()) sentences_.push_back(cat(whose, each.sentence, "."));
  }

  /// All values, and what is wrong with them.
  void add_pod(const Description& description) {
    const PodEntry& pod = description.pod;
    add_class(pod);
    add_values(pod, nullptr);
    for (const ContainerEntry& container : pod.containers)
      if (container.alive && !container.record.sandbox) add_values(pod, &container);
    for (const Finding& each : description.findings)
      add("warning", cat("Warning: ", each.text, "."), {{"text", each.text}});
  }

  void add_missed(const NotManaged& missed) {
    const std::string who = name_of(missed.container);
    add("notManaged", cat("podqos does not manage ", who, ": ", missed.why, "."),
        {{"who", who}, {"text", missed.why}});
    add("remedy", cat("Remedy: ", missed.remedy, "."), {{"text", missed.remedy}});
  }

  void add_events(const std::vector<Event>& events) {
    const char* const placed = selected_.pod->kubelets_own ? "counted" : "placed";
    constexpr std::size_t kMost = 20;
    std::vector<const Event*> own;
    for (const Event& event : events)
      if (is_about(event, selected_)) own.push_back(&event);
    const std::size_t omitted = own.size() - std::min(own.size(), kMost);
    for (std::size_t at = 0; at < own.size(); ++at) {
      if (at == 1 && omitted > 0)
        add("omitted", cat("Events left out here: ", omitted, ", see podqosctl events."),
            {{"value", omitted}});
      if (at > 0 && at <= omitted) continue;
      const Event& event = *own[at];
      add("event", sentence_of(event, placed),
          {{"event", core::format_event_kind(event.kind)},
           {"time", format_utc(event.time)},
           {"program", event.program},
           {"placed", placed},
           {"who", name_of(event)},
           {"text", event.text}});
    }
  }

  /// @param state  see Why
  Why take(std::string_view state) {
    const auto* container = selected_.container;
    return {.json = {{"pod", core::display_name(*selected_.pod)},
                     {"container",
                      container == nullptr ? Json(nullptr) : Json(core::display_name(*container))},
                     {"state", state},
                     {"facts", std::move(list_)}},
            .sentences = std::move(sentences_)};
  }

 private:
  const Selection& selected_;
  Json list_ = Json::array();
  std::vector<std::string> sentences_;
};

/// The pods with records first, and all that the journal or a runtime knows beside these and their
/// containers.
std::vector<core::PodRecord> known_pods(const NodeStory& story) {
  std::vector<core::PodRecord> pods = story.records.pods;
  std::vector<Event> events = story.events;
  for (const NotManaged& each : story.missed.containers)
    events.push_back(each.container);
  const auto has = [](const core::PodRecord& pod, const core::ContainerRecord& container) {
    return std::ranges::any_of(pod.containers, [&](const core::ContainerRecord& each) {
      return each.id == container.id || (!each.name.empty() && each.name == container.name);
    });
  };
  for (core::PodRecord& former : pods_in(events)) {
    const auto known = std::ranges::find_if(pods, [&](const core::PodRecord& pod) {
      return pod.pod.uid == former.pod.uid ||
             (former.containers.size() == 1 && former.containers.front().id == former.pod.uid &&
              has(pod, former.containers.front()));
    });
    if (known == pods.end()) {
      pods.push_back(std::move(former));
      continue;
    }
    for (core::ContainerRecord& container : former.containers)
      if (!has(*known, container)) known->containers.push_back(std::move(container));
  }
  return pods;
}

/// One of known_pods(): of those with the same name the one that has a record.
Result<Selection> select_known(const std::vector<core::PodRecord>& known, std::size_t recorded,
                               std::string_view selector) {
  auto living = select(std::span{known}.first(recorded), selector);
  if (living || living.error().code != ErrorCode::kNotFound) return living;
  return select(known, selector);
}

/// What was selected, as the records have it.
/// @return without pod if it has no record
Selection in_records(const NodeRecords& records, const Selection& selected) {
  const auto pod = std::ranges::find(records.pods, selected.pod->pod.uid,
                                     [](const core::PodRecord& record) { return record.pod.uid; });
  if (pod == records.pods.end()) return {};
  if (selected.container == nullptr) return {.pod = &*pod};
  const auto container =
      std::ranges::find(pod->containers, selected.container->id, &core::ContainerRecord::id);
  if (container == pod->containers.end()) return {};
  return {.pod = &*pod, .container = &*container};
}

/// What has become of something without a record, by the last event about it.
std::string_view state_without_record(const std::vector<Event>& events, const Selection& selected) {
  using enum core::EventKind;
  for (const Event& event : events | std::views::reverse) {
    if (!is_about(event, selected)) continue;
    if (event.kind == kRefused) return "not started";
    if (event.kind == kFailed || event.kind == kMisplaced) return "unknown";
    break;
  }
  return "ended";
}

Result<NodeStory> read_story(const Cli& cli, cgroup::Machine& cgroups) {
  NodeStory story;
  story.configuration = app::inspect_configuration(cli.config);
  const core::Settings& settings = story.configuration.settings;
  PODQOS_ASSIGN(story.records, read_records(settings));
  find_engine_names(story.records);
  auto journal = store::read_events(settings.state_dir);
  if (!journal) warn(journal.error().message);
  if (journal) story.events = std::move(journal->events);
  name_events(story.events, story.records);
  story.missed = find_not_managed(story.configuration, story.records, story.events, cgroups);
  return story;
}

}  // namespace

Result<Why> explain_why(const NodeStory& story, cgroup::Machine& cgroups,
                        std::string_view selector) {
  const std::vector<core::PodRecord> pods = known_pods(story);
  PODQOS_ASSIGN(const Selection selected, select_known(pods, story.records.pods.size(), selector));
  Facts facts{selected};
  std::string_view state;
  for (const NotManaged& each : story.missed.containers) {
    if (!is_about(each.container, selected)) continue;
    facts.add_missed(each);
    state = "not managed";
  }
  if (const Selection recorded = in_records(story.records, selected); recorded.pod != nullptr) {
    PODQOS_ASSIGN(const auto description,
                  describe(story.configuration, story.records, cgroups, recorded, {}));
    facts.add_pod(description);
    state = recorded.pod->released_at    ? "ended"
            : recorded.pod->kubelets_own ? "counted"
                                         : "managed";
  }
  facts.add_events(story.events);
  if (state.empty()) {
    state = state_without_record(story.events, selected);
    // Of a refusal the event tells.
    if (state == "ended") facts.add(state, "It has ended: podqos has no record of it any more.");
    if (state == "unknown") facts.add(state, "podqos has no record of it: it may run unmanaged.");
  }
  return facts.take(state);
}

std::string why_text(const Why& why, const Screen& screen) {
  std::string out;
  for (const std::string& sentence : why.sentences)
    out += fold(fitted(app::one_line(sentence), screen), "  ", screen.width);
  return out;
}

void add_why(Cli& cli) {
  struct WhyOptions {
    OutputOptions output;
    std::string selector;
  };
  auto options = std::make_shared<WhyOptions>();
  CLI::App* sub = cli.app.add_subcommand(
      "why", "Tell the story of a pod or container: class, values, events, or why it is missed");
  sub->add_option("POD", options->selector, std::string{kContainerSelectorHelp})->required();
  add_output(*sub, options->output);
  add_wide(*sub, options->output);
  sub->callback([options, &cli] {
    const Screen screen = options->output.screen();
    const auto run = [&]() -> Result<int> {
      // For the ownership marks on cgroups, which are trusted.* attributes (xattr(7)), and for
      // bundles of other users.
      PODQOS_TRY(narrow(std::array{CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH}));
      PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
      PODQOS_ASSIGN(const NodeStory story, read_story(cli, cgroups));
      const auto why = explain_why(story, cgroups, options->selector);
      // It may be one of these.
      if (!why)
        for (const Finding& each : story.missed.findings)
          warn(app::one_line(each.text));
      if (!why) return fail(why.error());
      return print(options->output.is_json() ? dump(why->json) + "\n" : why_text(*why, screen));
    };
    auto status = run();
    cli.status = status ? std::move(status) : fail(for_root(status.error()));
  });
}

}  // namespace podqos::ctl
