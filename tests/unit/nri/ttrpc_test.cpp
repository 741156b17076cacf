#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/wire.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::kRequest;
using test::kResponse;
using test::message;
using test::u32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestWithParam;
using ::testing::Values;

constexpr int kData = 3;

/// "type stream payload" of each message; "oversized" for one without a payload.
std::vector<std::string> read(MessageReader& reader, std::string_view bytes,
                              std::size_t piece_size) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    while (const auto got = reader.next(piece)) {
      out.push_back((got->type == MessageType::kRequest ? "request " : "response ") +
                    std::to_string(got->stream) + " " +
                    std::string{got->payload.value_or("oversized")});
    }
    EXPECT_TRUE(piece.empty());
  }
  return out;
}

class MessageReaderInPieces : public TestWithParam<std::size_t> {};

TEST_P(MessageReaderInPieces, GivesEachMessageWhole) {
  MessageReader reader;
  const std::string bytes = message(1, kRequest, "first") + message(1, kResponse, "") +
                            message(0xfffffffd, kRequest, std::string(20, 'x'));
  EXPECT_THAT(
      read(reader, bytes, GetParam()),
      ElementsAre("request 1 first", "response 1 ", "request 4294967293 xxxxxxxxxxxxxxxxxxxx"));
}

TEST_P(MessageReaderInPieces, StepsOverOtherTypes) {
  MessageReader reader;
  const std::string bytes = message(1, kData, "streamed") + message(1, 0, "") +
                            message(1, 255, std::string(20, 'x')) + message(3, kRequest, "call");
  EXPECT_THAT(read(reader, bytes, GetParam()), ElementsAre("request 3 call"));
}

TEST_P(MessageReaderInPieces, IgnoresFlags) {
  MessageReader reader;
  std::string bytes = message(1, kRequest, "call");
  bytes[9] = '\x07';
  EXPECT_THAT(read(reader, bytes, GetParam()), ElementsAre("request 1 call"));
}

TEST_P(MessageReaderInPieces, WaitsForTheRest) {
  const std::string bytes = message(1, kRequest, "a call");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    MessageReader reader;
    EXPECT_THAT(read(reader, bytes.substr(0, size), GetParam()), IsEmpty());
    EXPECT_THAT(read(reader, bytes.substr(size), GetParam()), ElementsAre("request 1 a call"));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MessageReaderInPieces, Values(1, 2, 3, 9, 10, 11, 4096, 1 << 20));

TEST(MessageReader, KeepsTheLargestMessage) {
  MessageReader reader;
  const std::string payload(kMaxMessageSize, 'x');
  const auto got = read(reader, message(1, kRequest, payload), 65536);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0] == "request 1 " + payload);
}

TEST(MessageReader, ThrowsALargerOneAwayAndTells) {
  MessageReader reader;
  const std::string bytes =
      message(5, kRequest, std::string(kMaxMessageSize + 1, 'x')) + message(7, kRequest, "next");
  EXPECT_THAT(read(reader, bytes, 65536), ElementsAre("request 5 oversized", "request 7 next"));
}

TEST(MessageReader, ThrowsAwayFourGigabytesWithoutKeepingThem) {
  MessageReader reader;
  std::string_view header_and_more;
  const std::string header = u32(0xffffffff) + u32(1) + "\x01\x00"s;
  header_and_more = header;
  EXPECT_FALSE(reader.next(header_and_more).has_value());
  const std::string block(16 << 20U, 'x');
  for (int i = 0; i < 255; ++i) {
    std::string_view piece = block;
    ASSERT_FALSE(reader.next(piece).has_value());
    ASSERT_TRUE(piece.empty());
  }
  std::string_view last = block;
  const auto told = reader.next(last);
  ASSERT_TRUE(told.has_value());
  EXPECT_FALSE(told->payload.has_value());
  EXPECT_EQ(last.size(), 1U);
}

TEST(EncodeRequest, IsWhatGoSends) {
  const auto request = encode_request(1, {.service = "nri.pkg.api.v1alpha1.Runtime",
                                          .method = "RegisterPlugin",
                                          .payload = "\n\x06podqos\x12\x02"
                                                     "10",
                                          .budget = std::nullopt});
  EXPECT_EQ(request.value(), u32(60) + u32(1) +
                                 "\x01\x00\n\x1cnri.pkg.api.v1alpha1.Runtime"
                                 "\x12\x0eRegisterPlugin\x1a\x0c\n\x06podqos"
                                 "\x12\x02"
                                 "10"s);
}

