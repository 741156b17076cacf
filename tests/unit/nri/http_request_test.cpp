#include "nri/http_request.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::nri {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::string_view kGood = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct Case {
  std::string name;
  std::string text;
  HttpStatus status = HttpStatus::kOk;
  std::string path;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

const std::vector<Case>& cases() {
  using enum HttpStatus;
  static const std::vector<Case> all = {
      {"Plain", std::string{kGood}, kOk, "/metrics"},
      {"Head", "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/healthz"},
      {"Query", "GET /metrics?name=a HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/metrics"},
      {"OldVersion", "GET /metrics HTTP/1.0\r\n\r\n", kOk, "/metrics"},
      {"WholeTarget", "GET http://h:9464/readyz HTTP/1.1\r\nHost: h:9464\r\n\r\n", kOk, "/readyz"},
      {"WholeTargetWithoutPath", "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", kOk, "/"},
      {"EmptyHost", "GET / HTTP/1.1\r\nHost:\r\n\r\n", kOk, "/"},
      {"AnyCase", "GET / HTTP/1.1\r\nhOST: x\r\n\r\n", kOk, "/"},
      {"LineFeedsOnly", "GET / HTTP/1.1\nHost: x\n\n", kOk, "/"},
      {"EmptyLineFirst", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/"},
      {"Content", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", kOk, "/"},
      {"Pipelined", std::string{kGood} + "GARBAGE", kOk, "/metrics"},
      {"Upgrade", "GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
       kOk, "/"},
      {"Post", "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", kMethodNotAllowed,
       ""},
      {"Connect", "CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"AllOptions", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"UnknownMethod", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", kNotImplemented, ""},
      {"NoHost", "GET / HTTP/1.1\r\n\r\n", kBadRequest, ""},
      {"TwoHosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", kBadRequest, ""},
      {"NoPath", "GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"Asterisk", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"SpaceInTarget", "GET / a HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"SpaceBeforeColon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", kBadRequest, ""},
      {"NoColon", "GET / HTTP/1.1\r\nHost\r\n\r\n", kBadRequest, ""},
      {"NotHttp", "GET / FTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"Zero", std::string{"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 28}, kBadRequest, ""},
      {"FoldedField", "GET / HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\n\r\n", kBadRequest, ""},
      {"NoName", "GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", kBadRequest, ""},
      {"CarriageReturnInALine", "GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", kBadRequest, ""},
      {"Delete", "GET / HTTP/1.1\r\nHost: x\x7f\r\n\r\n", kBadRequest, ""},
      {"NoTarget", "GET\r\n\r\n", kBadRequest, ""},
      {"NoAuthority", "GET http:///metrics HTTP/1.1\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"Fragment", "GET /metrics#top HTTP/1.1\r\nHost: x\r\n\r\n", kOk, "/metrics"},
      {"QueryOfAWholeTarget", "GET http://h?a=b HTTP/1.1\r\nHost: h\r\n\r\n", kOk, "/"},
      {"AddressInAQuery", "GET /metrics?at=http://h/x HTTP/1.1\r\nHost: x\r\n\r\n", kOk,
       "/metrics"},
      {"LengthThatIsNone", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n", kBadRequest,
       ""},
      {"LengthAndChunks",
       "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       kBadRequest, ""},
      {"Patch", "PATCH /metrics HTTP/1.1\r\nHost: x\r\n\r\n", kMethodNotAllowed, ""},
      {"LowerCaseMethod", "get / HTTP/1.1\r\nHost: x\r\n\r\n", kNotImplemented, ""},
      {"LongVersion", "GET / HTTP/1.10\r\nHost: x\r\n\r\n", kBadRequest, ""},
      {"TwoLengths", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
       kBadRequest, ""},
      {"Two", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", kVersionNotSupported, ""},
      {"WithoutVersion", "GET /\r\n\r\n", kVersionNotSupported, ""},
  };
  return all;
}

class HttpRequestReads : public TestWithParam<Case> {};

TEST_P(HttpRequestReads, AtOnce) {
  HttpRequest request;
  EXPECT_TRUE(request.feed(GetParam().text));
  EXPECT_EQ(request.status(), GetParam().status);
  EXPECT_EQ(request.path(), GetParam().path);
}

TEST_P(HttpRequestReads, ByteByByte) {
  HttpRequest request;
  bool over = false;
  for (const char byte : GetParam().text) {
    // As when the connections of a server are moved.
    HttpRequest moved = std::move(request);
    over = moved.feed({&byte, 1});
    request = std::move(moved);
    if (over) break;
  }
  EXPECT_TRUE(over);
  EXPECT_EQ(request.status(), GetParam().status);
  EXPECT_EQ(request.path(), GetParam().path);
}
INSTANTIATE_TEST_SUITE_P(Requests, HttpRequestReads, ValuesIn(cases()),
                         [](const auto& c) { return c.param.name; });

TEST(HttpRequest, KnowsHead) {
  HttpRequest head;
  EXPECT_TRUE(head.feed("HEAD / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(head.is_head());
  HttpRequest get;
  EXPECT_TRUE(get.feed(kGood));
  EXPECT_FALSE(get.is_head());
}

TEST(HttpRequest, WaitsForTheEndOfTheHead) {
  HttpRequest request;
  EXPECT_FALSE(request.feed(kGood.substr(0, kGood.size() - 1)));
  EXPECT_FALSE(request.feed(""));
  EXPECT_TRUE(request.feed("\n"));
  EXPECT_TRUE(request.feed("more"));
  EXPECT_EQ(request.status(), HttpStatus::kOk);
}

TEST(HttpRequest, EndsWhereTheHeadIsTooLarge) {
  const std::string start = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string longest = start + std::string(4096 - start.size() - 4, 'x') + "\r\n\r\n";
  HttpRequest fits;
  EXPECT_TRUE(fits.feed(longest));
  EXPECT_EQ(fits.status(), HttpStatus::kOk);
  HttpRequest exceeds;
  EXPECT_TRUE(exceeds.feed(start + std::string(1U << 20U, 'x')));
  EXPECT_EQ(exceeds.status(), HttpStatus::kHeadTooLarge);
  HttpRequest without_name;
  EXPECT_TRUE(without_name.feed("GET / HTTP/1.1\r\n" + std::string(5000, 'x')));
  EXPECT_EQ(without_name.status(), HttpStatus::kHeadTooLarge);
}

TEST(HttpRequest, EndsWhereTheTargetIsTooLong) {
  HttpRequest request;
  EXPECT_FALSE(request.feed("GET /" + std::string(4090, 'x')));
  EXPECT_TRUE(request.feed("x"));
  EXPECT_EQ(request.status(), HttpStatus::kUriTooLong);
  EXPECT_TRUE(request.feed(" HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(request.status(), HttpStatus::kUriTooLong);
}

TEST(HttpRequest, EndsWhereNothingButEmptyLinesComes) {
  HttpRequest request;
  EXPECT_TRUE(request.feed(std::string(5000, '\n')));
  EXPECT_NE(request.status(), HttpStatus::kOk);
}

TEST(HttpRequest, TakesNoOtherProtocol) {
  // The beginning of TLS, of HTTP/2, of a unix socket's neighbour that speaks ttrpc.
  for (const std::string_view text : {std::string_view{"\x16\x03\x01\x02\x00\x01", 6},
                                      std::string_view{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
                                      std::string_view{"\0\0\0\1\0\0\0\x10", 8}}) {
    HttpRequest request;
    EXPECT_TRUE(request.feed(text));
    EXPECT_NE(request.status(), HttpStatus::kOk);
  }
}

}  // namespace
}  // namespace podqos::nri
