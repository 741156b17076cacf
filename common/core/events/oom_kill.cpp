#include "common/core/events/oom_kill.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"

namespace podqos::core {

namespace {

/// In whole Mi, of at least one.
Bytes whole(Bytes amount) {
  constexpr std::int64_t kMi = std::int64_t{1} << 20U;
  return amount < Bytes{kMi} ? amount : Bytes{amount.value() / kMi * kMi};
}

/// Whose limit it was, the nearest to the process first.
std::string subject_of(const PodRecord& pod, const std::string& limited) {
  if (is_below(limited, pod.cgroup)) return "its own limit";
  if (limited == pod.cgroup) return "the limit of its pod";
  const std::string_view parent = parent_of(pod.cgroup);
  // The tier that the cgroup lies in: that of a pod whose spec was taken back is higher.
  const auto placed = find_pod_cgroup(pod.cgroup);
  const QosClass tier = placed ? placed->qos_class : pod.qos_class;
  const std::string_view root = tier == QosClass::kGuaranteed ? parent : parent_of(parent);
  if (limited == root) return cat("the limit of all pods, ", limited);
  if (limited == parent)
    return cat("the limit of tier ", tier == QosClass::kBurstable ? "burstable" : "besteffort");
  return cat("the limit of cgroup ", printable(limited));
}

}  // namespace

const ContainerRecord* find_killed(const PodRecord& pod, const OomKill& kill) {
  const auto found = std::ranges::find_if(pod.containers, [&](const ContainerRecord& container) {
    if (kill.cgroup.empty())
      return container.state == ContainerState::kLive && container.pid == kill.pid;
    // Below the hierarchy's root are all.
    return container.cgroup != "/" && is_at_or_below(kill.cgroup, container.cgroup);
  });
  return found == pod.containers.end() ? nullptr : &*found;
}

std::string describe_oom_kill(const PodRecord& pod, const std::optional<std::string>& limited,
                              std::optional<Bytes> limit, std::optional<Bytes> peak) {
  std::string text = "OOM-killed";
  if (!limited)
    text += "; the kernel's log does not say by whose limit";
  else if (limited->empty())
    text += " as the node's memory was full";
  else
    text +=
        cat(" by ", subject_of(pod, *limited), limit ? cat(" (", format_amount(*limit), ")") : "");
  if (peak) text += cat("; its pod had used up to ", format_amount(whole(*peak)));
  return text;
}

}  // namespace podqos::core
