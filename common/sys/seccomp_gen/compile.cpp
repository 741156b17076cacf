#include <seccomp.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/sys/seccomp_gen/filters.h"

namespace podqos::seccomp_gen {

namespace {

/// SCMP_ACT_KILL_PROCESS; seccomp_api_get(3).
constexpr unsigned kApiLevel = 3;

using File =
    std::unique_ptr<std::FILE,
                    decltype([](std::FILE* file) { static_cast<void>(std::fclose(file)); })>;
using Context = std::unique_ptr<void, decltype([](void* context) { ::seccomp_release(context); })>;

/// The error of a call of libseccomp; success for 0.
Status check(int result, std::string_view what) {
  return result == 0 ? Status{} : fail_errno(-result, what);
}

/// Allows a system call; several rules of one call are alternatives.
Status allow(void* context, const std::string& syscall, const std::optional<Condition>& only_if) {
  // libseccomp takes the number of the architecture that it runs on, and translates it.
  const int number = ::seccomp_syscall_resolve_name(syscall.c_str());
  if (number == __NR_SCMP_ERROR)
    return fail(ErrorCode::kInvalidArgument, cat("unknown syscall ", syscall));
  const Condition wanted = only_if.value_or(Condition{});
  const scmp_arg_cmp condition{.arg = wanted.argument,
                               .op = SCMP_CMP_MASKED_EQ,
                               .datum_a = wanted.mask,
                               .datum_b = wanted.value};
  const int result = ::seccomp_rule_add_array(context, SCMP_ACT_ALLOW, number, only_if ? 1 : 0,
                                              only_if ? &condition : nullptr);
  // A negative number is a system call that this architecture does not have (mkdir on arm64), so
  // that no rule is needed.
  return number < 0 ? Status{} : check(result, cat("rule for ", syscall));
}

Status add_rules(void* context, std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    for (const std::string& syscall : parts_of(rule.syscalls, ' '))
      PODQOS_TRY(allow(context, syscall, rule.only_if));
  }
  return {};
}

/// libseccomp only exports BPF to a file descriptor.
Result<std::vector<sock_filter>> read_program(void* context) {
  const File file{std::tmpfile()};
  if (!file) return fail_errno(errno, "temporary file");
  PODQOS_TRY(check(::seccomp_export_bpf(context, ::fileno(file.get())), "export"));
  if (std::fseek(file.get(), 0, SEEK_SET) != 0) return fail_errno(errno, "seek");
  std::vector<sock_filter> code;
  sock_filter instruction{};
  while (std::fread(&instruction, sizeof instruction, 1, file.get()) == 1)
    code.push_back(instruction);
  return code;
}

/// Leaves `architecture` as the only one of the filter.
Status choose_architecture(void* context, std::uint32_t architecture) {
  if (architecture == SCMP_ARCH_NATIVE || architecture == ::seccomp_arch_native()) return {};
  PODQOS_TRY(check(::seccomp_arch_add(context, architecture), "architecture"));
  return check(::seccomp_arch_remove(context, SCMP_ARCH_NATIVE), "architecture");
}

}  // namespace

Result<std::vector<sock_filter>> compile(const FilterSource& source, std::uint32_t architecture) {
  // Otherwise libseccomp asks the kernel of the build what it can do, and an emulator that has no
  // seccomp refuses (qemu-user).
  PODQOS_TRY(check(::seccomp_api_set(kApiLevel), "API level of libseccomp"));
  const Context context{::seccomp_init(SCMP_ACT_KILL_PROCESS)};
  if (!context) return fail(ErrorCode::kIo, "seccomp_init");
  PODQOS_TRY(choose_architecture(context.get(), architecture));
  // 2: a binary tree over the system call numbers instead of a list. Calls of another architecture
  // (32 bit, x32) kill the process too.
  for (const auto& [attribute, value] :
       {std::pair{SCMP_FLTATR_CTL_OPTIMIZE, std::uint32_t{2}},
        std::pair{SCMP_FLTATR_ACT_BADARCH, std::uint32_t{SCMP_ACT_KILL_PROCESS}}}) {
    PODQOS_TRY(check(::seccomp_attr_set(context.get(), attribute, value), "filter attribute"));
  }
  PODQOS_TRY(add_rules(context.get(), kHookRules));
  PODQOS_TRY(add_rules(context.get(), source.more));
  return read_program(context.get());
}

}  // namespace podqos::seccomp_gen
