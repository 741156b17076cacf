#include "nri/http_request.h"

#include <algorithm>
#include <array>

namespace podqos::nri {

namespace {

/// The methods of RFC 9110 and RFC 5789; others are answered with 501.
constexpr std::array<std::string_view, 9> kMethods = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS",
                                                      "PATCH",   "POST",   "PUT", "TRACE"};

/// Whether `c` is an ASCII digit.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether `c` is an ASCII letter.
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Whether `c` is an ASCII control character.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20U || byte == 0x7fU;
}

/// Whether `c` is allowed in a token, such as a field name (RFC 9110, section 5.6.2).
bool is_of_token(char c) {
  return is_digit(c) || is_letter(c) || std::string_view{"!#$%&'*+-.^_`|~"}.contains(c);
}

/// Compares a field name without regard to case.
/// @param name  in lower case
bool is_name(std::string_view text, std::string_view name) {
  return std::ranges::equal(text, name, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

/// `text` without blanks and tabs at both ends (RFC 9110, section 5.6.3).
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The path of a target in origin-form or absolute-form (RFC 9112, section 3.2); "": neither.
std::string_view path_in(std::string_view target) {
  if (const std::size_t scheme = target.find("://");
      scheme != std::string_view::npos &&
      std::ranges::all_of(target.substr(0, scheme), is_letter)) {
    target.remove_prefix(scheme + 3);
    const std::size_t authority = std::min(target.find_first_of("/?#"), target.size());
    if (scheme == 0 || authority == 0) return {};
    target.remove_prefix(authority);
    if (!target.starts_with('/')) return "/";
  }
  return target.starts_with('/') ? target.substr(0, target.find_first_of("?#"))
                                 : std::string_view{};
}

}  // namespace

bool HttpRequest::feed(std::string_view bytes) {
  for (const char byte : bytes) {
    if (over_) return true;
    read(byte);
    if (++size_ == kMaxHead && !over_)
      end(method_.empty() ? HttpStatus::kUriTooLong : HttpStatus::kHeadTooLarge);
  }
  return over_;
}

void HttpRequest::read(char byte) {
  if (byte == '\n') {
    // A line may end with a bare LF (RFC 9112, section 2.2); CR is only allowed before LF.
    if (line_.ends_with('\r')) line_.pop_back();
    read_line();
    line_.clear();
  } else if (line_.ends_with('\r') || (is_control(byte) && byte != '\r' && byte != '\t')) {
    end(HttpStatus::kBadRequest);
  } else {
    line_.push_back(byte);
  }
}

void HttpRequest::read_line() {
  if (!method_.empty()) return line_.empty() ? finish() : read_field();
  // Empty lines before a request are ignored.
  if (!line_.empty()) read_request_line();
}

void HttpRequest::read_request_line() {
  constexpr std::string_view kProtocol = "HTTP/";
  const std::string_view line = line_;
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view method = line.substr(0, space);
  if (std::ranges::find(kMethods, method) == kMethods.end())
    return end(HttpStatus::kNotImplemented);
  const std::string_view rest = line.substr(std::min(space + 1, line.size()));
  const std::size_t behind = std::min(rest.find(' '), rest.size());
  const std::string_view target = rest.substr(0, behind);
  if (target.empty() || target.contains('\t')) return end(HttpStatus::kBadRequest);
  if (behind < rest.size()) {
    const std::string_view version = rest.substr(behind + 1);
    const bool well_formed = version.size() == kProtocol.size() + 3 &&
                             version.starts_with(kProtocol) && is_digit(version[5]) &&
                             version[6] == '.' && is_digit(version[7]);
    if (!well_formed) return end(HttpStatus::kBadRequest);
    major_version_ = version[5];
    minor_version_ = version[7];
  }
  method_ = method;
  target_ = target;
}

void HttpRequest::read_field() {
  const std::string_view line = line_;
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() || !std::ranges::all_of(name, is_of_token))
    return end(HttpStatus::kBadRequest);
  if (is_name(name, "host")) ++hosts_;
  if (is_name(name, "transfer-encoding")) ++encodings_;
  if (is_name(name, "content-length")) {
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (value.empty() || !std::ranges::all_of(value, is_digit)) return end(HttpStatus::kBadRequest);
    ++lengths_;
  }
}

void HttpRequest::finish() {
  if (major_version_ != '1') return end(HttpStatus::kVersionNotSupported);
  // RFC 9112, section 3.2: HTTP/1.1 requires exactly one Host.
  if (hosts_ > 1 || (hosts_ == 0 && minor_version_ != '0')) return end(HttpStatus::kBadRequest);
  // Section 6.3: the end of the content would be ambiguous.
  if (lengths_ > 1 || (lengths_ == 1 && encodings_ > 0)) return end(HttpStatus::kBadRequest);
  if (method_ != "GET" && method_ != "HEAD") return end(HttpStatus::kMethodNotAllowed);
  // "*" is valid with OPTIONS only.
  path_ = path_in(target_);
  end(path_.empty() ? HttpStatus::kBadRequest : HttpStatus::kOk);
}

void HttpRequest::end(HttpStatus status) {
  status_ = status;
  over_ = true;
}

}  // namespace podqos::nri
