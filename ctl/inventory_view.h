#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The text of an inventory for people, without its errors and warnings.
using TextOfView = std::string (*)(const Json& view, const Screen& screen);

/// How an inventory is printed.
struct ViewOptions {
  OutputOptions output;
  TextOfView text = nullptr;
  std::string pod;  ///< a selector: only this pod, or container, is described; "": all
  /// Whether warnings of all pods make the exit status kRefused, as errors of the configuration do.
  bool strict = false;
};

/// Prints the inventory as text or JSON, and what is wrong with it.
[[nodiscard]] Result<int> run_view(const ViewOptions& options, const Cli& cli);

/// What `status` says of the node before its tables: name and text of each fact.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> node_facts(const Json& view);

/// The value as the kernel has it, with "(rule X)" behind it where the rule wants another.
[[nodiscard]] std::string with_rule(std::string_view held, std::string_view rule);

/// The CPU weight that the rule gives a cgroup, on cgroup v1 its shares; "-" without a rule.
[[nodiscard]] std::string ruled_share(const Json& view, const Json& cgroup);
/// The CPU weight that the kernel has, on cgroup v1 the shares; "idle" for an idle cgroup.
[[nodiscard]] std::string held_share(const Json& cgroup);

/// A text member.
[[nodiscard]] const std::string& text_in(const Json& object, const char* key);
/// A number; "-" for null.
[[nodiscard]] std::string number_in(const Json& object, const char* key);
/// format_bytes() of a number; "-" for null.
[[nodiscard]] std::string bytes_in(const Json& object, const char* key);
/// The CPU limit: "500m", with "+200m" for a burst, and with "/50ms" if the period is not 100 ms.
[[nodiscard]] std::string shown_quota(const Json& cgroup);
/// "250m", of thousandths of a CPU; "-" for null.
[[nodiscard]] std::string cpu_in(const Json& object, const char* key);
/// "0" or "1"; "-" for null.
[[nodiscard]] std::string flag_in(const Json& object, const char* key);

/// "cpu 110m, memory 64Mi", of {"cpuMilli", "memoryBytes"} in `object`; "-" where both are null.
[[nodiscard]] std::string amounts_in(const Json& object, const char* key);

/// core::display_name() of a pod of the inventory.
[[nodiscard]] std::string pod_title(const Json& pod);
/// The name of a container, or the first digits of its id.
[[nodiscard]] std::string container_title(const Json& container);
/// "Burstable", " (partial)" if containers may come, " (kubelet's)" if podqos only counts the pod.
[[nodiscard]] std::string shown_class(const Json& pod);

/// How many of a pod's containers run; the sandbox does not count.
struct Running {
  std::int64_t live = 0;
  std::int64_t all = 0;
};
[[nodiscard]] Running running_in(const Json& pod);

/// Files of Memory QoS, and the members for them.
constexpr std::array<std::pair<const char*, const char*>, 3> kProtections = {
    {{"memory.min", "memoryMinBytes"},
     {"memory.low", "memoryLowBytes"},
     {"memory.high", "memoryHighBytes"}}};
/// Whether a value is another than null, false and 0.
[[nodiscard]] bool is_set(const Json& value);

}  // namespace podqos::ctl
