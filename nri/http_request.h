#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
/// @note RFC 9112. libevent's evhttp answers requests without a Host, and a connection on which it
/// waits for one lasts for as long as single bytes come.
class HttpRequest {
 public:
  static constexpr std::size_t kMaxHead = 4096;  ///< bytes, the request line included

  /// Takes more bytes; after the end it takes nothing.
  /// @return whether the end is reached: of the head, or of what can be understood.
  [[nodiscard]] bool feed(std::string_view bytes);

  /// kOk: a request that path() and is_head() tell of. Else what it is to be answered with.
  [[nodiscard]] HttpStatus status() const { return status_; }
  [[nodiscard]] bool is_head() const { return method_ == "HEAD"; }
  /// Without query; not decoded.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void read(char byte);
  void read_line();
  void read_request_line();
  void read_field();
  void finish();
  void end(HttpStatus status);

  std::size_t size_ = 0;
  std::string line_;    ///< as far as it has come
  std::string method_;  ///< empty: the request line is still to come
  std::string target_;
  char major_version_ = '\0';  ///< '\0': the request line has no version
  char minor_version_ = '\0';
  int hosts_ = 0;      ///< header fields "Host"
  int lengths_ = 0;    ///< "Content-Length"
  int encodings_ = 0;  ///< "Transfer-Encoding"
  bool over_ = false;
  HttpStatus status_ = HttpStatus::kOk;
  std::string path_;
};

}  // namespace podqos::nri
