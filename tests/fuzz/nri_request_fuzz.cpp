#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/codec/annotations.h"
#include "common/codec/record_json.h"
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

/// What podqos decides for one arrival; nullopt: refused, or none of its business.
std::optional<core::PodRecord> joined(const core::ContainerFacts& facts,
                                      const std::optional<core::PodRecord>& existing,
                                      const core::Settings& settings) {
  const auto podqos = codec::parse_podqos_annotations(facts.annotations);
  const auto& engine = facts.engine;
  require(engine.has_value());
  if (!podqos || !core::concerns_podqos(*podqos, *engine, settings, facts.cgroups_path))
    return std::nullopt;
  const core::ParsedAnnotations annotations{*podqos, *engine};
  const auto identity =
      core::identify(facts, annotations, settings, facts.cgroups_path, "/kubepods");
  if (!identity) return std::nullopt;
  require(core::check_pod_uid(identity->uid).has_value());
  const auto claim = core::claim_for(*identity, facts, annotations, settings, kNode.memory);
  auto pod = core::merge_claim(existing, *identity, claim, settings);
  const bool nothing = existing && core::adds_nothing(*existing, *identity, claim, settings);
  // A record without room is refused, whatever comes.
  require(!nothing || !pod || (pod->record == *existing && pod->warnings.empty()));
  if (!pod) return std::nullopt;
  core::PodRecord& record = pod->record;
  record.adopted = identity->placed.has_value();
  record.cgroup = record.adopted ? identity->placed->pod_path
                                 : core::pod_path("/kubepods", record.qos_class, record.pod.uid);
  core::grant_requests(record, {}, settings, kNode);
  require(record.granted.cpu <= kNode.cpu && record.granted.memory <= kNode.memory);
  require(record.granted.cpu.value() >= 0 && record.granted.memory.value() >= 0);
  core::ContainerRecord container;
  container.id = facts.id;
  container.name = core::container_name_for(*identity, claim, facts);
  container.sandbox = identity->is_sandbox;
  record.containers.push_back(std::move(container));
  return std::move(record);
}

/// What is asked of the runtime stays within the pod, and can be sent and written down.
void check_answer(const core::ContainerFacts& facts, core::PodRecord record,
                  const core::Settings& settings) {
  require(codec::parse_pod_record(codec::format_pod_record(record)).value() == record);
  static_cast<void>(core::pod_values(record, settings).has_value());
  const auto leaf = core::container_leaf(facts, record.cgroup, {});
  const auto values = core::container_values(record, record.containers.back().name, settings);
  if (!leaf || !values) return;
  require(!leaf->contains('/') && *leaf != "." && *leaf != ".." && !leaf->empty());
  const std::string cgroup = record.cgroup + "/" + *leaf;
  const int score = core::container_oom_score_adj(record, record.containers.back(), kNode.memory);
  require(score >= -1000 && score <= 1000);
  const core::CgroupLayout layout{.cpu = core::CgroupVersion::kV2,
                                  .memory = core::CgroupVersion::kV2,
                                  .hugetlb = core::CgroupVersion::kV2,
                                  .pids = core::CgroupVersion::kV2,
                                  .hugepage_labels = {"2MB", "1GB"}};
  const auto edit =
      core::config_edit(core::oci_cgroups_path(cgroup, facts.id),
                        core::missing_values(*values, facts.resources, layout), score);
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
    pod = joined(*facts, std::nullopt, settings);
    if (pod) check_answer(*facts, *pod, settings);
  }
  const auto facts = podqos::nri::container_facts(request.pod(), request.container());
  if (!facts) return 0;
  // With its sandbox the pod lives; without one, which nobody has told of, it is a new pod.
  if (pod && (bytes[0] & 8U) != 0) pod->containers.clear();
  if (const auto record = joined(*facts, pod, settings)) check_answer(*facts, *record, settings);
  return 0;
}
