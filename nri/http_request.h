#pragma once

#include <cstdint>
#include <string_view>

namespace podqos::nri {

/// The statuses of RFC 9110 that podqos-nri answers with.
enum class HttpStatus : std::uint16_t {
  kOk = 200,
  kBadRequest = 400,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kUnavailable = 503,
};

/// What a client asks for.
struct HttpRequest {
  HttpStatus status = HttpStatus::kOk;  ///< kOk, or the error to answer with
  bool head_only = false;               ///< HEAD: the answer has no body
  std::string_view path = {};           ///< of the target, without its query; not decoded
};

/// Parses the request line at the front of `text`, which has to be that of a GET or HEAD of HTTP/1
/// for a path. Header fields are not read: no answer depends on them.
[[nodiscard]] HttpRequest parse_http_request(std::string_view text);

}  // namespace podqos::nri
