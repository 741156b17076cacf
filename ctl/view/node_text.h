#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/cli/command.h"
#include "ctl/cli/table.h"
#include "ctl/node/node_model.h"
#include "ctl/node/usage.h"

namespace podqos::ctl {

/// The text of a node for people, without errors of its configuration and findings.
using TextOfView = std::string (*)(const Node& node, const Screen& screen);

/// How a node is printed.
struct ViewOptions {
  OutputOptions output;
  TextOfView text = nullptr;
  std::string pod;  ///< a selector: only this pod, or container, is described; "": all
  /// Whether findings about all pods make the exit status kRefused, as errors of the configuration
  /// do.
  bool strict = false;
};

/// Prints the node as text or JSON, and what is wrong with it.
[[nodiscard]] Result<int> run_view(const ViewOptions& options, const Cli& cli);

/// What is to be known of the configuration before anything else: errors, files that are not read,
/// "enabled": false; a line each, "" if there is nothing.
[[nodiscard]] std::string format_notices(const app::ConfigurationReport& configuration,
                                         const Screen& screen);

/// What `status` says of the node before its tables: name and text of each fact.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> node_facts(const Node& node);

/// "-" for what is unset, or has no limit.
[[nodiscard]] std::string shown(const std::optional<std::int64_t>& number);
[[nodiscard]] std::string shown(const std::optional<Bytes>& bytes);  ///< by rounded_amount()
[[nodiscard]] std::string shown(const std::optional<MilliCpu>& cpu);
/// "cpu 110m, memory 64Mi"; "-" for neither.
[[nodiscard]] std::string shown(const Amounts& amounts);

/// The value as the kernel has it, with "(rule X)" behind it where the rule wants another.
[[nodiscard]] std::string with_rule(std::string_view held, std::string_view rule);
/// The memory limit of kernel and rule.
[[nodiscard]] std::string memory_limit_of(const Entry& entry);
/// The CPU weight of kernel and rule, on cgroup v1 the shares.
[[nodiscard]] std::string share_of(const Entry& entry);
/// The CPU weight that the kernel has, on cgroup v1 the shares; "idle" for an idle cgroup.
[[nodiscard]] std::string held_share(const Entry& entry);
/// The CPU limit: "500m", with "+200m" for a burst, and with "/50ms" if the period is not 100 ms.
[[nodiscard]] std::string shown_quota(const cgroup::CgroupView& cgroup);

/// "Burstable", " (partial)" if containers may come, " (kubelet's)" if podqos only counts the pod.
[[nodiscard]] std::string shown_class(const core::PodRecord& pod);

/// How many of a pod's containers run; the sandbox does not count.
struct Running {
  std::int64_t live = 0;
  std::int64_t all = 0;
};
[[nodiscard]] Running running_in(const PodEntry& pod);

/// A value of Memory QoS that is set in kernel or rule.
struct Protection {
  const char* file;
  std::optional<Bytes> core::MemoryQos::* value;
  const char* meaning;
};
inline constexpr std::array kProtections = {
    Protection{"memory.min", &core::MemoryQos::min, "so much is never reclaimed"},
    Protection{"memory.low", &core::MemoryQos::low, "so much is reclaimed last"},
    Protection{"memory.high", &core::MemoryQos::high, "beyond it is throttled"}};
/// "64Mi (rule 96Mi)"; "" if it is set in neither.
[[nodiscard]] std::string shown(const Protection& protection, const Entry& entry);

}  // namespace podqos::ctl
