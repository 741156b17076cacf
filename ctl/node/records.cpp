#include "ctl/node/records.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/codec/json_place.h"
#include "common/store/store.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20U;

std::string read_in(const std::string& path, const char* file) {
  const auto directory = sys::Directory::open(path);
  return directory ? directory->read_file(file, kMaxFile).value_or("") : "";
}

/// Podman starts a conmon for each container, whose argument it is.
/// @note conmon(8) --name
std::string podmans_name(const std::string& root, const core::ContainerRecord& container) {
  const std::string process = cat(root, "/proc/");
  const auto stat = sys::parse_proc_stat(read_in(cat(process, container.pid.value()), "stat"));
  // Another process may have got the pid.
  if (!stat || stat->start_time != container.start_time) return "";
  const std::string text = read_in(cat(process, stat->parent.value()), "cmdline");
  std::string_view arguments = text;
  if (leaf_of(read_until(arguments, '\0')) != "conmon") return "";
  while (!arguments.empty())
    if (read_until(arguments, '\0') == "-n") return std::string{read_until(arguments, '\0')};
  return "";
}

/// @note containers/podman libpod/define/config.go NameRegex; moby daemon/names/names.go
bool is_engines_name(std::string_view name) {
  const auto is_one_of = [](char c, std::string_view others) {
    const auto lower = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || others.contains(c);
  };
  return !name.empty() && is_one_of(name.front(), "") &&
         std::ranges::all_of(name, [&](char c) { return is_one_of(c, "_.-"); });
}

/// @note moby daemon/container/container.go ToDisk
std::string dockers_name(const std::string& root, const std::string& id) {
  const std::string text = read_in(cat(root, "/var/lib/docker/containers/", id), "config.v2.json");
  const auto tree = codec::parse_json_tree(text, {.bytes = kMaxFile});
  std::string name;
  if (!tree || !codec::JsonPlace{*tree}.read_text("Name", name)) return "";
  return name.substr(name.starts_with('/') ? 1 : 0);
}

void add_name(core::PodRecord& pod, core::ContainerRecord& container, const std::string& name) {
  for (core::Container& described : pod.pod.containers)
    if (described.name == container.name) described.name = name;
  container.name = name;
  if (pod.pod.name.empty() && pod.pod.uid.starts_with(container.id)) pod.pod.name = name;
}

}  // namespace

Result<store::Store> open_records(const core::Settings& settings, store::Opening opening) {
  return store::Store::open({.path = settings.state_dir,
                             .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}},
                            opening);
}

Result<NodeRecords> records_in(store::Store& store, store::Opening opening) {
  NodeRecords records;
  PODQOS_ASSIGN(auto uids, store.pod_uids());
  for (const std::string& uid : uids) {
    auto pod = store.pod(uid);
    if (!pod) {
      // That of a newer release says what to do.
      const bool is_newer = pod.error().code == ErrorCode::kUnsupported;
      records.warnings.push_back(
          cat(pod.error().message, is_newer ? "" : ": run podqosctl reconcile"));
    } else if (*pod) {
      records.pods.push_back(std::move(**pod));
    }
  }
  records.node = store.node();
  // Without the lock, an event that goes on looks like one that was interrupted.
  if (opening != store::Opening::kReadUnlocked &&
      (store.dirty() || !store.take_interrupted().empty()))
    records.warnings.emplace_back(
        "an event was interrupted, or records have been lost: run podqosctl reconcile");
  for (const std::string& incident : store.incidents())
    records.warnings.push_back(cat(incident, ": run podqosctl reconcile"));
  return records;
}

Result<NodeRecords> read_records(const core::Settings& settings, store::Opening opening) {
  PODQOS_ASSIGN(auto store, open_records(settings, opening));
  if (opening != store::Opening::kReadUnlocked) PODQOS_TRY(store.unlock());
  return records_in(store, opening);
}

void find_engine_names(NodeRecords& records, const std::string& root) {
  for (const core::PodRecord& pod : records.pods) {
    for (const core::ContainerRecord& container : pod.containers) {
      if (!container.name.empty() && container.name != container.id) continue;
      std::string name = pod.engine == core::Engine::kPodman   ? podmans_name(root, container)
                         : pod.engine == core::Engine::kDocker ? dockers_name(root, container.id)
                                                               : "";
      if (is_engines_name(name)) records.names.emplace(container.id, std::move(name));
    }
  }
  add_engine_names(records);
}

void add_engine_names(NodeRecords& records) {
  for (core::PodRecord& pod : records.pods)
    for (core::ContainerRecord& container : pod.containers)
      if (const auto name = records.names.find(container.id); name != records.names.end())
        add_name(pod, container, name->second);
}

}  // namespace podqos::ctl
