#include "nri/messages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/text.h"
#include "nri/protobuf.h"

namespace podqos::nri {

namespace {

using protozero::pbf_reader;
using protozero::pbf_tag_type;
using protozero::pbf_writer;

/// Prefix of the annotations that podqos reads.
constexpr std::string_view kOwnPrefix = "podqos.io/";
/// Bytes of memory that an entry of a map takes beside its texts.
constexpr std::size_t kEntrySize = 64;

// The numbers of the fields that podqos reads or writes (containerd/nri v0.12.2,
// pkg/api/api.proto). A runtime skips those that it does not know.
enum RegistrationField : std::uint8_t { kPluginName = 1, kPluginIndex = 2 };
enum ConfigureField : std::uint8_t { kRuntimeName = 2, kRuntimeVersion = 3, kNriVersion = 6 };
enum ConfigureResponseField : std::uint8_t { kEvents = 2 };
enum SynchronizeField : std::uint8_t { kPods = 1, kContainers = 2, kMore = 3 };
enum PodField : std::uint8_t {
  kPodId = 1,
  kPodName = 2,
  kPodUid = 3,
  kPodNamespace = 4,
  kPodAnnotations = 6,
  kPodLinux = 8,
  kPodPid = 9,
};
enum LinuxPodField : std::uint8_t { kPodOverhead = 1, kPodResources = 2, kPodCgroupsPath = 4 };
enum ContainerField : std::uint8_t {
  kContainerId = 1,
  kSandboxId = 2,
  kContainerName = 3,
  kState = 4,
  kContainerAnnotations = 6,
  kContainerLinux = 11,
  kContainerPid = 12,
};
constexpr int kStateCreated = 1;
enum LinuxContainerField : std::uint8_t { kResources = 3, kOomScoreAdj = 4, kCgroupsPath = 5 };
enum ResourcesField : std::uint8_t {
  kMemory = 1,
  kCpu = 2,
  kHugepageLimits = 3,
  kUnified = 6,
  kPids = 8,
};
enum MemoryField : std::uint8_t { kMemoryLimit = 1, kReservation = 2, kSwap = 3 };
enum CpuField : std::uint8_t { kShares = 1, kQuota = 2, kPeriod = 3, kRealtimeRuntime = 4 };
enum HugepageLimitField : std::uint8_t { kPageSize = 1, kLimit = 2 };
enum CreateResponseField : std::uint8_t { kAdjust = 1 };
enum AdjustmentField : std::uint8_t { kAdjustLinux = 6 };
enum LinuxAdjustmentField : std::uint8_t {
  kAdjustResources = 2,
  kAdjustCgroupsPath = 3,
  kAdjustOomScoreAdj = 4,
};
enum EntryField : std::uint8_t { kKey = 1, kValue = 2 };  ///< of a map
/// Of a wrapper such as OptionalInt64; LinuxPids has its limit there, too.
enum WrapperField : std::uint8_t { kWrapped = 1 };

/// A number within the range of int64.
std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

/// The value of a wrapper; one that is not in it is 0.
template <class Number>
Number read_wrapper(const pbf_reader& reader) {
  Number value = 0;
  read_fields(reader, number(kWrapped, value));
  return value;
}

/// A function that reads a wrapper of a signed number, unless that is 0.
auto signed_into(std::optional<std::int64_t>& out) {
  return [&out](const pbf_reader& reader) {
    if (const auto value = read_wrapper<std::int64_t>(reader); value != 0) out = value;
  };
}

/// A function that reads a wrapper of an unsigned number, unless that is 0.
auto unsigned_into(std::optional<std::int64_t>& out) {
  return [&out](const pbf_reader& reader) {
    if (const auto value = read_wrapper<std::uint64_t>(reader); value != 0) out = clamped(value);
  };
}

/// Key and value of a map's entry.
std::pair<std::string, std::string> read_entry(const pbf_reader& reader) {
  std::pair<std::string, std::string> out;
  read_fields(reader, text(kKey, out.first), text(kValue, out.second));
  return out;
}

/// A function that reads an annotation, if it is podqos's own.
auto annotation_into(core::Annotations& out) {
  return [&out](const pbf_reader& reader) {
    auto [key, value] = read_entry(reader);
    if (key.starts_with(kOwnPrefix)) out.insert_or_assign(std::move(key), std::move(value));
  };
}

void read_memory(const pbf_reader& reader, core::EngineResources& out) {
  read_fields(reader, message(kMemoryLimit, signed_into(out.memory_limit)),
              message(kReservation, signed_into(out.memory_reservation)),
              message(kSwap, signed_into(out.memory_swap)));
}

void read_cpu(const pbf_reader& reader, core::EngineResources& out) {
  read_fields(reader, message(kShares, unsigned_into(out.cpu_shares)),
              message(kQuota, signed_into(out.cpu_quota)),
              message(kPeriod, unsigned_into(out.cpu_period)),
              message(kRealtimeRuntime, signed_into(out.cpu_realtime_runtime)));
}

void read_hugepage_limit(const pbf_reader& reader, core::EngineResources& out) {
  std::string size;
  std::uint64_t limit = 0;
  read_fields(reader, text(kPageSize, size), number(kLimit, limit));
  out.hugepages.insert_or_assign(std::move(size), Bytes{clamped(limit)});
}

/// Merges LinuxResources into `out`.
void read_resources(const pbf_reader& reader, core::EngineResources& out) {
  const auto unified = [&](const pbf_reader& entry) {
    auto [file, value] = read_entry(entry);
    out.unified.insert_or_assign(std::move(file), std::move(value));
  };
  read_fields(
      reader, message(kMemory, [&](const pbf_reader& part) { read_memory(part, out); }),
      message(kCpu, [&](const pbf_reader& part) { read_cpu(part, out); }),
      message(kHugepageLimits, [&](const pbf_reader& part) { read_hugepage_limit(part, out); }),
      message(kUnified, unified), message(kPids, signed_into(out.pids_limit)));
}
auto resources_into(core::EngineResources& out) {
  return [&out](const pbf_reader& reader) { read_resources(reader, out); };
}

/// A function that merges CPU and memory of a whole pod into its sums: nullopt if none is set.
auto sums_into(std::optional<core::EngineResources>& out) {
  return [&out](const pbf_reader& reader) {
    core::EngineResources all = out.value_or(core::EngineResources{});
    read_resources(reader, all);
    core::EngineResources sums;
    sums.cpu_shares = all.cpu_shares;
    sums.cpu_quota = all.cpu_quota;
    sums.cpu_period = all.cpu_period;
    sums.memory_limit = all.memory_limit;
    if (sums != core::EngineResources{}) out = sums;
  };
}

void read_pod(const pbf_reader& reader, Reported& out) {
  core::ContainerFacts& facts = out.facts;
  core::EngineAnnotations& engine = *facts.engine;
  const auto on_linux = [&](const pbf_reader& part) {
    read_fields(part, message(kPodOverhead, sums_into(engine.pod_overhead)),
                message(kPodResources, sums_into(engine.pod_sums)),
                text(kPodCgroupsPath, facts.cgroups_path));
  };
  read_fields(reader, text(kPodId, facts.id), text(kPodName, engine.pod_name),
              text(kPodUid, engine.pod_uid), text(kPodNamespace, engine.pod_namespace),
              message(kPodAnnotations, annotation_into(facts.annotations)),
              message(kPodLinux, on_linux), number(kPodPid, out.pid));
  out.sandbox = facts.id;
  if (!facts.id.empty()) engine.sandbox_id = facts.id;
}

void read_container(const pbf_reader& reader, Reported& out) {
  core::ContainerFacts& facts = out.facts;
  const auto score = [&](const pbf_reader& wrapper) {
    facts.oom_score_adj = read_wrapper<std::int64_t>(wrapper);
  };
  const auto on_linux = [&](const pbf_reader& part) {
    read_fields(part, message(kResources, resources_into(facts.resources)),
                message(kOomScoreAdj, score), text(kCgroupsPath, facts.cgroups_path));
  };
  int state = 0;
  read_fields(reader, text(kContainerId, facts.id), text(kSandboxId, out.sandbox),
              text(kContainerName, facts.engine->container_name), number(kState, state),
              message(kContainerAnnotations, annotation_into(facts.annotations)),
              message(kContainerLinux, on_linux), number(kContainerPid, out.pid));
  out.created = state == kStateCreated;
}

/// Bytes that a pod or container takes.
std::size_t size_of(const Reported& reported) {
  const core::ContainerFacts& facts = reported.facts;
  const core::EngineAnnotations& engine = *facts.engine;
  std::size_t size = sizeof reported + facts.id.size() + reported.sandbox.size();
  for (const auto* text : {&facts.cgroups_path, &engine.pod_uid, &engine.sandbox_id,
                           &engine.pod_name, &engine.pod_namespace, &engine.container_name})
    size += *text ? (*text)->size() : 0;
  for (const auto& [page_size, limit] : facts.resources.hugepages)
    size += kEntrySize + page_size.size();
  const auto add = [&size](const auto& texts) {
    for (const auto& [key, value] : texts)
      size += kEntrySize + key.size() + value.size();
  };
  add(facts.resources.unified);
  add(facts.annotations);
  return size;
}

/// Writes a wrapper around a number, also around 0.
void write_wrapper(pbf_writer& writer, pbf_tag_type number, std::int64_t value) {
  pbf_writer wrapper{writer, number};
  wrapper.add_int64(kWrapped, value);
}

void write_cpu(pbf_writer& resources, const core::CgroupValues& values) {
  pbf_writer cpu{resources, kCpu};
  if (values.cpu_shares) write_wrapper(cpu, kShares, values.cpu_shares->value());
  if (values.cpu_quota) write_wrapper(cpu, kQuota, values.cpu_quota->value());
  if (values.cpu_period) write_wrapper(cpu, kPeriod, values.cpu_period->value());
}

/// Writes LinuxResources. protozero leaves out a message in which nothing was written.
void write_resources(pbf_writer& on_linux, const core::CgroupValues& values) {
  pbf_writer resources{on_linux, kAdjustResources};
  if (values.memory_limit) {
    pbf_writer memory{resources, kMemory};
    write_wrapper(memory, kMemoryLimit, values.memory_limit->value());
  }
  write_cpu(resources, values);
  for (const auto& [size, limit] : values.hugepages) {
    pbf_writer added{resources, kHugepageLimits};
    added.add_string(kPageSize, size);
    added.add_uint64(kLimit, static_cast<std::uint64_t>(limit.value()));
  }
  for (const auto& [file, value] : values.unified) {
    pbf_writer entry{resources, kUnified};
    entry.add_string(kKey, file);
    entry.add_string(kValue, value);
  }
  // LinuxPids has its limit where a wrapper has its value.
  if (values.pids_limit) write_wrapper(resources, kPids, *values.pids_limit);
}

}  // namespace

Result<PodEvent> parse_event(std::string_view bytes, const EventFields& fields) {
  return parse_message("request", bytes, [&](const pbf_reader& reader) {
    PodEvent out;
    Reported& pod = out.pod;
    Reported& container = out.container;
    read_fields(
        reader, message(fields.pod, [&](const pbf_reader& part) { read_pod(part, pod); }),
        message(fields.container, [&](const pbf_reader& part) { read_container(part, container); }),
        number(fields.event, out.number));
    // Whatever the order on the wire, new resources are merged last.
    if (fields.container != 0)
      read_fields(reader, message(fields.resources, resources_into(container.facts.resources)));
    else
      read_fields(reader, message(fields.resources, sums_into(pod.facts.engine->pod_sums)));
    return out;
  });
}

Result<ConfigureRequest> parse_configure_request(std::string_view bytes) {
  return parse_message("ConfigureRequest", bytes, [&](const pbf_reader& reader) {
    ConfigureRequest out;
    read_fields(reader, text(kRuntimeName, out.runtime_name),
                text(kRuntimeVersion, out.runtime_version), text(kNriVersion, out.nri_version));
    return out;
  });
}

Result<bool> NodeState::add(std::string_view bytes, std::size_t limit) {
  const auto add = [&](const pbf_reader& part, std::vector<Reported>& all, const auto& read) {
    if (size > limit) return;
    read(part, all.emplace_back());
    size += size_of(all.back());
  };
  const auto add_pod = [&](const pbf_reader& part) { add(part, pods, read_pod); };
  const auto add_container = [&](const pbf_reader& part) { add(part, containers, read_container); };
  auto last = parse_message("SynchronizeRequest", bytes, [&](const pbf_reader& reader) {
    bool more = false;
    read_fields(reader, message(kPods, add_pod), message(kContainers, add_container),
                number(kMore, more));
    return !more;
  });
  if (last && size > limit) {
    last = fail(ErrorCode::kTooLarge,
                cat("Synchronize: more than ", limit, " bytes of pods and containers"));
  }
  if (!last) *this = {};
  return last;
}

std::string format_registration(std::string_view name, std::string_view index) {
  std::string out;
  pbf_writer writer{out};
  writer.add_string(kPluginName, name.data(), name.size());
  writer.add_string(kPluginIndex, index.data(), index.size());
  return out;
}

std::string format_configure_response(std::int32_t events) {
  std::string out;
  pbf_writer{out}.add_int32(kEvents, events);
  return out;
}

std::string format_create_response(const core::ConfigEdit& edit) {
  std::string out;
  {
    pbf_writer response{out};
    pbf_writer adjust{response, kAdjust};
    pbf_writer on_linux{adjust, kAdjustLinux};
    write_resources(on_linux, edit.values);
    if (edit.cgroups_path) on_linux.add_string(kAdjustCgroupsPath, *edit.cgroups_path);
    if (edit.oom_score_adj) write_wrapper(on_linux, kAdjustOomScoreAdj, *edit.oom_score_adj);
  }
  return out;
}

}  // namespace podqos::nri
