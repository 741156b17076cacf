#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The numbers in the headers of mux and ttrpc.
namespace podqos::nri {

/// @param bytes  at least four.
[[nodiscard]] inline std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4))
    number = (number << 8U) | static_cast<unsigned char>(byte);
  return number;
}

inline void append_u32(std::string& out, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    out += static_cast<char>((number >> shift) & 0xffU);
}

/// Moves bytes from the front of `input` to the end of `out` until that has `size`.
/// @return whether it has.
[[nodiscard]] inline bool fill_up(std::string& out, std::size_t size, std::string_view& input) {
  const std::string_view taken = input.substr(0, size - out.size());
  out += taken;
  input.remove_prefix(taken.size());
  return out.size() == size;
}

}  // namespace podqos::nri
