// The hook's own start (hook/start.cpp): this program begins with it, and finds what glibc promises
// a program.

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <link.h>

namespace {

using testing::ExitedWithCode;

int constructed = 0;
struct Early {
  Early() { ++constructed; }
};
const Early early;

thread_local int per_thread = 42;

template <int Offset>
std::uintptr_t control_block() {
  std::uintptr_t value = 0;
  asm volatile("movq %%fs:%c1, %0" : "=r"(value) : "i"(Offset));
  return value;
}

std::string whole(const char* path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Strings that end in zeros, joined as /proc shows them.
std::string joined(char** strings) {
  std::string text;
  for (; *strings != nullptr; ++strings)
    text += std::string{*strings} + '\0';
  return text;
}

TEST(Start, ConstructsOnce) {
  EXPECT_EQ(constructed, 1);
}

TEST(Start, HandsOverArgumentsAndEnvironment) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : whole("/proc/self/cmdline")) {
    if (c != '\0') {
      word += c;
    } else {
      words.push_back(std::exchange(word, {}));
    }
  }
  ASSERT_FALSE(words.empty());
  EXPECT_EQ(words.front(), program_invocation_name);
  EXPECT_EQ(joined(environ), whole("/proc/self/environ"));
}

TEST(Start, TakesTheGuardsFromTheKernelsRandomBytes) {
  std::array<std::uintptr_t, 2> random{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): so the kernel tells an address.
  const void* told = reinterpret_cast<const void*>(::getauxval(AT_RANDOM));
  std::memcpy(random.data(), told, sizeof random);
  EXPECT_EQ(control_block<0x28>(), random[0] & ~std::uintptr_t{0xff});
  EXPECT_EQ(control_block<0x30>(), random[1]);
}

void smash_the_stack() {
  std::array<char, 16> small{};
  volatile char* at = small.data();
  for (int i = 0; i < 64; ++i)
    at[i] = 'x';
}

TEST(Start, CatchesASmashedStack) {
  EXPECT_EXIT(smash_the_stack(), testing::KilledBySignal(SIGABRT), "stack smashing detected");
}

/// Where the part begins that is read-only once the program is relocated.
std::uintptr_t begin_of_relro() {
  std::uintptr_t begin = 0;
  const auto look = [](dl_phdr_info* info, std::size_t, void* found) {
    for (const auto& header : std::span{info->dlpi_phdr, info->dlpi_phnum}) {
      if (header.p_type == PT_GNU_RELRO)
        *static_cast<std::uintptr_t*>(found) = info->dlpi_addr + header.p_vaddr;
    }
    return 0;
  };
  ::dl_iterate_phdr(look, &begin);
  return begin;
}

/// "r--p" for an address, as /proc/self/maps shows it; "" if nothing is mapped there.
std::string mode_at(std::uintptr_t address) {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const std::uintptr_t from = std::strtoul(line.c_str(), &end, 16);
    const std::uintptr_t to = std::strtoul(end + 1, &end, 16);
    if (from <= address && address < to) return std::string{end + 1}.substr(0, 4);
  }
  return "";
}

TEST(Start, RelocatesAndThenProtects) {
  const std::uintptr_t begin = begin_of_relro();
  ASSERT_NE(begin, 0U);
  EXPECT_EQ(mode_at(begin), "r--p");
}

TEST(Start, UnwindsToTheHandler) {
  EXPECT_THROW(static_cast<void>(std::vector<int>{}.at(1)), std::out_of_range);
}

TEST(Start, GivesEachThreadItsOwn) {
  per_thread = 1;
  int other = 0;
  std::thread{[&] { other = per_thread++; }}.join();
  EXPECT_EQ(other, 42);
  EXPECT_EQ(per_thread, 1);
}

// NOLINTBEGIN(concurrency-mt-unsafe): these processes have one thread.
void end_with_a_last_word() {
  static_cast<void>(std::atexit([] { static_cast<void>(!::write(STDERR_FILENO, "last", 4)); }));
  std::exit(3);
}

TEST(Start, EndsWithWhatWasRegistered) {
  EXPECT_EXIT(end_with_a_last_word(), ExitedWithCode(3), "last");
}

void end_with_a_full_buffer() {
  if (std::setvbuf(stderr, nullptr, _IOFBF, BUFSIZ) != 0) std::abort();
  static_cast<void>(std::fputs("kept", stderr));
  std::exit(0);
}

TEST(Start, FlushesWhatIsLeftInABuffer) {
  EXPECT_EXIT(end_with_a_full_buffer(), ExitedWithCode(0), "kept");
}
// NOLINTEND(concurrency-mt-unsafe)

TEST(Start, KnowsItsLocale) {
  EXPECT_STREQ(std::setlocale(LC_ALL, nullptr), "C");  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(std::isdigit('7') != 0, true);
  EXPECT_EQ(std::strtod("1.5", nullptr), 1.5);
}

/// Around the sizes from which glibc moves memory in another way (2 KiB, 768 KiB), and far beyond.
class Memory : public testing::TestWithParam<std::size_t> {};

TEST_P(Memory, IsMovedWhole) {
  constexpr std::size_t kShift = 37;
  const std::size_t size = GetParam();
  std::vector<unsigned char> from(size + kShift);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 2654435761U >> 13U);
  std::vector<unsigned char> to(size, 0xee);
  std::memcpy(to.data(), from.data() + kShift, size);
  EXPECT_TRUE(std::equal(to.begin(), to.end(), from.begin() + kShift));

  std::vector<unsigned char> up = from;
  std::memmove(up.data() + kShift, up.data(), size);
  EXPECT_TRUE(std::equal(from.begin(), from.end() - kShift, up.begin() + kShift));
  std::vector<unsigned char> down = from;
  std::memmove(down.data(), down.data() + kShift, size);
  EXPECT_TRUE(std::equal(from.begin() + kShift, from.end(), down.begin()));

  std::memset(to.data(), 0x5a, size);
  EXPECT_EQ(std::count(to.begin(), to.end(), 0x5a), static_cast<std::ptrdiff_t>(size));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Memory,
                         testing::Values(1, 15, 16, 17, 127, 128, 129, 2047, 2048, 2049, 4096,
                                         65'536, 786'431, 786'432, 786'433, 1'048'577, 9'000'001));

TEST(Start, AsksTheProcessorNothing) {
  // What glibc found out would stand here (sysdeps/x86/cacheinfo.c).
  EXPECT_EQ(::sysconf(_SC_LEVEL1_DCACHE_SIZE), 0);
}

}  // namespace
