#include "ctl/node/selector.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>

#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "common/core/pods/pod_name.h"

namespace podqos::ctl {
namespace {

/// The parts of an argument between slashes.
using Parts = std::span<const std::string>;

/// What counts: whole uids and ids, then names too, then the first digits of ids too.
enum class By : std::uint8_t { kWholeId, kName, kDigits };

bool is_id_of(std::string_view id, std::string_view text, By by) {
  constexpr std::size_t kLeastDigits = 4;
  if (!id.empty() && id == text) return true;
  const auto is_digit = [](char c) { return is_hex(c) || c == '-'; };  // a uid has both
  return by == By::kDigits && text.size() >= kLeastDigits && std::ranges::all_of(text, is_digit) &&
         id.starts_with(text);
}

bool is_name_of(std::string_view name, std::string_view text, By by) {
  return by != By::kWholeId && name == text;
}

bool names_pod(const core::PodRecord& record, Parts parts, By by) {
  const core::Pod& pod = record.pod;
  if (parts.size() == 2) return pod.pod_namespace == parts[0] && pod.name == parts[1];
  if (parts.size() != 1) return false;
  return is_id_of(pod.uid, parts[0], by) || is_name_of(pod.name, parts[0], by) ||
         is_id_of(record.sandbox_id, parts[0], by) ||
         is_id_of(record.pod_id.value_or(""), parts[0], by);
}

bool names_container(const core::ContainerRecord& container, std::string_view text, By by) {
  return !container.sandbox &&
         (is_name_of(container.name, text, by) || is_id_of(container.id, text, by));
}

using Selections = std::vector<Selection>;

Selections pods_named(const std::vector<const core::PodRecord*>& pods, Parts parts, By by) {
  Selections found;
  for (const core::PodRecord* pod : pods)
    if (names_pod(*pod, parts, by)) found.push_back({.pod = pod});
  return found;
}

/// The last part names the container, those before it, if there are any, its pod.
Selections containers_named(const std::vector<const core::PodRecord*>& pods, Parts parts, By by) {
  Selections found;
  const Parts of_pod = parts.first(parts.size() - 1);
  for (const core::PodRecord* pod : pods) {
    if (!of_pod.empty() && !names_pod(*pod, of_pod, std::max(by, By::kName))) continue;
    for (const core::ContainerRecord& container : pod->containers)
      if (names_container(container, parts.back(), by))
        found.push_back({.pod = pod, .container = &container});
  }
  return found;
}

Selections find(const std::vector<const core::PodRecord*>& pods, Parts parts) {
  for (const By by : {By::kWholeId, By::kName, By::kDigits}) {
    if (auto found = pods_named(pods, parts, by); !found.empty()) return found;
    if (auto found = containers_named(pods, parts, by); !found.empty()) return found;
  }
  return {};
}

/// What selects it, if no other has the same names.
std::string names_of(const Selection& selection) {
  const auto engine = core::format_engine(selection.pod->engine);
  return cat(
      engine, engine.empty() ? "" : ":", core::display_name(*selection.pod),
      selection.container == nullptr ? "" : cat("/", core::display_name(*selection.container)));
}

/// "podman:web, docker:web"; with ids where names are the same.
std::string list_of(const Selections& found) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  std::ranges::transform(found, std::back_inserter(names), names_of);
  std::string list;
  for (std::size_t i = 0; i < std::min(found.size(), kMost); ++i) {
    const auto& [pod, container] = found[i];
    const std::string_view id = container == nullptr ? pod->pod.uid : container->id;
    list +=
        cat(i == 0 ? "" : ", ", names[i],
            std::ranges::count(names, names[i]) > 1 ? cat(" (", printable(core::short_id(id)), ")")
                                                    : "");
  }
  if (found.size() > kMost) list += cat(" and ", found.size() - kMost, " more");
  return list;
}

/// The nearest of all names, or the pods that there are.
std::string hint(const std::vector<const core::PodRecord*>& pods, std::string_view argument) {
  std::vector<std::string> names;
  Selections all;
  for (const core::PodRecord* pod : pods) {
    all.push_back({.pod = pod});
    const std::string name = core::display_name(*pod);
    names.insert(names.end(), {name, printable(pod->pod.name), printable(pod->pod.uid)});
    for (const core::ContainerRecord& container : pod->containers) {
      if (container.sandbox) continue;
      const std::string own = core::display_name(container);
      names.insert(names.end(), {own, cat(name, "/", own)});
    }
  }
  const std::string nearest = codec::nearest_name(argument, {names.begin(), names.end()});
  if (!nearest.empty()) return cat("; did you mean ", nearest, "?");
  return cat("; podqos has ", list_of(all));
}

}  // namespace

Result<Selection> select(std::span<const core::PodRecord> pods, std::string_view argument) {
  std::string_view rest = argument;
  std::optional<core::Engine> engine;
  if (rest.contains(':')) {
    const std::string_view name = read_until(rest, ':');
    engine = core::parse_engine(name);
    if (!engine)
      return fail(ErrorCode::kInvalidArgument,
                  cat("unknown engine \"", printable(name), "\"",
                      codec::hint_for(name, {"podman", "docker", "containerd", "cri-o"})));
  }
  std::vector<const core::PodRecord*> candidates;
  for (const core::PodRecord& pod : pods)
    if (!engine || pod.engine == engine) candidates.push_back(&pod);
  const auto parts = parts_of(rest, '/');
  const Selections found = parts.empty() ? Selections{} : find(candidates, parts);
  if (found.size() == 1) return found.front();
  const std::string name = cat("\"", printable(argument), "\"");
  if (!found.empty())
    return fail(ErrorCode::kInvalidArgument, cat(name, " is the name of several: ", list_of(found),
                                                 ": name one of them in full, or by its id"));
  if (candidates.empty())
    return fail(ErrorCode::kNotFound,
                cat("pod or container ", name, " not found; podqos has no pods",
                    engine ? cat(" of ", core::format_engine(engine)) : ""));
  return fail(ErrorCode::kNotFound,
              cat("pod or container ", name, " not found", hint(candidates, rest)));
}

}  // namespace podqos::ctl
