// How the hook starts, in place of what glibc 2.36 links into static programs (its
// csu/libc-start.c).
//
// glibc begins by asking the processor 30 to 100 times (CPUID) for what it can do and for its
// caches, to choose among its ways to copy memory. On bare metal that takes no time; in a virtual
// machine, as most container hosts are, each question goes to the hypervisor, and all together take
// a sixth of the hook's life: 0.3 ms on every container start. The hook copies a few kilobytes, so
// it asks nothing and takes the ways that every x86_64 processor has (SSE2), which glibc chooses
// where it knows of no feature.
//
// Nor is GLIBC_TUNABLES read: nothing here is to be tuned, and its parser has let attackers in
// before (CVE-2023-4911).
//
// The names below are glibc's, hidden inside libc.a. They hold for the version that
// cmake/start.cmake looks for; with any other the hook starts as every program does.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <elf.h>
#include <link.h>

// NOLINTBEGIN(readability-*,modernize-avoid-c-arrays): the names and types are glibc's and the
// linker's.
extern "C" {
using Initializer = void (*)(int, char**, char**);
using Finalizer = void (*)();

// All of it is hidden: until the program has relocated itself, nothing can be reached through a
// table of addresses.
#pragma GCC visibility push(hidden)
extern char** __environ;
extern void* __libc_stack_end;
extern const unsigned char* _dl_random;
extern int __libc_enable_secure;

extern Initializer __preinit_array_start[];
extern Initializer __preinit_array_end[];
extern Initializer __init_array_start[];
extern Initializer __init_array_end[];
extern Finalizer __fini_array_start[];
extern Finalizer __fini_array_end[];

void _dl_aux_init(ElfW(auxv_t) * auxv);
void _dl_relocate_static_pie();
void __libc_setup_tls();
void __libc_early_init(bool initial);
void __libc_init_first(int argc, char** argv, char** envp);
void __libc_check_standard_fds();
void _init();
void _fini();

// From which sizes on memory is copied in another way, in bytes: glibc's own values for a processor
// that tells nothing of its caches (sysdeps/x86/cacheinfo.h, dl-cacheinfo.h).
extern const long __x86_data_cache_size_half = 16L << 10;
extern const long __x86_data_cache_size = 32L << 10;
extern const long __x86_shared_cache_size_half = 512L << 10;
extern const long __x86_shared_cache_size = 1L << 20;
extern const long __x86_shared_non_temporal_threshold = 768L << 10;
extern const long __x86_rep_movsb_threshold = 2048;
extern const long __x86_rep_stosb_threshold = 2048;
extern const long __x86_rep_movsb_stop_threshold = 768L << 10;
extern const int __x86_string_control = 0;
#pragma GCC visibility pop

int __cxa_atexit(void (*function)(void*), void* argument, void* library);

[[noreturn]] int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                   void (*)(), void (*)(), void (*)(), void* stack_end);
}

namespace {

// The two secrets of a process stand in its thread control block: what a function's return address
// is guarded with, and what stored addresses of code are mixed with (struct tcbhead_t,
// sysdeps/x86_64/nptl/tls.h). A string that ends is not to reveal the first of them, so that it
// begins with a zero.
__attribute__((no_stack_protector)) void set_guards(const unsigned char* random) {
  std::uintptr_t stack_guard = 0;
  std::uintptr_t pointer_guard = 0;
  std::memcpy(&stack_guard, random, sizeof stack_guard);
  std::memcpy(&pointer_guard, random + sizeof stack_guard, sizeof pointer_guard);
  asm volatile("movq %0, %%fs:0x28" : : "r"(stack_guard & ~std::uintptr_t{0xff}));
  asm volatile("movq %0, %%fs:0x30" : : "r"(pointer_guard));
}

void finish(void* /*unused*/) {
  const std::span<const Finalizer> finalizers{__fini_array_start, __fini_array_end};
  for (auto next = finalizers.rbegin(); next != finalizers.rend(); ++next)
    (*next)();
  _fini();
}

}  // namespace

// Called by the start file that the compiler links in (rcrt1.o), with the process as the kernel has
// made it: neither relocated nor with a thread control block, so that no function that is called
// before may use either.
__attribute__((no_stack_protector)) int __libc_start_main(int (*main)(int, char**, char**),
                                                          int argc, char** argv, void (*)(),
                                                          void (*)(), void (*)(), void* stack_end) {
  __environ = argv + argc + 1;
  __libc_stack_end = stack_end;
  char** after = __environ;
  while (*after != nullptr)
    ++after;
  _dl_aux_init(reinterpret_cast<ElfW(auxv_t)*>(after + 1));

  _dl_relocate_static_pie();
  __libc_setup_tls();
  set_guards(_dl_random);

  __libc_early_init(true);
  __libc_init_first(argc, argv, __environ);
  __cxa_atexit(finish, nullptr, nullptr);
  if (__libc_enable_secure != 0) __libc_check_standard_fds();

  for (const Initializer next : std::span{__preinit_array_start, __preinit_array_end})
    next(argc, argv, __environ);
  _init();
  for (const Initializer next : std::span{__init_array_start, __init_array_end})
    next(argc, argv, __environ);
  std::exit(main(argc, argv, __environ));  // NOLINT(concurrency-mt-unsafe): there is one thread
}
// NOLINTEND(readability-*,modernize-avoid-c-arrays)
