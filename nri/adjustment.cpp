#include "nri/adjustment.h"

#include <cstdint>

namespace podqos::nri {

api::ContainerAdjustment adjustment_for(const core::ConfigEdit& edit) {
  api::ContainerAdjustment adjustment;
  // A mutable accessor makes its submessage present, and the runtime claims present fields for this
  // plugin: only those with a value are accessed.
  if (edit.cgroups_path) adjustment.mutable_linux()->set_cgroups_path(*edit.cgroups_path);
  if (edit.oom_score_adj)
    adjustment.mutable_linux()->mutable_oom_score_adj()->set_value(*edit.oom_score_adj);
  const auto resources = [&] { return adjustment.mutable_linux()->mutable_resources(); };
  if (edit.cpu_shares) {
    resources()->mutable_cpu()->mutable_shares()->set_value(
        static_cast<std::uint64_t>(edit.cpu_shares->value()));
  }
  if (edit.cpu_quota)
    resources()->mutable_cpu()->mutable_quota()->set_value(edit.cpu_quota->value());
  if (edit.cpu_period) {
    resources()->mutable_cpu()->mutable_period()->set_value(
        static_cast<std::uint64_t>(edit.cpu_period->value()));
  }
  if (edit.memory_limit)
    resources()->mutable_memory()->mutable_limit()->set_value(edit.memory_limit->value());
  if (edit.pids_limit) resources()->mutable_pids()->set_limit(*edit.pids_limit);
  for (const auto& [size, limit] : edit.hugepages) {
    api::HugepageLimit* const added = resources()->add_hugepage_limits();
    added->set_page_size(size);
    added->set_limit(static_cast<std::uint64_t>(limit.value()));
  }
  for (const auto& [file, value] : edit.unified)
    (*resources()->mutable_unified())[file] = value;
  return adjustment;
}

}  // namespace podqos::nri
