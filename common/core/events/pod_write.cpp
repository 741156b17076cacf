#include "common/core/events/pod_write.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {

namespace {

/// The memory limit in bytes; "unlimited" as the largest number.
std::int64_t bound_of(const CgroupValues& values) {
  const std::int64_t limit = values.memory_limit.value_or(Bytes{-1}).value();
  return limit > 0 ? limit : std::numeric_limits<std::int64_t>::max();
}

bool is_bounded(const CgroupValues& values) {
  return values.memory_limit.value_or(Bytes{0}) > Bytes{0};
}

void lift_quota(CgroupValues& values, const Settings& settings) {
  values.cpu_quota = Micros{-1};
  values.cpu_period = settings.cpu_cfs_quota_period;
}

}  // namespace

Result<PodWrite> decide_pod_write(const PodRecord& record, const PodWriteSnapshot& snapshot,
                                  const Settings& settings) {
  PODQOS_ASSIGN(auto values, pod_values(record, settings));
  PodWrite write{.make = snapshot.written ? Cgroup::kExists : Cgroup::kCreate,
                 .values = std::move(values),
                 .hugepages = true};
  CgroupValues& wanted = write.values;
  if (snapshot.written) {
    PODQOS_ASSIGN(const auto held, pod_values(*snapshot.written, settings));
    // Lift limits that the pod no longer has.
    if (!wanted.cpu_quota && held.cpu_quota) lift_quota(wanted, settings);
    if (is_bounded(held) && !is_bounded(wanted)) wanted.memory_limit = Bytes{-1};
    if (wanted.memory_limit == held.memory_limit) {
      // An earlier event may have left the limit above the rule, since the usage was.
      wanted.memory_limit.reset();
    } else {
      write.may_cut = is_bounded(wanted) && bound_of(wanted) < bound_of(held);
    }
    // Constant: written when the cgroup was created.
    wanted.io_weight.reset();
    write.hugepages = wanted.hugepages != held.hugepages;
    return write;
  }
  // Remove limits that other programs have set.
  if (!wanted.cpu_quota) lift_quota(wanted, settings);
  if (wanted.memory_limit.value_or(Bytes{0}).value() == 0) wanted.memory_limit = Bytes{-1};
  write.may_cut = is_bounded(wanted);
  if (snapshot.has_io_weight && !wanted.io_weight) wanted.io_weight = kDefaultIoWeight;
  return write;
}

std::optional<std::string> hold_above_usage(PodWrite& write, const std::string& cgroup,
                                            std::optional<Bytes> usage) {
  auto& limit = write.values.memory_limit;
  if (!limit || !usage) return std::nullopt;
  const Bytes held = bounded_tier_limit(*limit, usage, Bytes{0});
  auto notice = cat("cgroup ", cgroup, ": memory limit lowered to ", held.value(), " instead of ",
                    limit->value(), ": ", usage->value(), " bytes are in use");
  limit = held;
  return notice;
}

}  // namespace podqos::core
