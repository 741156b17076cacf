#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/sys/seccomp_gen/filters.h"

namespace podqos::seccomp_gen {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::Values;

/// What a filter returns for a call, as the kernel runs it; Documentation/networking/filter.rst and
/// kernel/seccomp.c, seccomp_check_filter(), which lists the instructions that a filter may have.
std::optional<std::uint32_t> verdict(std::span<const sock_filter> code, const seccomp_data& call) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const sock_filter& line = code[at];
    const auto jump = [&](bool taken) { at += taken ? line.jt : line.jf; };
    switch (line.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (line.k % 4 != 0 || line.k >= sizeof call) return {};
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&call) + line.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K: accumulator &= line.k; break;
      case BPF_JMP | BPF_JA: at += line.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: jump(accumulator == line.k); break;
      case BPF_JMP | BPF_JGT | BPF_K: jump(accumulator > line.k); break;
      case BPF_JMP | BPF_JGE | BPF_K: jump(accumulator >= line.k); break;
      case BPF_JMP | BPF_JSET | BPF_K: jump((accumulator & line.k) != 0); break;
      case BPF_RET | BPF_K: return line.k;
      default: return {};
    }
  }
  return {};
}

struct Architecture {
  const char* name;
  std::uint32_t library;  ///< of libseccomp
  std::uint32_t kernel;   ///< AUDIT_ARCH_*
};

constexpr Architecture kAmd64{
    .name = "amd64", .library = SCMP_ARCH_X86_64, .kernel = AUDIT_ARCH_X86_64};
constexpr Architecture kArm64{
    .name = "arm64", .library = SCMP_ARCH_AARCH64, .kernel = AUDIT_ARCH_AARCH64};

/// A call of podqos-hook, by its numbers in arch/x86/entry/syscalls/syscall_64.tbl and, for arm64,
/// in include/uapi/asm-generic/unistd.h.
struct Call {
  const char* name;
  int amd64;
  int arm64;
  bool allowed;
  std::array<std::uint64_t, 4> arguments{};
};

void PrintTo(const Call& call, std::ostream* out) {
  *out << call.name;
}

/// What each filter for `compiled_for` says when the kernel sees a call of `made_as`.
std::set<std::optional<std::uint32_t>> verdicts(const Architecture& compiled_for,
                                                std::uint32_t made_as, int number,
                                                const Call& call) {
  std::set<std::optional<std::uint32_t>> all;
  for (const FilterSource& filter : kFilters) {
    seccomp_data seen{.nr = number, .arch = made_as, .instruction_pointer = 0, .args = {}};
    std::ranges::copy(call.arguments, seen.args);
    all.insert(verdict(*compile(filter, compiled_for.library), seen));
  }
  return all;
}

class Filters : public ::testing::TestWithParam<Call> {};

TEST_P(Filters, DecidesTheSameOnEachArchitecture) {
  const Call& call = GetParam();
  const std::uint32_t wanted = call.allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS;
  EXPECT_THAT(verdicts(kAmd64, kAmd64.kernel, call.amd64, call), ElementsAre(wanted));
  EXPECT_THAT(verdicts(kArm64, kArm64.kernel, call.arm64, call), ElementsAre(wanted));
}

TEST_P(Filters, KillsForCallsOfOtherArchitectures) {
  constexpr int kX32 = 0x4000'0000;  // __X32_SYSCALL_BIT
  const Call& call = GetParam();
  for (const std::uint32_t other : {kArm64.kernel, std::uint32_t{AUDIT_ARCH_I386}})
    EXPECT_THAT(verdicts(kAmd64, other, call.amd64, call), ElementsAre(SECCOMP_RET_KILL_PROCESS))
        << other;
  for (const std::uint32_t other : {kAmd64.kernel, std::uint32_t{AUDIT_ARCH_ARM}})
    EXPECT_THAT(verdicts(kArm64, other, call.arm64, call), ElementsAre(SECCOMP_RET_KILL_PROCESS))
        << other;
  EXPECT_THAT(verdicts(kAmd64, kAmd64.kernel, call.amd64 | kX32, call),
              ElementsAre(SECCOMP_RET_KILL_PROCESS));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Filters,
    Values(Call{"read", 0, 63, true}, Call{"write", 1, 64, true}, Call{"openat", 257, 56, true},
           Call{"openat2", 437, 437, true}, Call{"newfstatat", 262, 79, true},
           Call{"fstat", 5, 80, true}, Call{"mkdirat", 258, 34, true},
           Call{"unlinkat", 263, 35, true}, Call{"renameat", 264, 38, true},
           Call{"readlinkat", 267, 78, true}, Call{"faccessat", 269, 48, true},
           Call{"ppoll", 271, 73, true}, Call{"flock", 73, 32, true},
           Call{"restart_syscall", 219, 128, true}, Call{"exit_group", 231, 94, true},
           Call{"socket AF_UNIX", 41, 198, true, {1}}, Call{"socket AF_INET", 41, 198, false, {2}},
           Call{"mmap of data", 9, 222, true, {0, 4096, 3}},
           Call{"mmap of code", 9, 222, false, {0, 4096, 5}},
           Call{"ioctl TCGETS", 16, 29, true, {0, 0x5401}},
           Call{"ioctl TCGETS2", 16, 29, true, {0, 0x802C542A}},
           Call{"ioctl TIOCSTI", 16, 29, false, {0, 0x5412}},
           Call{"ioctl TIOCSTI with an upper half", 16, 29, false, {0, 0x1'0000'5412}},
           Call{"bpf BPF_PROG_ATTACH", 321, 280, false, {8}},
           Call{"bpf BPF_PROG_LOAD", 321, 280, false, {5}}, Call{"execve", 59, 221, false},
           Call{"execveat", 322, 281, false}, Call{"clone", 56, 220, false},
           Call{"clone3", 435, 435, false}, Call{"ptrace", 101, 117, false},
           Call{"mount", 165, 40, false}, Call{"setns", 308, 268, false},
           Call{"kill", 62, 129, false}, Call{"symlinkat", 266, 36, true},
           Call{"an unknown number", 100'000, 100'000, false}));

TEST(Compile, KnowsEachCallThatArm64Lacks) {
  std::set<std::string> lacking;
  for (const FilterSource& source : kFilters) {
    for (const std::span<const Rule> rules : {std::span<const Rule>{kHookRules}, source.more}) {
      for (const Rule& rule : rules) {
        for (const std::string& call : parts_of(rule.syscalls, ' ')) {
          if (::seccomp_syscall_resolve_name_arch(SCMP_ARCH_AARCH64, call.c_str()) < 0)
            lacking.insert(call);
        }
      }
    }
  }
  // glibc makes faccessat, mkdirat, ppoll, readlinkat and clock_gettime of them.
  EXPECT_THAT(lacking, UnorderedElementsAre("access", "mkdir", "poll", "readlink", "time"));
}

TEST(Compile, RefusesACallThatNobodyKnows) {
  constexpr std::array kUnknown{Rule{"no_such_call", {}}};
  const auto code = compile({.name = "kTest", .more = kUnknown}, SCMP_ARCH_NATIVE);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(code.error().message, "unknown syscall no_such_call");
}

}  // namespace
}  // namespace podqos::seccomp_gen
