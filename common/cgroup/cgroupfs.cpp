#include "common/cgroup/cgroupfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::cgroup {

Result<Cgroupfs> Cgroupfs::open(const CgroupfsOptions& options) {
  PODQOS_ASSIGN(auto found, find_hierarchies(options));
  Cgroupfs cgroupfs;
  cgroupfs.layout_ = layout_of(*found);
  if (!cgroupfs.layout_.cpu && !cgroupfs.layout_.memory) {
    return fail(
        ErrorCode::kUnsupported,
        cat("neither the cpu nor the memory controller is mounted, as cgroup v1 or v2 (looked at ",
            options.unified, " and ", options.mountinfo, ")"));
  }
  // Huge page sizes are only read when layout() is called.
  cgroupfs.hugetlb_ = std::exchange(cgroupfs.layout_.hugetlb, std::nullopt);
  cgroupfs.hugepages_ = options.hugepages;
  cgroupfs.systemd_ = Systemd{options.systemd};
  cgroupfs.kept_files_ = KeptFiles{options.most_files};
  cgroupfs.hierarchies_ = std::move(found);
  // Attributes and reads that concern the whole cgroup use this hierarchy.
  const bool has_memory = cgroupfs.layout_.memory.has_value();
  cgroupfs.primary_ = static_cast<std::size_t>(
      cgroupfs.hierarchy_of(has_memory ? core::Controller::kMemory : core::Controller::kCpu) -
      cgroupfs.hierarchies_->data());
  if (options.access == Access::kWrite) {
    PODQOS_TRY(cgroupfs.check_writable());
  }
  return cgroupfs;
}

const core::CgroupLayout& Cgroupfs::layout() {
  if (!whole_layout_) {
    whole_layout_ = layout_;
    whole_layout_->hugetlb = hugetlb_;
    if (hugetlb_) whole_layout_->hugepage_labels = hugepage_labels(hugepages_);
  }
  return *whole_layout_;
}

Status Cgroupfs::check_writable() {
  const Hierarchy& hierarchy = primary().description();
  const std::string& place = hierarchy.mount_point;
  if (!hierarchy.writable) return fail(ErrorCode::kPermission, cat(place, ": mounted read-only"));
  // access(2) also takes capabilities and read-only bind mounts into account. faccessat(3) would be
  // faccessat2(2), to which some seccomp profiles answer EPERM.
  if (::access(place.c_str(), W_OK) == 0) return {};
  return fail_errno(errno, cat(place, ": cgroups cannot be written"));
}

void Cgroupfs::drop_refused(OpenHierarchy& hierarchy, Report& report) {
  if (hierarchy.description().version != core::CgroupVersion::kV2) return;
  for (const core::ControllerRow& row : core::kControllers) {
    const std::string* why = hierarchy.refusal_of(row.v2_name);
    auto& found = row.controller == core::Controller::kHugetlb ? hugetlb_ : layout_.*row.version;
    if (why == nullptr || !found) continue;
    found = std::nullopt;
    whole_layout_ = std::nullopt;
    report.refused.push_back(
        cat("pods have no ", row.v2_name, " controller, and so no values of it: ", *why));
  }
}

bool Cgroupfs::is_refused(OpenHierarchy& hierarchy, const core::WriteFile& step, Report& report) {
  const std::string_view controller = core::row_of(step.controller).v2_name;
  if (hierarchy.refusal_of(controller) != nullptr) return true;
  if (hierarchy.description().version != core::CgroupVersion::kV2) return false;
  const std::string parent{parent_of(step.path)};
  const auto tried = ensure_cgroup(hierarchy, parent, CgroupUse::kInner, step.controller);
  drop_refused(hierarchy, report);
  return tried && hierarchy.refusal_of(controller) != nullptr;
}

OpenHierarchy* Cgroupfs::hierarchy_of(core::Controller controller) {
  const auto found = std::ranges::find_if(*hierarchies_, [&](const OpenHierarchy& hierarchy) {
    return carries(hierarchy.description(), core::row_of(controller));
  });
  return found == hierarchies_->end() ? nullptr : &*found;
}

}  // namespace podqos::cgroup
