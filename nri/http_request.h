#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <http_parser.h>

namespace podqos::nri {

/// Statuses of RFC 9110 that are given.
enum class HttpStatus : std::uint16_t {
  kOk = 200,
  kBadRequest = 400,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kUriTooLong = 414,
  kHeadTooLarge = 431,
  kNotImplemented = 501,
  kUnavailable = 503,
  kVersionNotSupported = 505,
};

/// One request of HTTP/1, read as it comes, up to the end of its head: neither content nor a second
/// request is looked at, for the connection ends with the answer.
class HttpRequest {
 public:
  static constexpr std::size_t kMaxHead = 4096;  ///< bytes, the request line included

  HttpRequest();

  /// Takes more bytes; after the end it takes nothing.
  /// @return whether the end is reached: of the head, or of what can be understood.
  [[nodiscard]] bool feed(std::string_view bytes);

  /// kOk: a request that path() and is_head() tell of. Else what it is to be answered with.
  [[nodiscard]] HttpStatus status() const { return status_; }
  [[nodiscard]] bool is_head() const { return parser_.method == HTTP_HEAD; }
  /// Without query; not decoded.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Callbacks;
  [[nodiscard]] HttpStatus judge();
  [[nodiscard]] HttpStatus read_target();

  http_parser parser_{};
  std::size_t size_ = 0;
  std::string target_;
  std::string field_;        ///< name of the header field that is being read
  bool in_field_ = false;    ///< and more of the name may come
  int hosts_ = 0;            ///< header fields "Host"
  bool has_target_ = false;  ///< the request line is over
  bool complete_ = false;    ///< so is the head
  HttpStatus status_ = HttpStatus::kOk;
  std::string path_;
};

}  // namespace podqos::nri
