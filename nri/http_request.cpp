#include "nri/http_request.h"

#include <cstddef>

namespace podqos::nri {

HttpRequest parse_http_request(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == last || !line.substr(last + 1).starts_with("HTTP/1."))
    return {.status = HttpStatus::kBadRequest};
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return {.status = HttpStatus::kMethodNotAllowed};
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!target.starts_with('/')) return {.status = HttpStatus::kBadRequest};
  return {.head_only = method == "HEAD", .path = target.substr(0, target.find('?'))};
}

}  // namespace podqos::nri
