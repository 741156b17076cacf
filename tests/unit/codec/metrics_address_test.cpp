#include "common/codec/metrics_address.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::codec {
namespace {

using core::MetricsAddress;
using core::TcpPort;
using core::UnixSocket;
using ::testing::HasSubstr;

TEST(ParseMetricsAddress, TakesASocketOrPortAndFormatsIt) {
  const auto port = [](const char* host, std::uint16_t number) {
    return MetricsAddress{TcpPort{.host = host, .port = number}};
  };
  for (const auto& [text, address] : std::vector<std::pair<std::string, MetricsAddress>>{
           {"unix:/run/podqos/metrics.sock", UnixSocket{"/run/podqos/metrics.sock"}},
           {"127.0.0.1:9464", port("127.0.0.1", 9464)},
           {"127.255.3.4:1", port("127.255.3.4", 1)},
           {"[::1]:65535", port("::1", 65535)},
           {"0.0.0.0:9464", port("0.0.0.0", 9464)},
           {"[::]:9464", port("::", 9464)},
       }) {
    EXPECT_EQ(parse_metrics_address(text), address) << text;
    EXPECT_EQ(format_metrics_address(address), text);
  }
}

TEST(ParseMetricsAddress, TakesAsLongAPathAsAnAddressHolds) {
  const std::string longest = "/" + std::string(106, 'x');
  EXPECT_TRUE(parse_metrics_address("unix:" + longest));
  const auto longer = parse_metrics_address("unix:" + longest + "x");
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, HasSubstr("it has 108 bytes, at most 107"));
}

TEST(ParseMetricsAddress, RefusesOtherTexts) {
  struct Refused {
    const char* why;
    std::vector<std::string_view> texts;
  };
  for (const auto& [why, texts] : std::vector<Refused>{
           // What others could reach.
           {"is not a loopback address",
            {"*:9464", "10.0.0.1:9464", "0.0.0.1:9464", "0:9464", "localhost:9464",
             "128.0.0.1:9464", "12.7.0.0.1:9464", "127.0.0:9464", "127.0.0.0.1:9464",
             "127.0.0.256:9464", "127.0.0.01:9464", "127.-0.0.1:9464", "127..0.1:9464",
             "127.0.0.1.:9464", "[::ffff:127.0.0.1]:9464", "::1:9464", "[fe80::1]:9464"}},
           {"is not a metrics address",
            {"", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
             "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:09464", "127.0.0.1:94 64", "[::1]",
             "/run/socket", "http://127.0.0.1:x"}},
           // An abstract address has no permissions.
           {"is not a socket path: expected unix: and an absolute path",
            {"unix:", "unix:run/socket", "unix:@podqos", "unix:/run/../socket", "unix:/run/..",
             "unix:/run/podqos/", "unix:/run/a\nb"}},
       }) {
    for (const std::string_view text : texts) {
      const auto parsed = parse_metrics_address(text);
      ASSERT_FALSE(parsed) << text;
      EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(parsed.error().message, HasSubstr(why));
    }
  }
}

}  // namespace
}  // namespace podqos::codec
