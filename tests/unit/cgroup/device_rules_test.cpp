// Device rules of cgroup v2, which are BPF programs: copied on the real kernel.
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "tests/unit/cgroup/own_cgroup.h"

namespace podqos::cgroup {
namespace {

using core::CopyDeviceRules;
using core::EnsureCgroup;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeviceRules : public OwnCgroup {
 protected:
  /// Attaches a program to the cgroup that allows everything. false: this kernel has none.
  [[nodiscard]] bool attach_rules(const std::string& path) {
    const auto cgroup = sys::Directory::open(hierarchy_with("memory").mount_point + path);
    if (!cgroup) return false;
    // r0 = 1; exit
    const std::array<bpf_insn, 2> code{
        bpf_insn{
            .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 1},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insns = reinterpret_cast<std::uintptr_t>(code.data());
    attributes.insn_cnt = code.size();
    attributes.license = reinterpret_cast<std::uintptr_t>("GPL");
    const sys::UniqueFd program{
        static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes))};
    if (!program.valid()) return false;
    attributes = {};
    attributes.target_fd = static_cast<std::uint32_t>(cgroup->fd());
    attributes.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    return ::syscall(SYS_bpf, BPF_PROG_ATTACH, &attributes, sizeof attributes) == 0;
  }
};

TEST_F(DeviceRules, AreCopiedOnceWithThoseFromAbove) {
  if (!is_v2(core::Controller::kMemory)) GTEST_SKIP() << "cgroup v1 has device rules of its own";
  static_cast<void>(execute({EnsureCgroup{below("engine/c")}, EnsureCgroup{below("pod/c")}}));
  if (!attach_rules(below("engine")) || !attach_rules(below("engine/c")))
    GTEST_SKIP() << "this kernel has no programs for devices";
  const auto wanted = cgroupfs().device_rules(below("engine/c"));
  ASSERT_TRUE(wanted);
  const auto before = cgroupfs().device_rules(below("pod/c"));
  ASSERT_TRUE(before);
  ASSERT_THAT(*wanted, SizeIs(before->size() + 2));
  const CopyDeviceRules copy{.from = below("engine/c"), .path = below("pod/c")};
  EXPECT_THAT(execute({copy}).written, SizeIs(2));
  const auto held = cgroupfs().device_rules(below("pod/c"));
  ASSERT_TRUE(held);
  EXPECT_THAT(*held, ::testing::UnorderedElementsAreArray(*wanted));
  EXPECT_THAT(execute({copy}).written, IsEmpty());
}

TEST_F(DeviceRules, OfACgroupThatIsGoneAreNotFound) {
  if (!is_v2(core::Controller::kMemory)) GTEST_SKIP() << "cgroup v1 has device rules of its own";
  static_cast<void>(execute({EnsureCgroup{below("pod/c")}}));
  const Error error = refused({CopyDeviceRules{.from = below("engine/c"), .path = below("pod/c")}});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
}

TEST_F(DeviceRules, OfV1StayWithTheProcess) {
  if (is_v2(core::Controller::kMemory)) GTEST_SKIP() << "cgroup v2 has programs for that";
  const auto rules = cgroupfs().device_rules("/");
  ASSERT_TRUE(rules);
  EXPECT_THAT(*rules, IsEmpty());
  const Hierarchy devices = hierarchy_with("devices");
  if (devices.mount_point.empty()) GTEST_SKIP() << "this machine has no hierarchy of devices";
  EXPECT_EQ(cgroupfs().moves_devices(core::Driver::kCgroupfs), has_used_controller(devices));
  // systemd moves what it makes a scope of in all of them.
  EXPECT_TRUE(cgroupfs().moves_devices(core::Driver::kSystemd));
}

}  // namespace
}  // namespace podqos::cgroup
