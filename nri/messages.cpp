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

/// The numbers of the fields that podqos reads or writes (containerd/nri v0.12.2,
/// pkg/api/api.proto). A runtime skips those that it does not know.
namespace field {
namespace registration {
enum : std::uint8_t { kName = 1, kIndex = 2 };
}
namespace configure {
enum : std::uint8_t { kConfig = 1, kRuntimeName = 2, kRuntimeVersion = 3, kNriVersion = 6 };
}
namespace configure_response {
enum : std::uint8_t { kEvents = 2 };
}
namespace synchronize {
enum : std::uint8_t { kPods = 1, kContainers = 2, kMore = 3 };
}
namespace synchronize_response {
enum : std::uint8_t { kMore = 2 };
}
namespace pod {
enum : std::uint8_t {
  kId = 1,
  kName = 2,
  kUid = 3,
  kNamespace = 4,
  kAnnotations = 6,
  kLinux = 8,
  kPid = 9,
};
}
namespace linux_pod {
enum : std::uint8_t { kOverhead = 1, kResources = 2, kCgroupsPath = 4 };
}
namespace container {
enum : std::uint8_t {
  kId = 1,
  kSandboxId = 2,
  kName = 3,
  kState = 4,
  kAnnotations = 6,
  kLinux = 11,
  kPid = 12,
};
constexpr int kCreated = 1;  ///< a value of kState
}  // namespace container
namespace linux_container {
enum : std::uint8_t { kResources = 3, kOomScoreAdj = 4, kCgroupsPath = 5 };
}
namespace resources {
enum : std::uint8_t { kMemory = 1, kCpu = 2, kHugepageLimits = 3, kUnified = 6, kPids = 8 };
}
namespace memory {
enum : std::uint8_t { kLimit = 1, kReservation = 2, kSwap = 3 };
}
namespace cpu {
enum : std::uint8_t { kShares = 1, kQuota = 2, kPeriod = 3, kRealtimeRuntime = 4 };
}
namespace hugepage_limit {
enum : std::uint8_t { kPageSize = 1, kLimit = 2 };
}
namespace create_response {
enum : std::uint8_t { kAdjust = 1 };
}
namespace adjustment {
enum : std::uint8_t { kLinux = 6 };
}
namespace linux_adjustment {
enum : std::uint8_t { kResources = 2, kCgroupsPath = 3, kOomScoreAdj = 4 };
}
namespace entry {  // of a map
enum : std::uint8_t { kKey = 1, kValue = 2 };
}
namespace wrapper {  // such as OptionalInt64; LinuxPids has its limit there, too
enum : std::uint8_t { kValue = 1 };
}
}  // namespace field

