#include "ctl/why.h"

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
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "ctl/command.h"
#include "ctl/describe.h"
#include "ctl/event_pods.h"
#include "ctl/explanation.h"
#include "ctl/inventory_view.h"
#include "ctl/selector.h"
#include "ctl/since.h"

namespace podqos::ctl {
namespace {

using core::Event;

/// A fact in words. "{NAME}" stands for its member of that name.
struct Sentence {
  std::string_view fact;
  std::string_view text;
  std::string_view without = "";  ///< where the member "value" is null
};
constexpr std::array kSentences = {
    Sentence{"managed", "podqos manages pod {pod}: {running} of {all} containers run."},
    Sentence{"counted",
             "A kubelet manages pod {pod}, podqos counts its requests: {running} of {all} "
             "containers run."},
    Sentence{"released",
             "Pod {pod} has ended; memory is still charged to its cgroup, which stays."},
    Sentence{"class", "Its class is {class}: {reason} (by {source})."},
    Sentence{"partial", "Its containers become known one after another: it may have more."},
    Sentence{"cgroup", "{of} cgroup is {value}."},
    Sentence{"requests", "{of} requests are {value}.",
             "{of} requests are none, so that it has the least share of the CPU."},
    Sentence{"cpuWeight", "{of} CPU weight is {value}."},
    Sentence{"cpuShares", "{of} CPU shares are {value}."},
    Sentence{"cpuLimit", "{of} CPU limit is {value}.", "{of} CPU has no limit."},
    Sentence{"throttled", "{of} CPU limit made it wait in {value} of {periods} periods."},
    Sentence{"memoryLimit", "{of} memory limit is {value}; {usage} are in use.",
             "{of} memory has no limit; {usage} are in use."},
    Sentence{"memory.min", "{of} memory.min is {value}: so much is never reclaimed."},
    Sentence{"memory.low", "{of} memory.low is {value}: so much is reclaimed last."},
    Sentence{"memory.high", "{of} memory.high is {value}: beyond it is throttled."},
    Sentence{"pidsLimit", "{of} limit of processes is {value}."},
    Sentence{"oomScoreAdj", "{of} OOM score adjustment is {value}."},
    Sentence{"oomKills", "{of} processes were OOM-killed: {value}, as the kernel counts."},
    Sentence{"warning", "Warning: {text}."},
    Sentence{"notManaged", "podqos does not manage {who}: {text}."},
    Sentence{"remedy", "Remedy: {text}."},
    Sentence{"omitted", "Events left out here: {value}, see podqosctl events."},
    Sentence{"ended", "It has ended: podqos has no record of it any more."},
    Sentence{"unknown", "podqos has no record of it: it may run unmanaged."},
};
/// Events in words, in the order of core::EventKind. The texts of later ones are sentences without
/// a subject, as are those of most.
constexpr std::array<std::string_view, 7> kEventSentences = {
    "{program} {placed} {who} before it was created: {text}.",
    "{program} took in {who}, which ran already: {text}.",
    "podqos failed for {who}: {text}.",
    "{who} was refused and not started: {text}.",
    "{who} started outside its pod: {text}.",
    "{who}: {text}.",
    "podqos corrected {who}: {text}."};
static_assert(kEventSentences.size() == static_cast<std::size_t>(core::EventKind::kCorrected) + 1);

/// By which way in a program hears of containers.
std::string way_in(std::string_view program) {
  if (program == "podqos-runtime") return "The wrapper podqos-runtime";
  if (program == "podqos-hook") return "The hook podqos-hook";
  if (program == "podqos-nri") return "The plugin podqos-nri";
  return printable(program);
}

/// The text of a template with the members of `fact`.
std::string filled(std::string_view text, const Json& fact) {
  std::string out;
  while (!text.empty()) {
    out += read_until(text, '{');
    if (text.empty()) break;
    const Json value = fact.value(std::string{read_until(text, '}')}, Json(""));
    out += value.is_string() ? value.get<std::string>() : value.dump();
  }
  if (out.ends_with("?.")) out.pop_back();
  return out;
}

/// @param whole  whether the story is about a whole pod, not about one container
std::string sentence_of(const Json& fact, bool whole) {
  Json shown = fact;
  if (text_in(fact, "fact") == "event") {
    shown["program"] = way_in(text_in(fact, "program"));
    const auto kind = place_of_word(core::kEventKinds, text_in(fact, "event")).value_or(0);
    const auto sentence =
        kind < kEventSentences.size() ? kEventSentences.at(kind) : "{who}: {text}.";
    const auto time = parse_utc(text_in(fact, "time")).value_or(UnixMillis{});
    return cat(format_local(time), ": ", filled(sentence, shown));
  }
  const Json container = fact.value("container", Json(nullptr));
  if (container.is_null())
    shown["of"] = whole ? "Its" : "Its pod's";
  else
    shown["of"] = whole ? cat("Container ", container.get<std::string>(), "'s") : "Its";
  const auto* const sentence =
      std::ranges::find(kSentences, text_in(fact, "fact"), &Sentence::fact);
  const bool is_null = fact.contains("value") && fact.at("value").is_null();
  return filled(is_null ? sentence->without : sentence->text, shown);
}

/// Collects facts about what was selected.
class Facts {
 public:
  explicit Facts(const Selection& selected) : selected_(selected) {}

