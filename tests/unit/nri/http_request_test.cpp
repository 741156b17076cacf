#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/http_server.h"

namespace podqos::nri {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct Case {
  std::string name;
  std::string_view text;
  HttpStatus status = HttpStatus::kOk;
  std::string_view path;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

const std::vector<Case>& cases() {
  using enum HttpStatus;
  static const std::vector<Case> all = {
      {"Plain", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", kOk, "/metrics"},
      {"Head", "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/healthz"},
      {"Query", "GET /metrics?name=a HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/metrics"},
      {"AddressInAQuery", "GET /metrics?at=http://h/x HTTP/1.1\r\n\r\n", kOk, "/metrics"},
      {"OldVersion", "GET /metrics HTTP/1.0\r\n\r\n", kOk, "/metrics"},
      {"LineFeedsOnly", "GET / HTTP/1.1\nHost: x\n\n", kOk, "/"},
      {"Content", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", kOk, "/"},
      {"Upgrade", "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", kOk, "/"},
      {"Post", "POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", kMethodNotAllowed, ""},
      {"Patch", "PATCH /metrics HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"Connect", "CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"AllOptions", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"UnknownMethod", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"LowerCaseMethod", "get / HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"NoPath", "GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"Asterisk", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"Proxy", "GET http://h:9464/readyz HTTP/1.1\r\nHost: h:9464\r\n\r\n", kBadRequest, ""},
      {"NotHttp", "GET / FTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"NoTarget", "GET\r\n\r\n", kBadRequest, ""},
      {"Two", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"WithoutVersion", "GET /\r\n\r\n", kBadRequest, ""},
      {"EmptyLines", "\r\n\r\n", kBadRequest, ""},
      {"Nothing", "", kBadRequest, ""},
      {"Tls", {"\x16\x03\x01\x02\x00\x01", 6}, kBadRequest, ""},
      {"PriorKnowledgeOfTwo", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kBadRequest, ""},
      {"Ttrpc", {"\0\0\0\1\0\0\0\x10", 8}, kBadRequest, ""},
  };
  return all;
}

class ParseHttpRequest : public TestWithParam<Case> {};

TEST_P(ParseHttpRequest, TakesAPath) {
  const HttpRequest request = parse_http_request(GetParam().text);
  EXPECT_EQ(request.status, GetParam().status);
  EXPECT_EQ(request.path, GetParam().path);
  EXPECT_EQ(request.head_only, GetParam().name == "Head");
}
INSTANTIATE_TEST_SUITE_P(Requests, ParseHttpRequest, ValuesIn(cases()),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace podqos::nri
