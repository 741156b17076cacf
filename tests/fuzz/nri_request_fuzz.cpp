#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/codec/annotations.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/decide_admission.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/pod_values.h"
#include "nri/messages.h"
#include "tests/fuzz/require.h"
#include "tests/unit/nri/nri.pb.h"

namespace {

namespace api = nri::pkg::api::v1alpha1;
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
  if (!podqos || !core::is_managed(*podqos, *engine, settings, facts.cgroups_path))
    return std::nullopt;
  core::AdmissionRequest request;
  request.facts = facts;
  request.podqos = *podqos;
  request.engine = *engine;
  request.placed_at = facts.cgroups_path;
  const auto identity = core::identify(request, settings, "/kubepods");
  if (!identity) return std::nullopt;
  require(core::check_pod_uid(identity->uid).has_value());
  const auto claim = core::claim_for(*identity, request, settings, kNode.memory);
  const podqos::Result<std::string> root{"/kubepods"};
  const core::AdmissionSnapshot snapshot{.identity = *identity,
                                         .root = root,
                                         .claim = claim,
                                         .before = existing,
                                         .existing = existing,
                                         .capacity = kNode,
                                         .layout = kLayout};
  auto pod = core::decide_pod(request, snapshot, settings);
  if (!pod || !*pod) return std::nullopt;
  auto admission = core::decide_admission(request, snapshot, std::move(**pod), settings);
  if (!admission) return std::nullopt;
  const core::PodRecord& record = admission->record;
  require(record.counted_request.cpu <= kNode.cpu && record.counted_request.memory <= kNode.memory);
  require(record.counted_request.cpu.value() >= 0 && record.counted_request.memory.value() >= 0);
  core::fill_in_missing(*admission, request, claim, {}, kLayout);
  return std::move(*admission);
}

/// What is asked of the runtime stays within the pod, and can be sent and written down.
void check_answer(const core::ContainerFacts& facts, const core::Admission& admission) {
  const core::PodRecord& record = admission.record;
  require(codec::parse_pod_record(codec::format_pod_record(record)).value() == record);
  const std::string& cgroup = admission.container.cgroup;
  if (!record.kubelets_own && !admission.left_with_engine) {
    require(cgroup.starts_with(record.cgroup + "/"));
    const std::string leaf = cgroup.substr(record.cgroup.size() + 1);
    require(!leaf.contains('/') && leaf != "." && leaf != ".." && !leaf.empty());
  }
  const int score = admission.oom_score_adj.value_or(0);
  require(score >= -1000 && score <= 1000);
  const core::ConfigEdit edit{.cgroups_path = core::oci_cgroups_path(cgroup, facts.id),
                              .values = admission.missing,
                              .oom_score_adj = admission.oom_score_adj};
  api::CreateContainerResponse read;
  require(read.ParseFromString(podqos::nri::format_create_response(edit)));
  require(read.adjust().linux().cgroups_path() == *edit.cgroups_path);
}

/// What protobuf reads, podqos reads alike. It also takes text that is not UTF-8.
void check_against_protobuf(std::string_view payload,
                            const podqos::Result<podqos::nri::PodEvent>& parsed) {
  api::EventRequest request;
  if (!request.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
  // protobuf steps over groups, which NRI does not have, and over some field numbers that protozero
  // knows to be invalid.
  if (!parsed) return;
  const auto& [pod, container, number] = *parsed;
  const auto name = [](const std::optional<std::string>& text) { return text.value_or(""); };
  require(pod.facts.id == request.pod().id());
  require(name(pod.facts.engine->pod_uid) == request.pod().uid());
  require(pod.pid == request.pod().pid());
  require(name(pod.facts.cgroups_path) == request.pod().linux().cgroups_path());
  for (const auto& [key, value] : pod.facts.annotations)
    require(request.pod().annotations().at(key) == value);
  const core::ContainerFacts& facts = container.facts;
  require(name(facts.engine->container_name) == request.container().name());
  const auto& on_linux = request.container().linux();
  require(facts.oom_score_adj.has_value() == on_linux.has_oom_score_adj());
  require(facts.resources.unified.size() == on_linux.resources().unified().size());
}

}  // namespace

/// The first byte chooses the settings, the rest is a CreateContainerRequest: first its sandbox
/// comes, then the container.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  core::Settings settings;
  settings.scope = (bytes[0] & 1U) != 0 ? core::Scope::kAll : core::Scope::kPods;
  if ((bytes[0] & 2U) != 0) settings.trust_annotations = core::TrustAnnotations::kEngineChecked;
  settings.allow_qos_override = (bytes[0] & 4U) != 0;
  const std::string_view payload = podqos::fuzz::text_of(bytes + 1, size - 1);
  const auto parsed = podqos::nri::parse_event(payload, {});
  check_against_protobuf(payload, parsed);
  if (!parsed) return 0;
  const auto& [sandbox_told, container_told, number] = *parsed;
  std::optional<core::PodRecord> pod;
  if (const auto facts = podqos::nri::sandbox_facts(sandbox_told)) {
    if (const auto sandbox = admitted(*facts, std::nullopt, settings)) {
      check_answer(*facts, *sandbox);
      pod = sandbox->record;
    }
  }
  const auto facts = podqos::nri::container_facts(sandbox_told, container_told);
  if (!facts) return 0;
  // With its sandbox the pod lives; without one, which was not reported, it is a new pod.
  if (pod && (bytes[0] & 8U) != 0) pod->containers.clear();
  if (const auto admission = admitted(*facts, pod, settings)) check_answer(*facts, *admission);
  return 0;
}