  void add(std::string_view fact, const Json& members) {
    Json& json = list_.emplace_back(Json{{"fact", fact}});
    json.update(members);
  }

  void add_class(const core::PodRecord& record, const Json& pod) {
    const auto [running, all] = running_in(pod);
    const bool released = record.released_at.has_value();
    add(released              ? "released"
        : record.kubelets_own ? "counted"
                              : "managed",
        {{"pod", pod_title(pod)}, {"running", running}, {"all", all}});
    add("class", {{"class", core::format_qos_class(record.qos_class)},
                  {"reason", verdict_of(record, core::whole_pod(record.pod, record.sums)).reason},
                  {"source", text_in(pod, "source")}});
    if (!record.complete) add("partial", Json::object());
  }

  /// A value of the pod, or of one of its containers.
  /// @param container  nullptr: of the pod
  /// @param text  "-" for none
  void add_value(const Json* container, std::string_view fact, std::string_view text,
                 const Json& more = Json::object()) {
    Json members = {
        {"container", container == nullptr ? Json() : Json(container_title(*container))},
        {"value", text == "-" ? Json(nullptr) : Json(text)}};
    members.update(more);
    add(fact, members);
  }

  void add_cpu(const Json& pod, const Json* container) {
    const Json& cgroup = container == nullptr ? pod : *container;
    add_value(container, "cgroup", text_in(cgroup, "cgroup"));
    if (container == nullptr) add_value(container, "requests", amounts_in(pod, "requests"));
    const std::string share = with_rule(held_share(cgroup), ruled_share(pod, cgroup));
    if (share != "-")
      add_value(container, cgroup.at("cpuWeight").is_null() ? "cpuShares" : "cpuWeight", share);
    add_value(container, "cpuLimit", shown_quota(cgroup));
    const Json& throttled = cgroup.at("cpuThrottledPeriods");
    if (throttled.is_number() && throttled != 0)
      add_value(container, "throttled", throttled.dump(),
                {{"periods", number_in(cgroup, "cpuPeriods")}});
  }

  void add_memory(const Json& pod, const Json* container) {
    const Json& cgroup = container == nullptr ? pod : *container;
    const Json& rule = cgroup.at("rule");
    add_value(
        container, "memoryLimit",
        with_rule(bytes_in(cgroup, "memoryLimitBytes"),
                  rule.contains("memoryLimitBytes") ? bytes_in(rule, "memoryLimitBytes") : "-"),
        {{"usage", bytes_in(cgroup, "memoryUsageBytes")}});
    for (const auto& [name, key] : kProtections)
      if (is_set(cgroup.at(key)))
        add_value(container, name, with_rule(bytes_in(cgroup, key), bytes_in(rule, key)));
    for (const char* key : {"pidsLimit", "oomScoreAdj", "oomKills"})
      if (const Json held = cgroup.value(key, Json(nullptr)); is_set(held))
        add_value(container, key, held.dump());
  }

