#include "common/codec/kernel_log.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"

namespace podqos::codec {

using core::OomKill;

namespace {

/// What stands between the first `begin` and the next `end`; nullopt without them.
std::optional<std::string_view> between(std::string_view text, std::string_view begin,
                                        std::string_view end) {
  const auto at = text.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + begin.size());
  const auto stop = text.find(end);
  if (stop == std::string_view::npos) return std::nullopt;
  return text.substr(0, stop);
}

bool is_named_once(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  return at != std::string_view::npos && text.find(word, at + 1) == std::string_view::npos;
}

/// Priorities (printk) of what is looked for.
constexpr char kError = '3';
constexpr char kInfo = '6';

/// A line of the log.
struct Line {
  std::int64_t at = 0;
  char priority = kInfo;
  std::string_view text;
};

/// Takes "<6>[   12.345678] text" or, with CONFIG_PRINTK_CALLER, "<6>[   12.345678][  T321] text"
/// apart. nullopt for lines without a time, and those of programs, whose priority is 8 or more.
std::optional<Line> parse_line(std::string_view line) {
  const auto priority = between(line, "<", ">[");
  if (!line.starts_with('<') || !priority || priority->size() != 1 || *priority > "7")
    return std::nullopt;
  line.remove_prefix(4);
  const auto end = line.find(']');
  const auto point = line.find('.');
  if (end == std::string_view::npos || point >= end) return std::nullopt;
  const auto seconds = parse_int(trimmed(line.substr(0, point)));
  const auto micros = parse_int(line.substr(point + 1, end - point - 1));
  constexpr std::int64_t kMicros = 1'000'000;
  if (!seconds || !micros || *seconds > kInt64Max / kMicros - 1) return std::nullopt;
  line.remove_prefix(end + 1);
  if (line.starts_with('[')) line.remove_prefix(std::min(line.find(']'), line.size() - 1) + 1);
  return Line{
      .at = *seconds * kMicros + *micros, .priority = priority->front(), .text = trimmed(line)};
}

/// Of "memory: usage 98304kB, limit 98304kB, failcnt 85".
std::optional<Bytes> parse_limit(std::string_view text) {
  const auto kib = between(text, ", limit ", "kB,");
  const auto number = kib ? parse_int(*kib) : std::nullopt;
  constexpr std::int64_t kKi = 1024;
  if (!number || *number < 0 || *number >= kInt64Max / kKi) return std::nullopt;
  return Bytes{*number * kKi};
}

/// Of "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=app,mems_allowed=0,
/// oom_memcg=/kubepods,task_memcg=/kubepods/poda/app,task=dd,pid=18940,uid=0", or with
/// "global_oom" in place of oom_memcg. Author-controlled are the cgroups' names and the process's.
std::optional<OomKill> parse_summary(std::string_view text) {
  // With the slash: of the cpuset the kernel logs the name alone.
  constexpr std::string_view kTask = ",task_memcg=/";
  constexpr std::string_view kLimited = ",oom_memcg=/";
  if (!is_named_once(text, kTask)) return std::nullopt;
  const auto uid = text.rfind(",uid=");
  const auto pid = text.rfind(",pid=", uid);
  const auto task = text.find(kTask);
  // The first: if that is in the name of a cgroup, of one that the author has made, it is cut off.
  const auto name = text.find(",task=", task + kTask.size());
  if (uid == std::string_view::npos || pid == std::string_view::npos || name > pid)
    return std::nullopt;
  const auto number = parse_int(text.substr(pid + 5, uid - pid - 5));
  if (!number) return std::nullopt;
  OomKill kill{.pid = Pid{*number},
               .cgroup = cat("/", text.substr(task + kTask.size(), name - task - kTask.size()))};
  const auto limited = between(text, kLimited, kTask);
  if (limited && !is_named_once(text, kLimited)) return std::nullopt;
  if (!limited && !text.substr(0, task).ends_with(",global_oom")) return std::nullopt;
  kill.limited = limited ? cat("/", *limited) : "";
  return kill;
}

/// Of "Memory cgroup out of memory: Killed process 18940 (dd) total-vm:…", or "Out of memory: …".
std::optional<OomKill> parse_killed(std::string_view text) {
  const bool by_node = text.starts_with("Out of memory");
  if (!by_node && !text.starts_with("Memory cgroup out of memory")) return std::nullopt;
  const auto words = between(text, ": Killed process ", " (");
  const auto number = words ? parse_int(*words) : std::nullopt;
  if (!number) return std::nullopt;
  OomKill kill{.pid = Pid{*number}};
  if (by_node) kill.limited = "";
  return kill;
}

}  // namespace

std::vector<OomKill> parse_oom_kills(std::string_view log) {
  std::vector<OomKill> kills;
  std::optional<Bytes> limit;
  std::int64_t before = 0;
  while (!log.empty()) {
    const auto line = parse_line(read_until(log, '\n'));
    if (!line) continue;
    // A message that quotes a text with line breaks, as errors of mount(2) do, which an author may
    // cause, has several lines here: of one priority and time.
    const bool may_continue = std::exchange(before, line->at) == line->at;
    if (line->text.starts_with("memory: usage ")) {
      limit = parse_limit(line->text);
      continue;
    }
    const bool summary = line->text.starts_with("oom-kill:");
    if (summary ? line->priority != kInfo : line->priority != kError || may_continue) continue;
    auto kill = summary ? parse_summary(line->text) : parse_killed(line->text);
    if (!kill) continue;
    const auto last_limit = std::exchange(limit, std::nullopt);
    // The summary comes first.
    if (!summary && !kills.empty() && kills.back().pid == kill->pid) continue;
    kill->at = line->at;
    if (kill->limited && !kill->limited->empty()) kill->limit = last_limit;
    kills.push_back(*std::move(kill));
  }
  return kills;
}

}  // namespace podqos::codec
