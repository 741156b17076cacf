#include "ctl/node/not_managed.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "common/app/admission.h"
#include "common/app/log.h"
#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/core/cgroups/naming.h"
#include "common/core/pods/pod_name.h"
#include "common/sys/directory.h"
#include "ctl/node/engines.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/node_checks.h"
#include "ctl/node/runtime_state.h"

namespace podqos::ctl {
namespace {

using core::Event;
using core::EventKind;

/// podqos moves no running container.
constexpr std::string_view kRecreate = ", then recreate the container";

/// How the engine comes to ask podqos, in the order of core::Engine.
constexpr std::array<std::string_view, 4> kRegistration = {
    "podqosctl configure podman",
    "podqosctl configure docker --restart, and start it with --runtime podqos; or: podqosctl "
    "configure docker --set-as-default --restart",
    "podqosctl configure containerd --restart", "podqosctl configure crio --restart"};

/// Whether it has plugins.
bool is_cri(std::optional<core::Engine> engine) {
  return engine == core::Engine::kContainerd || engine == core::Engine::kCrio;
}

bool is_failure(EventKind kind) {
  return kind == EventKind::kFailed || kind == EventKind::kRefused || kind == EventKind::kMisplaced;
}

/// What a container, which may have been made again, has in common with that of an event: its id,
/// or else its name in its pod. "" for what is not known.
std::array<std::string, 2> keys_of(const Event& event) {
  const bool named = !event.uid.empty() && !event.container.empty();
  return {event.container_id, named ? cat(event.uid, "/", event.container) : ""};
}

/// See MissedFacts. containerd's shim notes the path of its runtime in the bundle.
/// @note containerd cmd/containerd-shim-runc-v2/runc/util.go WriteRuntime
std::string_view program_in(const sys::Directory& bundle, const codec::OciConfig& config) {
  if (config.has_create_hook) return "podqos-hook";
  constexpr std::size_t kMostPath = 4096;
  const auto runtime = bundle.read_file("runtime", kMostPath);
  return runtime && trimmed(*runtime).ends_with("/podqos-runtime") ? "podqos-runtime" : "";
}

/// Looks at containers that are in no record.
class Search {
 public:
  Search(const app::ConfigurationReport& configuration, const NodeRecords& records,
         const std::vector<Event>& events, cgroup::Machine& cgroups)
      : configuration_(configuration),
        settings_(configuration.settings),
        records_(records),
        cgroups_(cgroups) {
    settings_.enabled = true;
    for (const Event& event : events)
      for (std::string& key : keys_of(event))
        if (!key.empty()) last_[std::move(key)] = &event;
    const auto plugin = read_plugin(settings_.state_dir, std::nullopt);
    had_plugin_ = plugin.has_value();
    lacks_plugin_ = plugin && !plugin->process;
    for (const core::PodRecord& pod : records.pods)
      for (const core::ContainerRecord& container : pod.containers)
        known_.insert(container.id);
  }

  MissedContainers run() {
    constexpr std::size_t kMost = 2000;
    const RuntimeStates states = read_runtime_states(known_, kMost);
    for (const auto& [id, error] : states.unread)
      add_unread(id, error);
    for (const RuntimeContainer& each : states.containers) {
      if (!may_run(each)) continue;
      const auto cgroup = cgroups_.cgroup_of(each.pid);
      if (cgroup && !core::find_pod_cgroup(*cgroup)) look_at(each, *cgroup);
    }
    if (unread_ > kMostWarnings)
      add_finding(cat("nor could ", unread_ - kMostWarnings, " more containers be read"));
    if (!states.complete)
      add_finding(cat("only the first ", kMost,
                      " containers of runtimes were looked at: others that podqos does not "
                      "manage may be missing here"));
    return {.containers = std::move(found_), .findings = std::move(findings_)};
  }

 private:
  static constexpr std::size_t kMostWarnings = 20;

  void add_finding(std::string text) { findings_.push_back(finding_of("missed", std::move(text))); }

  [[nodiscard]] bool may_run(const RuntimeContainer& container) const {
    return !container.start_time || cgroups_.is_alive(container.pid, *container.start_time);
  }

  /// Warns of a container of which it cannot be told whether podqos should manage it.
  void add_unread(const std::string& id, const Error& error) {
    if (++unread_ <= kMostWarnings)
      add_finding(cat("container ", id, ": ", error.message,
                      "; whether podqos should manage it is unknown"));
  }