  /// All values, and what is wrong with them.
  void add_pod(const core::PodRecord& record, const Json& pod) {
    add_class(record, pod);
    add_cpu(pod, nullptr);
    add_memory(pod, nullptr);
    for (const Json& container : pod.at("containers")) {
      if (container.at("state") == "dead" || container.at("sandbox") == true) continue;
      add_cpu(pod, &container);
      add_memory(pod, &container);
    }
    for (const Json& warning : pod.at("warnings"))
      add("warning", {{"text", warning}});
  }

  void add_missed(const NotManaged& missed) {
    add("notManaged", {{"who", name_of(missed.container)}, {"text", missed.why}});
    add("remedy", {{"text", missed.remedy}});
  }

  void add_events(const std::vector<Event>& events) {
    const char* const placed = selected_.pod->kubelets_own ? "counted" : "placed";
    constexpr std::size_t kMost = 20;
    std::vector<const Event*> own;
    for (const Event& event : events)
      if (is_about(event, selected_)) own.push_back(&event);
    const std::size_t omitted = own.size() - std::min(own.size(), kMost);
    for (std::size_t at = 0; at < own.size(); ++at) {
      if (at == 1 && omitted > 0) add("omitted", {{"value", omitted}});
      if (at > 0 && at <= omitted) continue;
      const Event& event = *own[at];
      add("event", {{"event", core::format_event_kind(event.kind)},
                    {"time", format_utc(event.time)},
                    {"program", event.program},
                    {"placed", placed},
                    {"who", name_of(event)},
                    {"text", event.text}});
    }
  }

  Json take() { return std::move(list_); }

 private:
  const Selection& selected_;
  Json list_ = Json::array();
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
  if (journal)
    story.events = std::move(journal->events);
  else
    warn(journal.error().message);
  story.missed = find_not_managed(story.configuration, story.records, story.events, cgroups);
  return story;
}

}  // namespace

Result<Json> why_json(const NodeStory& story, cgroup::Machine& cgroups, std::string_view selector) {
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
    PODQOS_ASSIGN(const Json pod,
                  describe_json(story.configuration, story.records, cgroups, recorded));
    facts.add_pod(*recorded.pod, pod);
    state = recorded.pod->released_at    ? "ended"
            : recorded.pod->kubelets_own ? "counted"
                                         : "managed";
  }
  facts.add_events(story.events);
  if (state.empty()) {
    state = state_without_record(story.events, selected);
    // Of a refusal the event tells.
    if (state != "not started") facts.add(state, Json::object());
  }
  const auto* container = selected.container;
  return Json{
      {"pod", core::display_name(*selected.pod)},
      {"container", container == nullptr ? Json(nullptr) : Json(core::display_name(*container))},
      {"state", state},
      {"facts", facts.take()}};
}

std::string why_text(const Json& why, const Screen& screen) {
  const bool whole = why.at("container").is_null();
  std::string out;
  for (const Json& fact : why.at("facts"))
    out += fold(fitted(app::one_line(sentence_of(fact, whole)), screen), "  ", screen.width);
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
      const auto why = why_json(story, cgroups, options->selector);
      // It may be one of these.
      if (!why)
        for (const std::string& warning : story.missed.warnings)
          warn(app::one_line(warning));
      if (!why) return fail(why.error());
      return print(options->output.is_json() ? dump(*why) + "\n" : why_text(*why, screen));
    };
    auto status = run();
    cli.status = status ? std::move(status) : fail(for_root(status.error()));
  });
}

}  // namespace podqos::ctl