TEST(EncodeRequest, CarriesTheBudgetAndComesBack) {
  const Call call{.service = "s", .method = "m", .payload = "\0\xff"s, .budget = 1500ms};
  const auto request = encode_request(9, call);
  ASSERT_TRUE(request.has_value());
  EXPECT_THAT(*request, HasSubstr("\x20\x80\xde\xa0\xcb\x05"));
  EXPECT_EQ(parse_call(std::string_view{*request}.substr(10)), call);
}

TEST(EncodeRequest, RefusesWhatIsTooLarge) {
  const auto fits = [](std::size_t size) {
    return encode_request(
        1,
        {.service = "s", .method = "m", .payload = std::string(size, 'x'), .budget = std::nullopt});
  };
  // Service and method take 3 bytes each, the payload's tag and length 5.
  EXPECT_EQ(fits(kMaxMessageSize - 11).value().size(), kMaxMessageSize + 10);
  EXPECT_EQ(fits(kMaxMessageSize - 10).error().message,
            "m: a message of 4194305 bytes, at most 4194304");
}

TEST(ParseCall, TakesNoBudgetFromNonsense) {
  EXPECT_EQ(parse_call("\x12\x01m\x20\x00"s).value().budget, std::nullopt);
  EXPECT_EQ(parse_call("\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s).value().budget,
            std::nullopt);
}

TEST(ParseCall, SkipsWhatItDoesNotKnow) {
  const auto call = parse_call("\x12\x01m\x2a\x06\n\x01k\x12\x01v\xfa\x01\x01z"s);
  EXPECT_EQ(call.value().method, "m");
}

TEST(ParseCall, RefusesWhatIsNoEnvelope) {
  for (const std::string_view bytes : {"\x12\x05m", "\xff", "\x0b", "garbage"})
    EXPECT_EQ(parse_call(bytes).error().code, ErrorCode::kInvalidArgument) << bytes;
}

TEST(EncodeResponse, IsAHeaderAloneForAnEmptyAnswer) {
  EXPECT_EQ(encode_response(3, ""), u32(0) + u32(3) + "\x02\x00"s);
}

TEST(EncodeResponse, CarriesThePayload) {
  EXPECT_EQ(encode_response(3, "abc"), u32(5) + u32(3) +
                                           "\x02\x00\x12\x03"
                                           "abc"s);
}

TEST(EncodeResponse, CarriesAnErrorAsUtf8) {
  const CallError error{.code = StatusCode::kUnimplemented, .text = "no\xff"};
  EXPECT_EQ(encode_response(3, std::unexpected(error)),
            u32(9) + u32(3) + "\x02\x00\n\x07\x08\x0c\x12\x03no?"s);
}

TEST(EncodeResponse, ShortensAnError) {
  const CallError error{.code = StatusCode::kUnknown, .text = std::string(10'000, 'e')};
  const std::string bytes = encode_response(3, std::unexpected(error));
  EXPECT_EQ(parse_answer(std::string_view{bytes}.substr(10)).error().message,
            "refused with code 2: \"" + std::string(4096, 'e') + "\"");
}

TEST(EncodeResponse, TurnsWhatIsTooLargeIntoAnError) {
  const std::string largest = encode_response(1, std::string(kMaxMessageSize - 5, 'x'));
  EXPECT_EQ(largest.size(), kMaxMessageSize + 10);
  const std::string larger = encode_response(1, std::string(kMaxMessageSize - 4, 'x'));
  EXPECT_EQ(parse_answer(std::string_view{larger}.substr(10)).error().message,
            "refused with code 8: \"an answer of 4194305 bytes, at most 4194304\"");
}

TEST(ParseAnswer, GivesThePayload) {
  EXPECT_EQ(parse_answer(""), "");
  EXPECT_EQ(parse_answer("\x12\x03"
                         "abc"),
            "abc");
  EXPECT_EQ(parse_answer("\n\x00\x12\x03"
                         "abc"s),
            "abc");
  EXPECT_EQ(parse_answer("\n\x02\x08\x00\x12\x03"
                         "abc"s),
            "abc");
}

TEST(ParseAnswer, NamesTheRefusal) {
  EXPECT_EQ(parse_answer("\n\x07\x08\x02\x12\x03"
                         "bad")
                .error(),
            (Error{.code = ErrorCode::kIo, .message = "refused with code 2: \"bad\""}));
  EXPECT_EQ(parse_answer("\x12\x09"
                         "abc")
                .error()
                .message,
            "not a ttrpc response");
}

}  // namespace
}  // namespace podqos::nri
