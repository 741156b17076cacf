#include "nri/http_request.h"

#include <algorithm>

#include <strings.h>

namespace podqos::nri {

/// What http_parser calls; `data` is the request.
struct HttpRequest::Callbacks {
  static HttpRequest& request_of(http_parser* parser) {
    return *static_cast<HttpRequest*>(parser->data);
  }
  static int on_target(http_parser* parser, const char* text, std::size_t size) {
    request_of(parser).target_.append(text, size);
    return 0;
  }
  static int on_field(http_parser* parser, const char* text, std::size_t size) {
    HttpRequest& request = request_of(parser);
    request.has_target_ = true;
    if (!request.in_field_) request.field_.clear();
    request.in_field_ = true;
    request.field_.append(text, size);
    return 0;
  }
  static int on_value(http_parser* parser, const char*, std::size_t) {
    HttpRequest& request = request_of(parser);
    if (request.in_field_ && ::strcasecmp(request.field_.c_str(), "host") == 0) ++request.hosts_;
    request.in_field_ = false;
    return 0;
  }
  static int on_head(http_parser* parser) {
    request_of(parser).complete_ = true;
    ::http_parser_pause(parser, 1);
    return 0;
  }

  static http_parser_settings table() {
    http_parser_settings settings{};
    settings.on_url = on_target;
    settings.on_header_field = on_field;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_head;
    return settings;
  }
};

HttpRequest::HttpRequest() {
  ::http_parser_init(&parser_, HTTP_REQUEST);
}

bool HttpRequest::feed(std::string_view bytes) {
  if (complete_ || status_ != HttpStatus::kOk) return true;
  if (bytes.empty()) return false;  // to http_parser it is the end
  const http_parser_settings settings = Callbacks::table();
  const std::string_view taken = bytes.substr(0, std::min(bytes.size(), kMaxHead - size_));
  parser_.data = this;  // the object may have moved
  static_cast<void>(::http_parser_execute(&parser_, &settings, taken.data(), taken.size()));
  size_ += taken.size();
  status_ = judge();
  return complete_ || status_ != HttpStatus::kOk;
}

HttpStatus HttpRequest::judge() {
  const auto error = static_cast<http_errno>(parser_.http_errno);
  if (!complete_) {
    if (error == HPE_INVALID_METHOD) return HttpStatus::kNotImplemented;
    if (error == HPE_HEADER_OVERFLOW) return HttpStatus::kHeadTooLarge;
    if (error != HPE_OK) return HttpStatus::kBadRequest;
    if (size_ < kMaxHead) return HttpStatus::kOk;
    return has_target_ ? HttpStatus::kHeadTooLarge : HttpStatus::kUriTooLong;
  }
  if (parser_.http_major != 1) return HttpStatus::kVersionNotSupported;
  // RFC 9112, section 3.2: without one, or with two, it is not known who was meant.
  if (hosts_ > 1 || (hosts_ == 0 && parser_.http_minor > 0)) return HttpStatus::kBadRequest;
  if (parser_.method != HTTP_GET && parser_.method != HTTP_HEAD)
    return HttpStatus::kMethodNotAllowed;
  return read_target();
}

HttpStatus HttpRequest::read_target() {
  http_parser_url url{};
  ::http_parser_url_init(&url);
  if (::http_parser_parse_url(target_.data(), target_.size(), 0, &url) != 0)
    return HttpStatus::kBadRequest;
  const auto& path = url.field_data[UF_PATH];
  const bool has_path = (url.field_set & (1U << UF_PATH)) != 0;
  if (!has_path) {
    path_ = "/";
    return HttpStatus::kOk;
  }
  // "*" is for OPTIONS.
  if (target_[path.off] != '/') return HttpStatus::kBadRequest;
  path_ = target_.substr(path.off, path.len);
  return HttpStatus::kOk;
}

}  // namespace podqos::nri
