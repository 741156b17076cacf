#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace podqos::nri {

/// The statuses of RFC 9110 that podqos-nri answers with.
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

/// An incremental parser of one HTTP/1 request (RFC 9112), up to the end of its head. Content and
/// further requests are ignored, because the connection ends with the answer.
/// @note libevent's evhttp accepts requests without Host, and keeps a connection open as long as
/// single bytes arrive.
class HttpRequest {
 public:
  static constexpr std::size_t kMaxHead = 4096;  ///< bytes, including the request line

  /// Parses more bytes; ignores them after the end.
  /// @return whether the head is complete or an error was found.
  [[nodiscard]] bool feed(std::string_view bytes);

  /// kOk for a GET or HEAD request, see path() and is_head(); otherwise the error to answer with.
  /// Valid after feed() returned true.
  [[nodiscard]] HttpStatus status() const { return status_; }
  [[nodiscard]] bool is_head() const { return method_ == "HEAD"; }
  /// The path of the target without query; percent-encoding is not decoded.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void read(char byte);
  void read_line();
  void read_request_line();
  void read_field();
  void finish();
  void end(HttpStatus status);

  std::size_t size_ = 0;
  std::string line_;    ///< the current line so far
  std::string method_;  ///< empty: the request line is not complete
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
