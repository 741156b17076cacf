#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Big-endian numbers in the headers of mux frames and ttrpc messages.
namespace podqos::nri {

/// The number in the first four bytes.
/// @param bytes  at least four
[[nodiscard]] inline std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4))
    number = (number << 8U) | static_cast<unsigned char>(byte);
  return number;
}

/// Appends a number as four bytes.
inline void append_u32(std::string& out, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    out += static_cast<char>((number >> shift) & 0xffU);
}

/// Moves bytes from the front of `input` to the end of `out` until `out` has `size` bytes.
/// @param out  has at most `size` bytes
/// @return whether `out` is complete.
[[nodiscard]] inline bool fill_up(std::string& out, std::size_t size, std::string_view& input) {
  const std::string_view taken = input.substr(0, size - out.size());
  out += taken;
  input.remove_prefix(taken.size());
  return out.size() == size;
}

}  // namespace podqos::nri
