// Whoever can reach the address of podqos-nri's metrics sends what he likes.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nri/http_server.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using podqos::fuzz::require;
  const std::string_view text = podqos::fuzz::text_of(data, size);
  const auto request = podqos::nri::parse_http_request(text);
  // What is taken has a path, which is part of the first line; what is refused has none.
  const bool taken = request.status == podqos::nri::kHttpOk;
  require(taken == request.path.starts_with('/'));
  require(!request.path.contains('\n') && !request.path.contains('?'));
  require(text.starts_with("HEAD ") || !request.head_only);
  require(!taken || text.contains(request.path));
  return 0;
}
