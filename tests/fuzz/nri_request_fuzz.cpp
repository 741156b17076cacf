#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/codec/annotations.h"
#include "common/codec/record_json.h"
#include "common/core/admission.h"
#include "common/core/container_values.h"
#include "common/core/driver.h"
#include "common/core/identity.h"
#include "common/core/naming.h"
#include "common/core/pod_claim.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "nri/adjustment.h"
#include "nri/facts.h"
#include "nri/protobuf_log.h"
#include "tests/fuzz/require.h"

namespace {

namespace api = podqos::nri::api;
namespace codec = podqos::codec;
namespace core = podqos::core;
using podqos::Bytes;
using podqos::MilliCpu;
using podqos::fuzz::require;

const core::NodeCapacity kNode{.memory = Bytes{std::int64_t{8} << 30U}, .cpu = MilliCpu{4000}};

const core::CgroupLayout kLayout{.cpu = core::CgroupVersion::kV2,
                                 .memory = core::CgroupVersion::kV2,
                                 .hugetlb = core::CgroupVersion::kV2,
                                 .pids = core::CgroupVersion::kV2,
                                 .hugepage_labels = {"2MB", "1GB"}};

/// What podqos decides for one container; nullopt if it is refused or not managed.
std::optional<core::Admission> admitted(const core::ContainerFacts& facts,
                                        const std::optional<core::PodRecord>& existing,
                                        const core::Settings& settings) {
  const auto podqos = codec::parse_podqos_annotations(facts.annotations);
  const auto& engine = facts.engine;
  require(engine.has_value());
  if (!podqos || !core::concerns_podqos(*podqos, *engine, settings, facts.cgroups_path))
    return std::nullopt;
  core::AdmissionRequest request;
  request.facts = facts;
  request.annotations = {*podqos, *engine};
  request.placed_at = facts.cgroups_path;
  const auto identity =
      core::identify(facts, request.annotations, settings, facts.cgroups_path, "/kubepods");
  if (!identity) return std::nullopt;
  require(core::check_pod_uid(identity->uid).has_value());
  const auto claim = core::claim_for(*identity, facts, request.annotations, settings, kNode.memory);
  const podqos::Result<std::string> root{"/kubepods"};
  const core::AdmissionSnapshot snapshot{
      .identity = *identity,
      .claim = claim,
      .before = existing,
      .existing = existing,
      .others = {},
      .capacity = kNode,
      .root = root,
      .pod_cgroup = [](const std::string&) { return core::PodCgroupSnapshot{}; }};
  auto admission = core::decide_admission(request, snapshot, settings);
  if (!admission || admission->outcome != core::AdmissionOutcome::kAdmitted) return std::nullopt;
  const core::PodRecord& record = admission->record;
  require(record.granted.cpu <= kNode.cpu && record.granted.memory <= kNode.memory);
  require(record.granted.cpu.value() >= 0 && record.granted.memory.value() >= 0);
  core::fill_in_missing(*admission, request, claim, {}, kLayout);
  return std::move(*admission);
}

/// What is asked of the runtime stays within the pod, and can be sent and written down.
void check_answer(const core::ContainerFacts& facts, const core::Admission& admission) {
  const core::PodRecord& record = admission.record;
  require(codec::parse_pod_record(codec::format_pod_record(record)).value() == record);
  const std::string& cgroup = admission.container.cgroup;
  if (!record.adopted && !admission.left_with_engine) {
    require(cgroup.starts_with(record.cgroup + "/"));
    const std::string leaf = cgroup.substr(record.cgroup.size() + 1);
    require(!leaf.contains('/') && leaf != "." && leaf != ".." && !leaf.empty());
  }
  const int score = admission.oom_score_adj.value_or(0);
  require(score >= -1000 && score <= 1000);
  const auto edit = core::config_edit(core::oci_cgroups_path(cgroup, facts.id), admission.missing,
                                      admission.oom_score_adj);
  api::CreateContainerResponse answer;
  *answer.mutable_adjust() = podqos::nri::adjustment_for(edit);
  api::CreateContainerResponse read;
  require(read.ParseFromString(answer.SerializeAsString()));
  require(read.adjust().linux().cgroups_path() == *edit.cgroups_path);
}

}  // namespace

/// The first byte chooses the settings, the rest is a CreateContainerRequest: first its sandbox
/// comes, then the container.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  podqos::nri::set_protobuf_log({});
  if (size < 2) return 0;
  core::Settings settings;
  settings.scope = (bytes[0] & 1U) != 0 ? core::Scope::kAll : core::Scope::kPods;
  if ((bytes[0] & 2U) != 0) settings.trust_annotations = core::TrustAnnotations::kEngineChecked;
  settings.allow_qos_override = (bytes[0] & 4U) != 0;
  api::CreateContainerRequest request;
  if (!request.ParseFromArray(bytes + 1, static_cast<int>(size - 1))) return 0;
  std::optional<core::PodRecord> pod;
  if (const auto facts = podqos::nri::sandbox_facts(request.pod())) {
    if (const auto sandbox = admitted(*facts, std::nullopt, settings)) {
      check_answer(*facts, *sandbox);
      pod = sandbox->record;
    }
  }
  const auto facts = podqos::nri::container_facts(request.pod(), request.container());
  if (!facts) return 0;
  // With its sandbox the pod lives; without one, which was not reported, it is a new pod.
  if (pod && (bytes[0] & 8U) != 0) pod->containers.clear();
  if (const auto admission = admitted(*facts, pod, settings)) check_answer(*facts, *admission);
  return 0;
}
