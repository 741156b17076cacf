#include "common/app/placement_cache.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/codec/annotations.h"
#include "common/core/cgroup_parent.h"
#include "common/core/container_values.h"
#include "common/core/counting.h"
#include "common/core/identity.h"
#include "common/core/naming.h"
#include "common/core/pod_claim.h"
#include "common/core/record_size.h"
#include "common/core/reservation.h"
#include "common/core/tree.h"

namespace podqos::app {

namespace {

constexpr std::chrono::seconds kMachineLifetime{5};
// Enough for the pods of a large node. Few of the unusually long entries, which cost more memory
// than they save time.
constexpr std::size_t kRecords = 256;
constexpr std::size_t kLongRecords = 4;
constexpr std::size_t kAnnotations = 8;
constexpr std::size_t kUsualSize = std::size_t{8} << 10U;

constexpr std::string_view kPrefix = "podqos.io/";
constexpr std::string_view kUid = "podqos.io/pod-uid";

/// podqos's own annotations without the uid: the same for all pods of one workload.
core::Annotations kind_of(const core::Annotations& annotations) {
  core::Annotations kind;
  for (auto at = annotations.lower_bound(kPrefix);
       at != annotations.end() && at->first.starts_with(kPrefix); ++at) {
    if (at->first != kUid) kind.insert(kind.end(), *at);
  }
  return kind;
}

/// Compares like kind_of(annotations), without copying them.
struct KindOf {
  const core::Annotations& annotations;
  friend bool operator==(const core::Annotations& kind, const KindOf& wanted) {
    auto known = kind.begin();
    for (auto at = wanted.annotations.lower_bound(kPrefix);
         at != wanted.annotations.end() && at->first.starts_with(kPrefix); ++at) {
      if (at->first == kUid) continue;
      if (known == kind.end() || *known != *at) return false;
      ++known;
    }
    return known == kind.end();
  }
};

/// Bytes of all keys and values.
std::size_t size_of(const core::Annotations& annotations) {
  std::size_t size = 0;
  for (const auto& [key, value] : annotations)
    size += key.size() + value.size();
  return size;
}

/// True if the pod's sandbox is live and the container is not recorded yet. The sandbox is not
/// checked: its engine creates a container in it.
bool is_expected(const core::PodRecord& record, const core::Identity& identity,
                 const std::string& id) {
  const auto is_sandbox = [&](const core::ContainerRecord& container) {
    return container.id == identity.sandbox_id && container.sandbox &&
           container.state == core::ContainerState::kLive;
  };
  return record.sandbox_id == identity.sandbox_id && !record.released_at &&
         std::ranges::any_of(record.containers, is_sandbox) &&
         std::ranges::none_of(record.containers,
                              [&](const auto& container) { return container.id == id; });
}

/// True if pod, tiers and sums have the same values for both records.
bool is_same(const core::PodRecord& before, const core::PodRecord& now,
             const core::Settings& settings) {
  if (now.granted != before.granted || now.claimed != before.claimed) return false;
  const auto old_values = core::pod_values(before, settings);
  const auto new_values = core::pod_values(now, settings);
  return old_values && new_values && *old_values == *new_values;
}

/// True if podqos fills in a limit that would be taken for the engine's when reported again after
/// the start, and would then back the claim that it comes from. admit() prevents this under the
/// lock.
bool would_back_itself(const core::Admission& admission, const core::Settings& settings) {
  return settings.reserve_memory_percent && admission.container.backed_memory &&
         !admission.record.adopted && admission.missing.memory_limit.has_value();
}

}  // namespace

PlacementCache::PlacementCache()
    : records_{kRecords}, long_records_{kLongRecords}, annotations_{kAnnotations} {}

Result<core::PodqosAnnotations> PlacementCache::read(const core::Annotations& annotations) {
  const auto uid = annotations.find(kUid);
  const bool named = uid != annotations.end();
  if (const auto* known = annotations_.find(KindOf{annotations});
      known != nullptr && (!named || core::check_pod_uid(uid->second))) {
    core::PodqosAnnotations read = *known;
    if (named) read.pod_uid = uid->second;
    return read;
  }
  auto read = codec::parse_podqos_annotations(annotations);
  core::Annotations kind = kind_of(annotations);
  if (!read || size_of(kind) > kUsualSize) return read;
  core::PodqosAnnotations without_uid = *read;
  without_uid.pod_uid.reset();
  annotations_.put(std::move(kind), std::move(without_uid));
  return read;
}

const PlacementCache::Known* PlacementCache::known(const std::string& uid) {
  // Stamp before reading: a change in between is noticed next time.
  const auto stamp = state_->stamp_of_pod(uid);
  if (!stamp) return nullptr;
  for (auto* records : {&records_, &long_records_}) {
    const Known* known = records->find(uid);
    if (known != nullptr && known->stamp == *stamp) return known;
  }
  auto record = state_->pod(uid);
  if (!record || !*record) return nullptr;
  const bool has_room = core::check_record_size(**record).has_value();
  auto& records = core::record_size(**record) <= kUsualSize ? records_ : long_records_;
  records.put(uid, Known{.stamp = *stamp, .record = std::move(*record), .has_room = has_room});
  return records.find(uid);
}

bool PlacementCache::owns_host() {
  if (!owns_host_) owns_host_ = cgroup::owns_host();
  return *owns_host_;
}

bool PlacementCache::read_machine(const core::Settings& settings) {
  if (!owns_host()) return false;
  const auto now = Clock::now();
  const bool same_node = machine_ && machine_->pinned_memory == settings.node_memory &&
                         machine_->pinned_cpu == settings.node_cpu &&
                         machine_->swap_behavior == settings.swap_behavior;
  if (same_node && now < machine_->until) return true;
  machine_.reset();
  state_.reset();
  auto cgroups = cgroup::Cgroupfs::open();
  const auto capacity = cgroup::node_capacity(settings);
  if (!cgroups || !capacity) return false;
  machine_ = Machine{.layout = cgroups->layout(),
                     .capacity = *capacity,
                     .pinned_memory = settings.node_memory,
                     .pinned_cpu = settings.node_cpu,
                     .swap_behavior = settings.swap_behavior,
                     .until = now + kMachineLifetime,
                     .memory_files = {}};
  return true;
}

core::MemoryFiles PlacementCache::memory_files(const std::string& pod_cgroup) {
  if (machine_->layout.memory != core::CgroupVersion::kV2) return {};
  if (machine_->memory_files) return *machine_->memory_files;
  auto cgroups = cgroup::Cgroupfs::open();
  if (!cgroups) return {};
  const core::MemoryFiles found = cgroups->memory_files(pod_cgroup);
  // Do not cache an empty result: this cgroup alone may lack the files.
  if (found != core::MemoryFiles{}) machine_->memory_files = found;
  return found;
}

bool PlacementCache::read_state(const core::Settings& settings) {
  if (!state_ || state_dir_ != settings.state_dir || !state_->is_current()) {
    state_.reset();
    auto opened = store::UnlockedState::open(settings.state_dir);
    if (!opened || !*opened) return false;
    state_ = std::move(*opened);
    state_dir_ = settings.state_dir;
  }
  return !state_->interrupted();
}

std::optional<core::Admission> PlacementCache::find(const core::Settings& settings,
                                                    const AdmissionRequest& request) {
  if (core::stays_without_parent(request.facts, request.driver, settings) ||
      !read_machine(settings) || !read_state(settings))
    return std::nullopt;
  const core::TiersRecord& tiers = state_->tiers();
  const core::TreeRecord* tree = core::tree_in_use(tiers, request.driver);
  const Result<std::string> root{tree != nullptr ? tree->kubepods : ""};
  const auto identity =
      core::identify(request.facts, request.annotations, settings, request.placed_at, *root);
  if (!identity || identity->source != core::IdentitySource::kEngine) return std::nullopt;
  const Known* const pod = known(identity->uid);
  if (pod == nullptr || !pod->has_room) return std::nullopt;
  const std::optional<core::PodRecord>& before = pod->record;
  if (!is_expected(*before, *identity, request.facts.id)) return std::nullopt;
  if (before->adopted != identity->placed.has_value()) return std::nullopt;
  // Another tree than that of the container's driver is for admit() to refuse.
  if (!before->adopted && (tree == nullptr || !core::holds(*tree, before->cgroup)))
    return std::nullopt;
  const core::PodClaim claim = core::claim_for(*identity, request.facts, request.annotations,
                                               settings, machine_->capacity.memory);
  const core::AdmissionSnapshot snapshot{
      .identity = *identity,
      .claim = claim,
      .before = before,
      .existing = before,
      .others = core::sums_beside(tiers, before),
      .capacity = machine_->capacity,
      .cpu = machine_->layout.cpu,
      .root = root,
      // Another cgroup than the record's is for admit() to decide.
      .pod_cgroup = [](const std::string&) { return core::PodCgroupSnapshot{.exists = true}; }};
  auto admission = core::decide_admission(request, snapshot, settings);
  if (!admission || admission->outcome != core::AdmissionOutcome::kAdmitted ||
      !admission->warnings.empty())
    return std::nullopt;
  if (!before->adopted && admission->changes_values &&
      !is_same(*before, admission->record, settings))
    return std::nullopt;
  core::fill_in_missing(
      *admission, request, claim,
      core::container_memory_params(settings, machine_->capacity, memory_files(before->cgroup)),
      machine_->layout);
  if (would_back_itself(*admission, settings)) return std::nullopt;
  return std::move(*admission);
}

bool PlacementCache::is_foreign(const core::Settings& settings, const std::string& id) {
  return !owns_host() || (read_state(settings) && !state_->may_involve(id));
}

}  // namespace podqos::app