/// A number within the range of int64.
std::int64_t clamped(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

/// The value of a wrapper; one that is not in it is 0.
template <class Number>
Number read_wrapper(const pbf_reader& reader) {
  Number value = 0;
  read_fields(reader, number(field::wrapper::kValue, value));
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
  read_fields(reader, text(field::entry::kKey, out.first), text(field::entry::kValue, out.second));
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
  read_fields(reader, message(field::memory::kLimit, signed_into(out.memory_limit)),
              message(field::memory::kReservation, signed_into(out.memory_reservation)),
              message(field::memory::kSwap, signed_into(out.memory_swap)));
}

void read_cpu(const pbf_reader& reader, core::EngineResources& out) {
  read_fields(reader, message(field::cpu::kShares, unsigned_into(out.cpu_shares)),
              message(field::cpu::kQuota, signed_into(out.cpu_quota)),
              message(field::cpu::kPeriod, unsigned_into(out.cpu_period)),
              message(field::cpu::kRealtimeRuntime, signed_into(out.cpu_realtime_runtime)));
}

void read_hugepage_limit(const pbf_reader& reader, core::EngineResources& out) {
  std::string size;
  std::uint64_t limit = 0;
  read_fields(reader, text(field::hugepage_limit::kPageSize, size),
              number(field::hugepage_limit::kLimit, limit));
  out.hugepages.insert_or_assign(std::move(size), Bytes{clamped(limit)});
}

/// A function that merges LinuxResources into `out`.
auto resources_into(core::EngineResources& out) {
  return [&out](const pbf_reader& reader) {
    const auto unified = [&](const pbf_reader& entry) {
      auto [file, value] = read_entry(entry);
      out.unified.insert_or_assign(std::move(file), std::move(value));
    };
    read_fields(
        reader,
        message(field::resources::kMemory, [&](const pbf_reader& r) { read_memory(r, out); }),
        message(field::resources::kCpu, [&](const pbf_reader& r) { read_cpu(r, out); }),
        message(field::resources::kHugepageLimits,
                [&](const pbf_reader& r) { read_hugepage_limit(r, out); }),
        message(field::resources::kUnified, unified),
        message(field::resources::kPids, signed_into(out.pids_limit)));
  };
}

void read_pod(const pbf_reader& reader, Pod& out) {
  const auto on_linux = [&](const pbf_reader& part) {
    read_fields(part, message(field::linux_pod::kOverhead, resources_into(out.overhead)),
                message(field::linux_pod::kResources, resources_into(out.resources)),
                text(field::linux_pod::kCgroupsPath, out.cgroups_path));
  };
  read_fields(reader, text(field::pod::kId, out.id), text(field::pod::kName, out.name),
              text(field::pod::kUid, out.uid), text(field::pod::kNamespace, out.name_space),
              message(field::pod::kAnnotations, annotation_into(out.annotations)),
              message(field::pod::kLinux, on_linux), number(field::pod::kPid, out.pid));
}

void read_container(const pbf_reader& reader, Container& out) {
  const auto score = [&](const pbf_reader& wrapper) {
    out.oom_score_adj = read_wrapper<std::int64_t>(wrapper);
  };
  const auto on_linux = [&](const pbf_reader& part) {
    read_fields(part, message(field::linux_container::kResources, resources_into(out.resources)),
                message(field::linux_container::kOomScoreAdj, score),
                text(field::linux_container::kCgroupsPath, out.cgroups_path));
  };
  int state = 0;
  read_fields(reader, text(field::container::kId, out.id),
              text(field::container::kSandboxId, out.sandbox_id),
              text(field::container::kName, out.name), number(field::container::kState, state),
              message(field::container::kAnnotations, annotation_into(out.annotations)),
              message(field::container::kLinux, on_linux), number(field::container::kPid, out.pid));
  out.created = state == field::container::kCreated;
}

/// Bytes that annotations or values of files take.
template <class Map>
std::size_t size_of(const Map& texts) {
  std::size_t size = 0;
  for (const auto& [key, value] : texts)
    size += kEntrySize + key.size() + value.size();
  return size;
}

/// Bytes that resources take.
std::size_t size_of(const core::EngineResources& resources) {
  std::size_t size = size_of(resources.unified);
  for (const auto& [page_size, limit] : resources.hugepages)
    size += kEntrySize + page_size.size();
  return size;
}

std::size_t size_of(const Pod& pod) {
  return pod.id.size() + pod.name.size() + pod.uid.size() + pod.name_space.size() +
         pod.cgroups_path.size() + size_of(pod.annotations) + size_of(pod.overhead) +
         size_of(pod.resources);
}

std::size_t size_of(const Container& container) {
  return container.id.size() + container.sandbox_id.size() + container.name.size() +
         container.cgroups_path.size() + size_of(container.annotations) +
         size_of(container.resources);
}

/// kTooLarge if there are more than `limit` of something.
Status check_limit(std::string_view what, std::size_t number, std::size_t limit) {
  if (number <= limit) return {};
  return fail(ErrorCode::kTooLarge, cat("Synchronize: ", number, " ", what, ", at most ", limit));
}

/// Writes a wrapper around a number, also around 0.
void write_wrapper(pbf_writer& writer, pbf_tag_type number, std::int64_t value) {
  pbf_writer wrapper{writer, number};
  wrapper.add_int64(field::wrapper::kValue, value);
}

void write_cpu(pbf_writer& resources, const core::ConfigEdit& edit) {
  pbf_writer cpu{resources, field::resources::kCpu};
  if (edit.cpu_shares) write_wrapper(cpu, field::cpu::kShares, edit.cpu_shares->value());
  if (edit.cpu_quota) write_wrapper(cpu, field::cpu::kQuota, edit.cpu_quota->value());
  if (edit.cpu_period) write_wrapper(cpu, field::cpu::kPeriod, edit.cpu_period->value());
}

/// Writes LinuxResources. protozero leaves out a message in which nothing was written.
void write_resources(pbf_writer& on_linux, const core::ConfigEdit& edit) {
  pbf_writer resources{on_linux, field::linux_adjustment::kResources};
  if (edit.memory_limit) {
    pbf_writer memory{resources, field::resources::kMemory};
    write_wrapper(memory, field::memory::kLimit, edit.memory_limit->value());
  }
  write_cpu(resources, edit);
  for (const auto& [size, limit] : edit.hugepages) {
    pbf_writer added{resources, field::resources::kHugepageLimits};
    added.add_string(field::hugepage_limit::kPageSize, size);
    added.add_uint64(field::hugepage_limit::kLimit, static_cast<std::uint64_t>(limit.value()));
  }
  for (const auto& [file, value] : edit.unified) {
    pbf_writer entry{resources, field::resources::kUnified};
    entry.add_string(field::entry::kKey, file);
    entry.add_string(field::entry::kValue, value);
  }
  // LinuxPids has its limit where a wrapper has its value.
  if (edit.pids_limit) write_wrapper(resources, field::resources::kPids, *edit.pids_limit);
}

}  // namespace

