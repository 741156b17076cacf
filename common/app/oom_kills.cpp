#include "common/app/oom_kills.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/due_pods.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/codec/kernel_log.h"
#include "common/core/events/event.h"
#include "common/core/events/oom_kill.h"
#include "common/core/pods/pod_name.h"

namespace podqos::app {

namespace {

/// What the kernel counts now: of cgroup v1 in the cgroups of containers alone, which go with them.
std::int64_t counted_now(cgroup::Machine& machine, const core::PodRecord& record) {
  if (const auto kills = cgroup::CgroupView{machine, record.cgroup}.oom_kills()) return *kills;
  std::int64_t sum = 0;
  for (const core::ContainerRecord& container : record.containers) {
    if (is_below(container.cgroup, record.cgroup))
      sum += cgroup::CgroupView{machine, container.cgroup}.oom_kills_of_container().value_or(0);
  }
  return sum;
}

/// Of those that the kernel counts now, how many were not there at the last look. It counts from 0
/// in a cgroup that was made again.
std::int64_t newly_counted(std::int64_t now, const core::PodRecord& record) {
  return std::max<std::int64_t>(now - record.oom_kills.value_or(core::OomKills{}).counted, 0);
}

std::vector<core::OomKill> read_oom_kills(cgroup::Machine& machine) {
  return codec::parse_oom_kills(machine.kernel_log().value_or(""));
}

/// Notes that these kills were seen.
void note_look(std::optional<core::OomLook>& look, std::optional<std::int64_t> node,
               const std::vector<core::OomKill>& logged) {
  const std::int64_t before = look.value_or(core::OomLook{}).at;
  look = core::OomLook{.node = node.value_or(0),
                       .at = logged.empty() ? before : std::max(before, logged.back().at)};
}

/// Those of a pod that were not reported.
std::vector<core::OomKill> new_kills(const std::vector<core::OomKill>& logged,
                                     const core::PodRecord& record) {
  std::vector<core::OomKill> kills;
  std::ranges::copy_if(logged, std::back_inserter(kills), [&](const core::OomKill& kill) {
    return kill.at > record.oom_look.value_or(core::OomLook{}).at &&
           core::find_killed(record, kill) != nullptr;
  });
  return kills;
}

void report(Transaction& transaction, const core::PodRecord& record,
            const core::ContainerRecord* container, const core::OomKill& kill) {
  const auto peak = cgroup::CgroupView{transaction.machine(), record.cgroup}.memory_peak();
  core::Event event = core::event_of(core::EventKind::kOomKilled, record, container);
  event.text = core::describe_oom_kill(record, kill.limited, kill.limit, peak);
  transaction.event(
      core::LogLevel::kWarning, std::move(event),
      cat(container != nullptr ? core::name_of(record, *container) : core::name_of(record), ": "));
}

}  // namespace

std::int64_t count_oom_kills(cgroup::Machine& machine, const core::PodRecord& record) {
  return record.oom_kills.value_or(core::OomKills{}).reported +
         newly_counted(counted_now(machine, record), record);
}

void note_earlier_oom_kills(Transaction& transaction, core::PodRecord& record) {
  record.oom_look = transaction.node().oom_look;
  // The cgroup may be older than the record: a kubelet's, or that of a former pod of this uid.
  if (record.cgroup.empty()) return;
  const std::int64_t counted = counted_now(transaction.machine(), record);
  if (counted > 0) record.oom_kills = core::OomKills{.counted = counted};
}

bool report_oom_kills(Transaction& transaction, core::PodRecord& record) {
  cgroup::Machine& machine = transaction.machine();
  const auto node = machine.node_oom_kills();
  if (record.cgroup.empty() || node == record.oom_look.value_or(core::OomLook{}).node) return false;
  const auto logged = read_oom_kills(machine);
  const auto kills = new_kills(logged, record);
  const std::int64_t now = counted_now(machine, record);
  const std::int64_t counted = newly_counted(now, record);
  note_look(record.oom_look, node, logged);
  note_look(transaction.node().oom_look, node, logged);
  if (kills.empty() && counted == 0) return false;

  // Of several by the same limit one is told, the last.
  std::map<std::pair<const core::ContainerRecord*, std::optional<std::string>>, core::OomKill> told;
  for (const core::OomKill& kill : kills)
    told.insert_or_assign({core::find_killed(record, kill), kill.limited}, kill);
  // Of the other processes of a memory.oom.group, and of the eleventh kill within five seconds on,
  // the log has no limit, which sorts first.
  std::erase_if(told, [&](const auto& entry) {
    const auto next = told.upper_bound(entry.first);
    return !entry.first.second && next != told.end() && next->first.first == entry.first.first;
  });
  const core::ContainerRecord* const only =
      record.containers.size() == 1 ? &record.containers.front() : nullptr;
  if (kills.empty()) told.emplace(std::pair{only, std::nullopt}, core::OomKill{});
  for (const auto& [whose, kill] : told)
    report(transaction, record, whose.first, kill);

  const auto before = record.oom_kills.value_or(core::OomKills{});
  record.oom_kills = core::OomKills{
      .reported = before.reported + std::max(counted, static_cast<std::int64_t>(kills.size())),
      .counted = now};
  return true;
}

Status report_all_oom_kills(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  std::optional<std::vector<core::OomKill>> logged;
  const auto has_kills = [&](cgroup::Machine& machine, const core::PodRecord& record) {
    if (!logged) logged = read_oom_kills(machine);
    return !new_kills(*logged, record).empty() ||
           newly_counted(counted_now(machine, record), record) > 0;
  };
  return handle_due_pods(settings, log, timeouts,
                         {.is_due = has_kills, .handle = [](auto& transaction, auto& record) {
                            report_oom_kills(transaction, record);
                          }});
}

}  // namespace podqos::app
