#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nri/wire.h"

/// What goes over a trunk, written and read without the code under test where that matters.
namespace podqos::nri::test {

/// Types of a message, by PROTOCOL.md of ttrpc.
inline constexpr int kRequest = 1;
inline constexpr int kResponse = 2;

inline std::string u32(std::uint32_t number) {
  std::string out(4, '\0');
  for (std::size_t i = 4; i-- > 0; number >>= 8U)
    out[i] = static_cast<char>(number & 0xffU);
  return out;
}

inline std::string frame(std::uint32_t connection, std::string_view bytes) {
  return u32(connection) + u32(static_cast<std::uint32_t>(bytes.size())) + std::string{bytes};
}

/// A message of ttrpc around an envelope.
inline std::string message(std::uint32_t stream, int type, std::string_view envelope) {
  return u32(static_cast<std::uint32_t>(envelope.size())) + u32(stream) +
         std::string{static_cast<char>(type), '\0'} + std::string{envelope};
}

/// The runtime calls the plugin: one frame, or two, as the Go side does it.
inline std::string call(std::uint32_t stream, std::string method, std::string payload,
                        Budget budget = std::nullopt) {
  const std::string request = encode_request(stream, {.service = "nri.pkg.api.v1alpha1.Plugin",
                                                      .method = std::move(method),
                                                      .payload = std::move(payload),
                                                      .budget = budget});
  const std::string_view whole = request;
  std::string out = frame(1, whole.substr(0, 4096));
  if (whole.size() > 4096) out += frame(1, whole.substr(4096));
  return out;
}

/// All messages in the bytes of one direction.
inline std::vector<Message> hear(std::string_view bytes) {
  MessageReader reader;
  std::vector<Message> out;
  while (true) {
    auto message = reader.next(bytes);
    EXPECT_TRUE(message.has_value());
    if (!message || !*message) return out;
    EXPECT_FALSE((*message)->oversized);
    out.push_back(*std::move(*message));
  }
}

}  // namespace podqos::nri::test
