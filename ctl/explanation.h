#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/settings.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The parameters on which the values of a pod depend, apart from its spec.
struct ExplainParams {
  std::string cgroup_root = "/";  ///< parent of the kubepods cgroup
  core::PodConfigParams config;
  core::ContainerMemoryParams container;  ///< text output only
  std::vector<std::string> hugepage_labels = {"2MB", "1GB"};
  core::WeightFormula formula = core::WeightFormula::kLinear;
  std::optional<Bytes> node_memory;  ///< required for the OOM scores; above 0
};

/// Texts by name of a control file or property.
using Contents = std::map<std::string, std::string, std::less<>>;

/// What systemd's driver does: unit properties, and the files after systemd's rounding. "Unlimited"
/// is systemd's infinity, 2^64-1.
struct SystemdWrites {
  Contents properties;
  Contents files;
};

/// Everything that podqos decides for one pod.
struct Explanation {
  core::Pod pod;  ///< with API defaults
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::string reason;                   ///< why it has this class, one sentence
  core::ResourceList requests;          ///< of the whole pod
  core::ResourceList limits;            ///< of the whole pod
  core::CgroupValues values;            ///< of the pod's cgroup
  std::optional<std::string> cgroupfs;  ///< cgroup path; nullopt: the manifest has no uid
  std::optional<std::string> systemd;   ///< slice path; nullopt: the manifest has no uid
  std::map<std::string, int, std::less<>>
      oom_score_adj;  ///< by container, init containers included
  std::map<std::string, core::CgroupValues, std::less<>> containers;  ///< own values, by name
  Contents files;                                                     ///< cgroupfs driver
  SystemdWrites systemd_writes;
};

/// The app and init containers, in this order.
[[nodiscard]] std::vector<const core::Container*> containers_of(const core::Pod& pod);

/// Decides class, values, names and writes of a pod, without reading the machine.
/// @param pod  as returned by admitted_pod() or pod_of()
/// @return kInvalidArgument without node_memory, for a uid that cannot name a cgroup, and for
///         huge page resources that the rules reject.
[[nodiscard]] Result<Explanation> explain(core::Pod pod, const ExplainParams& params);

/// The explanation in the form of `explain -o json` and `--batch`.
[[nodiscard]] Json explanation_json(const Explanation& explanation);

/// The driver and the cgroup layout for which `explain` shows writes.
struct Target {
  core::Driver driver = core::Driver::kCgroupfs;
  core::CgroupLayout layout;

  [[nodiscard]] bool is_v1() const { return layout.cpu == core::CgroupVersion::kV1; }
};

/// A layout with all controllers in one cgroup version.
/// @param hugepage_labels  page sizes of the machine, as in file names: "2MB"
[[nodiscard]] core::CgroupLayout layout_of(core::CgroupVersion version,
                                           const std::vector<std::string>& hugepage_labels);

/// What the cgroupfs driver writes to a cgroup with these values.
[[nodiscard]] Contents files_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                                core::WeightFormula formula);
[[nodiscard]] SystemdWrites systemd_writes(const core::CgroupValues& values,
                                           const core::CgroupLayout& layout,
                                           core::WeightFormula formula);

/// The text form of `explain`: the class with its reason, each value with its rule and the upstream
/// file of that rule, the cgroup names, and the writes.
[[nodiscard]] std::string explain_text(const Explanation& explanation, const ExplainParams& params,
                                       const Target& target, ColourMode mode);

/// Answers one line of `explain --batch` with a pod's values, a node's tiers or an error, as one
/// JSON object without newline. Depends only on the line, not on machine or configuration.
/// @param line  the line, or the error of reading it (too long)
[[nodiscard]] std::string answer_line(const Result<std::string>& line);

/// Answers all lines of a file ("-": standard input) on standard output, in order, each as soon as
/// it has been read. Lines are limited to kMaxInput bytes.
/// @return the exit status: kDone if every line was answered, also with an error object; kRefused
///         if the file cannot be read or the output not written.
[[nodiscard]] int run_batch(const std::string& path);

}  // namespace podqos::ctl