  /// Adds the container if podqos should manage it.
  void look_at(const RuntimeContainer& container, const std::string& cgroup) {
    const auto bundle = sys::Directory::open(container.bundle);
    const auto text =
        bundle ? bundle->read_file("config.json", codec::kMaxConfigSize) : fail(bundle.error());
    const auto config = text ? codec::OciConfig::parse(*text) : fail(text.error());
    // With one that has ended meanwhile its bundle may have gone.
    if (!config && may_run(container)) add_unread(container.id, config.error());
    if (!config) return;
    core::ContainerFacts facts = config->facts;
    facts.id = container.id;
    facts.bundle = container.bundle;
    const bool annotated = std::ranges::any_of(
        facts.annotations, [](const auto& each) { return each.first.starts_with("podqos.io/"); });
    NotManaged missed{.container = app::subject_of(facts, cgroup), .pid = container.pid};
    missed.container.cgroup = cgroup;
    const auto request = app::admission_request(std::move(facts), settings_, cgroup);
    const auto engine = core::parse_engine(missed.container.engine);
    // A plugin is told annotations that the engine keeps from the bundle.
    const bool meant =
        annotated || (lacks_plugin_ && is_cri(engine)) || is_of_known_pod(missed.container);
    if ((request && !*request) || !meant) return;
    // The pod's containers tell of it.
    if (request && (*request)->engine.is_sandbox) return;
    explain(missed, {.configuration = configuration_,
                     .failure = failure_of(missed.container),
                     .refusal = request ? std::nullopt : std::optional{request.error()},
                     .program = program_in(*bundle, *config),
                     .engine = engine,
                     .had_plugin = had_plugin_});
    found_.push_back(std::move(missed));
  }

  [[nodiscard]] bool is_of_known_pod(const Event& container) const {
    return !container.uid.empty() &&
           std::ranges::any_of(records_.pods, [&](const core::PodRecord& pod) {
             return !pod.kubelets_own &&
                    (pod.pod.uid == container.uid || pod.sandbox_id == container.uid);
           });
  }

  /// The last event of the container, if that is a failure.
  [[nodiscard]] const Event* failure_of(const Event& container) const {
    const Event* found = nullptr;
    for (const std::string& key : keys_of(container))
      if (const auto last = last_.find(key);
          last != last_.end() && (found == nullptr || found->time < last->second->time))
        found = last->second;
    return found != nullptr && is_failure(found->kind) ? found : nullptr;
  }

  const app::ConfigurationReport& configuration_;
  core::Settings settings_;  ///< as if podqos were on
  const NodeRecords& records_;
  std::map<std::string, const Event*> last_;  ///< events by keys_of()
  cgroup::Machine& cgroups_;
  bool had_plugin_ = false;
  bool lacks_plugin_ = false;                 ///< it has ended
  std::set<std::string, std::less<>> known_;  ///< ids of containers with records
  std::vector<NotManaged> found_;
  Findings findings_;
  std::size_t unread_ = 0;
};

}  // namespace

void explain(NotManaged& missed, const MissedFacts& facts) {
  const auto set = [&](std::string why, std::string_view remedy) {
    missed.why = std::move(why);
    missed.remedy = cat(remedy, kRecreate);
  };
  if (facts.failure != nullptr)
    return set(cat("podqos failed, and it started all the same: ", facts.failure->text),
               "correct what is said there");
  if (facts.refusal) return set(facts.refusal->message, "correct the annotation");
  const bool cri = is_cri(facts.engine);
  const bool by_plugin = cri && facts.had_plugin;
  if (!facts.configuration.settings.enabled && (by_plugin || !facts.program.empty()))
    return set("podqos is switched off by \"enabled\": false", "remove \"enabled\": false");
  if (!facts.program.empty())
    return set(cat("its engine called ", facts.program, ", which has recorded nothing of it"),
               cat("see journalctl -t ", facts.program));
  set(cat("podqos was not asked when it was created: its runtime was not podqos-runtime, it has no "
          "hook of podqos's",
          cri ? ", and podqos-nri was not connected" : ""),
      by_plugin      ? "see the check \"plugin\" of podqosctl doctor"
      : facts.engine ? kRegistration.at(static_cast<std::size_t>(*facts.engine))
                     : "use podqos-runtime in place of its runtime");
}

MissedContainers find_not_managed(const app::ConfigurationReport& configuration,
                                  const NodeRecords& records,
                                  const std::vector<core::Event>& events,
                                  cgroup::Machine& cgroups) {
  return Search{configuration, records, events, cgroups}.run();
}

std::string not_managed_text(const std::vector<NotManaged>& missed, const Screen& screen) {
  std::vector<Row> rows = {heading({"NOT MANAGED", "ENGINE", "WHY"})};
  const auto shown = [&](const std::string& text) { return fitted(app::one_line(text), screen); };
  constexpr std::size_t kMost = 20;
  for (const NotManaged& each : missed | std::views::take(kMost)) {
    const std::string& engine = each.container.engine;
    rows.push_back({cell(shorten_middle(name_of(each.container), screen.width / 3), Colour::kBold),
                    cell(engine.empty() ? "-" : printable(engine)),
                    cell(shown(each.why), Colour::kRed)});
    rows.push_back({cell(""), cell(""), cell(cat("fix: ", shown(each.remedy)))});
  }
  if (missed.empty()) return "";
  return cat("\n", format_table(rows, screen),
             missed.size() > kMost
                 ? cat("and ", missed.size() - kMost, " more: podqosctl status -o json\n")
                 : "");
}

}  // namespace podqos::ctl
