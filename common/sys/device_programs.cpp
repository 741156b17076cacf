#include "common/sys/device_programs.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "common/base/text.h"
#include "common/sys/fd.h"

namespace podqos::sys {

namespace {

/// BPF_CGROUP_MAX_PROGS: the kernel's maximum for one cgroup.
constexpr std::size_t kMostPrograms = 64;

/// bpf(2); returns -1 with errno set on failure.
long bpf(bpf_cmd command, bpf_attr& attributes) {
  // NOLINTNEXTLINE(*-vararg): glibc has no function for it
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

/// Descriptors are unsigned in bpf_attr.
std::uint32_t number_of(int descriptor) {
  return static_cast<std::uint32_t>(descriptor);
}

/// The errno of BPF_PROG_QUERY on a kernel without cgroup device programs, or without bpf(2).
bool means_none(int err) {
  return err == EINVAL || err == ENOSYS;
}

}  // namespace

Result<std::vector<std::uint32_t>> device_programs(int cgroup) {
  // The maximum is per cgroup, and the effective programs include those of the ancestors.
  std::vector<std::uint32_t> ids(4 * kMostPrograms);
  bpf_attr attributes{};
  attributes.query.target_fd = number_of(cgroup);
  attributes.query.attach_type = BPF_CGROUP_DEVICE;
  attributes.query.query_flags = BPF_F_QUERY_EFFECTIVE;
  attributes.query.prog_ids = reinterpret_cast<std::uintptr_t>(ids.data());
  attributes.query.prog_cnt = static_cast<std::uint32_t>(ids.size());
  if (bpf(BPF_PROG_QUERY, attributes) != 0) {
    const int err = errno;
    if (means_none(err)) return std::vector<std::uint32_t>{};
    return fail_errno(err, "query the device rules");
  }
  ids.resize(attributes.query.prog_cnt);
  return ids;
}

Status attach_device_program(int cgroup, std::uint32_t id) {
  bpf_attr attributes{};
  attributes.prog_id = id;
  const UniqueFd program{static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, attributes))};
  if (const int err = errno; !program.valid())
    return fail_errno(err, cat("open the device rules (program ", id, ")"));
  attributes = {};
  attributes.target_fd = number_of(cgroup);
  attributes.attach_bpf_fd = number_of(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (bpf(BPF_PROG_ATTACH, attributes) == 0) return {};
  const int err = errno;
  return fail_errno(err, cat("attach the device rules (program ", id, ")"));
}

}  // namespace podqos::sys