Result<ParsedEvent> parse_event(std::string_view bytes, const EventFields& fields) {
  return parse_message("request", bytes, [&](const pbf_reader& reader) {
    ParsedEvent out;
    Pod& pod = out.event.pod;
    Container& container = out.event.container;
    core::EngineResources& resources = fields.container != 0 ? container.resources : pod.resources;
    read_fields(
        reader, message(fields.pod, [&](const pbf_reader& r) { read_pod(r, pod); }),
        message(fields.container, [&](const pbf_reader& r) { read_container(r, container); }),
        number(fields.event, out.number));
    // Whatever the order on the wire, new resources are merged last.
    read_fields(reader, message(fields.resources, resources_into(resources)));
    return out;
  });
}

Result<ConfigureRequest> parse_configure_request(std::string_view bytes) {
  return parse_message("ConfigureRequest", bytes, [&](const pbf_reader& reader) {
    ConfigureRequest out;
    read_fields(reader, text(field::configure::kConfig, out.config),
                text(field::configure::kRuntimeName, out.runtime_name),
                text(field::configure::kRuntimeVersion, out.runtime_version),
                text(field::configure::kNriVersion, out.nri_version));
    return out;
  });
}

Result<bool> NodeStateReader::add(std::string_view bytes) {
  auto last = parse_message("SynchronizeRequest", bytes,
                            [&](const pbf_reader& reader) { return read(reader); });
  if (last && *last) return **last;
  *this = NodeStateReader{limits_};
  return fail(last ? std::move(*last).error() : std::move(last).error());
}

Result<bool> NodeStateReader::read(const pbf_reader& reader) {
  bool more = false;
  Status limits = check_limit("parts", ++parts_, limits_.parts);
  const auto keep = [&](std::string_view what, auto& all, std::size_t limit, const auto& read_one) {
    if (limits) limits = check_limit(what, all.size() + 1, limit);
    if (!limits) return;
    bytes_ += read_one(all.emplace_back());
    limits = check_limit("bytes", bytes_, limits_.bytes);
  };
  const auto add_pod = [&](const pbf_reader& part) {
    keep("pods", state_.pods, limits_.pods, [&](Pod& pod) {
      read_pod(part, pod);
      return size_of(pod);
    });
  };
  const auto add_container = [&](const pbf_reader& part) {
    keep("containers", state_.containers, limits_.containers, [&](Container& container) {
      read_container(part, container);
      return size_of(container);
    });
  };
  read_fields(reader, message(field::synchronize::kPods, add_pod),
              message(field::synchronize::kContainers, add_container),
              number(field::synchronize::kMore, more));
  PODQOS_TRY(limits);
  return !more;
}

NodeState NodeStateReader::release() {
  NodeState state = std::exchange(state_, {});
  *this = NodeStateReader{limits_};
  return state;
}

std::string format_registration(std::string_view name, std::string_view index) {
  std::string out;
  pbf_writer writer{out};
  writer.add_string(field::registration::kName, name.data(), name.size());
  writer.add_string(field::registration::kIndex, index.data(), index.size());
  return out;
}

std::string format_configure_response(std::int32_t events) {
  std::string out;
  pbf_writer{out}.add_int32(field::configure_response::kEvents, events);
  return out;
}

std::string format_more_response() {
  std::string out;
  pbf_writer{out}.add_bool(field::synchronize_response::kMore, true);
  return out;
}

std::string format_create_response(const core::ConfigEdit& edit) {
  std::string out;
  {
    pbf_writer response{out};
    pbf_writer adjust{response, field::create_response::kAdjust};
    pbf_writer on_linux{adjust, field::adjustment::kLinux};
    write_resources(on_linux, edit);
    if (edit.cgroups_path)
      on_linux.add_string(field::linux_adjustment::kCgroupsPath, *edit.cgroups_path);
    if (edit.oom_score_adj)
      write_wrapper(on_linux, field::linux_adjustment::kOomScoreAdj, *edit.oom_score_adj);
  }
  return out;
}

}  // namespace podqos::nri
