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
#include <tuple>
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

/// glibc moves 768 KiB and more in another way, and sixteen times that, or what lies likewise in
/// its pages, in a third one.
class Memory : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(Memory, IsMovedWhole) {
  const auto [size, shift] = GetParam();
  const auto ahead = static_cast<std::ptrdiff_t>(shift);
  std::vector<unsigned char> from(size + shift);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 2654435761U >> 13U);
  std::vector<unsigned char> to(size, 0xee);
  std::memcpy(to.data(), from.data() + shift, size);
  EXPECT_TRUE(std::equal(to.begin(), to.end(), from.begin() + ahead));

  std::vector<unsigned char> up = from;
  std::memmove(up.data() + shift, up.data(), size);
  EXPECT_TRUE(std::equal(from.begin(), from.end() - ahead, up.begin() + ahead));
  std::vector<unsigned char> down = from;
  std::memmove(down.data(), down.data() + shift, size);
  EXPECT_TRUE(std::equal(from.begin() + ahead, from.end(), down.begin()));

  std::memset(to.data(), 0x5a, size);
  EXPECT_EQ(std::ranges::count(to, 0x5a), static_cast<std::ptrdiff_t>(size));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Memory,
    testing::Combine(testing::Values(1, 15, 16, 17, 127, 128, 129, 4096, 65'536, 786'431, 786'432,
                                     786'433, 1'048'577, 12'582'911, 12'582'912, 13'000'001),
                     testing::Values(1, 37, 4096)));

}  // namespace
