#include "common/store/index_name.h"

#include <cstddef>
#include <cstdint>

namespace podqos::store {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kLength = 16;  // of 64 bits
constexpr std::uint64_t kFnvOffset = 0xcbf2'9ce4'8422'2325;
constexpr std::uint64_t kFnvPrime = 0x0000'0100'0000'01b3;

}  // namespace

std::string index_name(std::string_view id) {
  std::uint64_t hash = kFnvOffset;
  for (const char byte : id) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= kFnvPrime;
  }
  std::string name(kLength, '0');
  for (std::size_t i = kLength; i-- > 0; hash >>= 4U)
    name[i] = kHexDigits[hash & 0xfU];
  return name;
}

bool is_index_name(std::string_view name) {
  return name.size() == kLength && name.find_first_not_of(kHexDigits) == std::string_view::npos;
}

}  // namespace podqos::store
