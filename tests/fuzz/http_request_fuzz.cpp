// Whoever can reach the address of podqos-nri's metrics sends what he likes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nri/http_request.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::fuzz::require;
using podqos::nri::HttpRequest;
using podqos::nri::HttpStatus;

/// In pieces of that size, until it has enough.
HttpRequest read(std::string_view text, std::size_t piece) {
  HttpRequest request;
  while (!text.empty() && !request.feed(text.substr(0, piece)))
    text.remove_prefix(std::min(piece, text.size()));
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(data, size);
  const HttpRequest whole = read(text, std::max<std::size_t>(size, 1));
  const HttpRequest bytes = read(text, 1);
  // It does not matter in what pieces it comes.
  require(whole.status() == bytes.status());
  require(whole.path() == bytes.path());
  require(whole.is_head() == bytes.is_head());
  require(whole.path().empty() || whole.path().front() == '/');
  require(whole.path().size() < HttpRequest::kMaxHead);
  // What is refused has no path, and what is long comes to an end.
  require(whole.status() == HttpStatus::kOk || whole.path().empty());
  require(size < HttpRequest::kMaxHead || whole.status() != HttpStatus::kOk ||
          !whole.path().empty());
  return 0;
}
