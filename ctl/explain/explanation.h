#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "ctl/cli/json.h"
#include "ctl/cli/table.h"

namespace podqos::ctl {

/// A layout with all controllers in one cgroup version.
/// @param hugepage_labels  page sizes of the machine, as in file names: "2MB"
[[nodiscard]] core::CgroupLayout layout_of(core::CgroupVersion version,
                                           std::vector<std::string> hugepage_labels = {"2MB",
                                                                                       "1GB"});

/// What the values of a pod and their writes depend on, apart from its spec.
struct ExplainParams {
  std::string cgroup_root = "/";  ///< parent of the kubepods cgroup
  core::PodConfigParams config;
  Bytes node_memory;  ///< above 0; the OOM scores depend on it
  core::WeightFormula formula = core::WeightFormula::kLinear;
  core::CgroupLayout layout = layout_of(core::CgroupVersion::kV2);
  core::Driver driver = core::Driver::kCgroupfs;  ///< text output only
  core::ContainerMemoryParams container;          ///< text output only
  core::MemoryQosParams memory_qos;               ///< text output only
  core::Settings settings;  ///< of which cpuBurst, cpuIdle and trustAnnotations count here

  [[nodiscard]] bool is_v1() const { return layout.cpu == core::CgroupVersion::kV1; }
};

/// What podqos decides for a container.
struct ContainerExplanation {
  core::Container container;
  core::CgroupValues values;  ///< its own
  int oom_score_adj = 0;
  bool described = true;  ///< false: the engine's own values are all that it has
};

/// Everything that podqos decides for one pod.
struct Explanation {
  core::Pod pod;  ///< with API defaults
  core::QosVerdict verdict;
  core::CgroupValues values;                     ///< of the pod's cgroup
  std::optional<std::int64_t> burst_percent;     ///< of the CPU quotas; nullopt: no burst is set
  std::optional<std::string> cgroupfs;           ///< cgroup path; nullopt: the manifest has no uid
  std::optional<std::string> systemd;            ///< slice path; nullopt: the manifest has no uid
  std::vector<ContainerExplanation> containers;  ///< then the init containers
  /// Of a pod that is known by more than the spec in its manifest: where class and resources are
  /// from, and its cgroup, which a manifest has not.
  std::optional<core::ClassSource> source = std::nullopt;
  std::optional<std::string> cgroup = std::nullopt;
  std::vector<std::string> warnings = {};
};

/// Decides class, values and names of a pod, without reading the machine: as podqos does once all
/// of its containers run. Resources and class in annotations count before those of the spec.
/// @param pod  as returned by admitted_pod()
/// @return kInvalidArgument for a cgroup root that cannot be a slice, and for huge page resources
///         that the rules reject.
[[nodiscard]] Result<Explanation> explain(core::Pod pod, const core::PodqosAnnotations& annotations,
                                          const ExplainParams& params);

/// The class of a recorded pod, and why it has this one.
/// @param whole  core::whole_pod() of it
[[nodiscard]] core::QosVerdict verdict_of(const core::PodRecord& record, core::Pod whole);

/// Class and values of a recorded pod, by the rules that its events follow.
/// @return the errors of core::pod_values() and core::container_values()
[[nodiscard]] Result<Explanation> explain(const core::PodRecord& record,
                                          const ExplainParams& params);

/// The explanation in the form of `explain -o json` and `--batch`.
[[nodiscard]] Json explanation_json(const Explanation& explanation, const ExplainParams& params);

/// The class with its reason, each value with its rule and, on a wide screen, the upstream file of
/// that rule, and the cgroup names.
[[nodiscard]] std::string values_text(const Explanation& explanation, const ExplainParams& params,
                                      const Screen& screen);
/// A line with a cgroup's path, of which a narrow screen has the end.
[[nodiscard]] std::string shown_path(std::string_view name, std::string_view path,
                                     const Screen& screen);
/// The text form of `explain`: values_text(), and the writes.
[[nodiscard]] std::string explain_text(const Explanation& explanation, const ExplainParams& params,
                                       const Screen& screen);

/// [{"name", "value", "rule", "source"}], as explain_text() has them.
[[nodiscard]] Json rules_json(const Explanation& explanation, const ExplainParams& params);

/// Texts by name of a control file or property.
using Contents = std::map<std::string, std::string, std::less<>>;

/// What the cgroupfs driver writes to a cgroup with these values.
[[nodiscard]] Contents files_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                                core::WeightFormula formula);
/// The properties of a unit with these values. "Unlimited" is systemd's infinity, 2^64-1.
[[nodiscard]] Contents properties_on(const core::CgroupValues& values,
                                     const core::CgroupLayout& layout, core::WeightFormula formula);

/// Answers one line of `explain --batch` with a pod's values, a node's tiers or an error, as one
/// JSON object without newline. Depends only on the line, not on machine or configuration.
[[nodiscard]] std::string answer_line(std::string_view line);

}  // namespace podqos::ctl
