#include "common/core/metrics_address.h"

#include <string>
#include <string_view>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::HasSubstr;
using ::testing::TestWithParam;
using ::testing::Values;

TEST(ParseMetricsAddress, TakesAUnixSocket) {
  EXPECT_EQ(parse_metrics_address("unix:/run/podqos/metrics.sock"),
            (MetricsAddress{UnixSocket{"/run/podqos/metrics.sock"}}));
}

TEST(ParseMetricsAddress, TakesLoopbackOnly) {
  EXPECT_EQ(parse_metrics_address("127.0.0.1:9464"),
            (MetricsAddress{TcpPort{.host = "127.0.0.1", .port = 9464}}));
  EXPECT_EQ(parse_metrics_address("127.255.3.4:1"),
            (MetricsAddress{TcpPort{.host = "127.255.3.4", .port = 1}}));
  EXPECT_EQ(parse_metrics_address("[::1]:65535"),
            (MetricsAddress{TcpPort{.host = "::1", .port = 65535}}));
}

TEST(ParseMetricsAddress, TakesAllInterfacesAtOnce) {
  EXPECT_EQ(parse_metrics_address("0.0.0.0:9464"),
            (MetricsAddress{TcpPort{.host = "0.0.0.0", .port = 9464}}));
  EXPECT_EQ(parse_metrics_address("[::]:9464"),
            (MetricsAddress{TcpPort{.host = "::", .port = 9464}}));
}

TEST(ParseMetricsAddress, TakesAsLongAPathAsAnAddressHolds) {
  const std::string longest = "/" + std::string(106, 'x');
  EXPECT_TRUE(parse_metrics_address("unix:" + longest));
  const auto longer = parse_metrics_address("unix:" + longest + "x");
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, HasSubstr("it has 108 bytes, at most 107"));
}

class ParseMetricsAddressRefuses : public TestWithParam<std::string_view> {};

TEST_P(ParseMetricsAddressRefuses, WhatOthersCouldReach) {
  const auto parsed = parse_metrics_address(GetParam());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(parsed.error().message, HasSubstr("is not a loopback address"));
}
INSTANTIATE_TEST_SUITE_P(Hosts, ParseMetricsAddressRefuses,
                         Values("*:9464", "10.0.0.1:9464", "0.0.0.1:9464", "0:9464",
                                "localhost:9464", "128.0.0.1:9464", "12.7.0.0.1:9464",
                                "127.0.0:9464", "127.0.0.0.1:9464", "127.0.0.256:9464",
                                "127.0.0.01:9464", "127.-0.0.1:9464", "127..0.1:9464",
                                "127.0.0.1.:9464", "[::ffff:127.0.0.1]:9464", "::1:9464",
                                "[fe80::1]:9464"));

class ParseMetricsAddressDoesNotKnow : public TestWithParam<std::string_view> {};

TEST_P(ParseMetricsAddressDoesNotKnow, OtherTexts) {
  const auto parsed = parse_metrics_address(GetParam());
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("is not a metrics address"));
}
INSTANTIATE_TEST_SUITE_P(Texts, ParseMetricsAddressDoesNotKnow,
                         Values("", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
                                "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1",
                                "127.0.0.1:09464", "127.0.0.1:94 64", "[::1]", "/run/socket",
                                "http://127.0.0.1:x"));

class ParseMetricsAddressNeedsAPath : public TestWithParam<std::string_view> {};

TEST_P(ParseMetricsAddressNeedsAPath, ForASocket) {
  const auto parsed = parse_metrics_address(GetParam());
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message,
              HasSubstr("is not a socket path: expected unix: and an absolute path"));
}
// An abstract address has no permissions.
INSTANTIATE_TEST_SUITE_P(Texts, ParseMetricsAddressNeedsAPath,
                         Values("unix:", "unix:run/socket", "unix:@podqos", "unix:/run/../socket",
                                "unix:/run/..", "unix:/run/podqos/", "unix:/run/a\nb"));

TEST(FormatMetricsAddress, IsWhatWasParsed) {
  for (const std::string_view text :
       {"unix:/run/podqos/metrics.sock", "127.0.0.1:9464", "[::1]:9", "0.0.0.0:9464", "[::]:9"})
    EXPECT_EQ(format_metrics_address(*parse_metrics_address(text)), text);
}

}  // namespace
}  // namespace podqos::core
