#include "nri/wire.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::frame;
using test::kRequest;
using test::kResponse;
using test::message;
using test::u32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::TestWithParam;
using ::testing::Values;

/// "channel type stream payload" of each message.
std::vector<std::string> read(std::string_view bytes, std::size_t piece_size) {
  MessageReader reader;
  std::vector<std::string> out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    while (true) {
      const auto next = reader.next(piece);
      EXPECT_TRUE(next.has_value()) << next.error().message;
      if (!next || !*next) break;
      const Message& got = **next;
      out.push_back(cat(static_cast<int>(got.channel), " ", static_cast<int>(got.type), " ",
                        got.stream, " ", got.oversized ? "oversized" : got.payload));
    }
    EXPECT_TRUE(piece.empty());
  }
  return out;
}

class MessageReaderInPieces : public TestWithParam<std::size_t> {};

TEST_P(MessageReaderInPieces, GivesEachMessageOfEachChannelWhole) {
  const std::string call = message(1, kRequest, "of the runtime");
  EXPECT_THAT(read(frame(1, call.substr(0, 5)) + frame(2, message(3, kResponse, "answer")) +
                       frame(1, call.substr(5, 12)) + frame(1, "") +
                       frame(1, call.substr(17) + message(1, kResponse, "")) +
                       frame(2, message(0xfffffffd, kRequest, std::string(20, 'x'))),
                   GetParam()),
              ElementsAre("2 2 3 answer", "1 1 1 of the runtime", "1 2 1 ",
                          "2 1 4294967293 xxxxxxxxxxxxxxxxxxxx"));
}

TEST_P(MessageReaderInPieces, ThrowsAwayWhatIsForNoChannelAndIgnoresFlags) {
  std::string call = message(1, kRequest, "call");
  call[9] = '\x07';
  EXPECT_THAT(read(frame(0, "reserved") + frame(3, std::string(5000, 'x')) + frame(0xffffffff, "") +
                       frame(2, call) + frame(7, "end"),
                   GetParam()),
              ElementsAre("2 1 1 call"));
}

INSTANTIATE_TEST_SUITE_P(Sizes, MessageReaderInPieces,
                         Values(1, 2, 3, 7, 8, 9, 10, 11, 4096, 1 << 20));

TEST(MessageReader, KeepsTheLargestMessageThrowsALargerOneAwayAndTells) {
  const std::string largest(kMaxMessageSize, 'x');
  const std::string larger = message(5, kRequest, largest + "x");
  EXPECT_THAT(read(frame(1, message(3, kRequest, largest)) + frame(1, larger.substr(0, 10)) +
                       frame(1, larger.substr(10)) + frame(1, message(7, kRequest, "next")),
                   65536),
              ElementsAre("1 1 3 " + largest, "1 1 5 oversized", "1 1 7 next"));
}

TEST(MessageReader, RefusesALargerFrameForGood) {
  MessageReader reader;
  const std::string bytes =
      frame(1, message(1, kRequest, "before")) + u32(1) + u32(4194315) + "xxxxxxxxxxxx";
  std::string_view input = bytes;
  EXPECT_EQ(reader.next(input).value()->payload, "before");
  const auto refused = reader.next(input);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(refused.error().message, "a frame of 4194315 bytes for connection 1, at most 4194314");
  input = "more";
  EXPECT_FALSE(reader.next(input).has_value());
}

TEST(MessageReader, ThrowsAwayFourGigabytesWithoutKeepingThem) {
  MessageReader reader;
  const std::string header = frame(1, u32(0xffffffff) + u32(1) + "\x01\x00"s);
  const std::string block = frame(1, std::string(4 << 20U, 'x'));
  for (int i = 0; i < 1024; ++i) {
    std::string_view piece = i == 0 ? header : block;
    ASSERT_FALSE(reader.next(piece).value().has_value());
    ASSERT_TRUE(piece.empty());
  }
  std::string_view last = block;
  const auto told = reader.next(last).value();
  EXPECT_TRUE(told && told->oversized);
  EXPECT_EQ(last.size(), 1U);
}

/// The read buffer of the Go side has 4096 bytes, and frames of a header are told by their length.
TEST(AppendFrames, GivesTheHeaderOfAMessageOfMoreThan4096BytesItsOwnFrame) {
  const std::string header(10, 'h');
  for (const std::size_t size : {10U, 4095U, 4096U, 4097U, 200'000U, 4194314U}) {
    const std::string payload(size - 10, 'p');
    std::string out = "before";
    append_frames(out, Channel::kRuntime, header + payload);
    const std::string want =
        size > 4096 ? frame(2, header) + frame(2, payload) : frame(2, header + payload);
    EXPECT_EQ(out, "before" + want) << size;
  }
}

TEST(EncodeRequest, CarriesTheBudgetAndComesBack) {
  const Call call{.service = "s", .method = "m", .payload = "\0\xff"s, .budget = 1500ms};
  const auto request = encode_request(9, call);
  EXPECT_THAT(request, HasSubstr("\x20\x80\xde\xa0\xcb\x05"));
  EXPECT_EQ(parse_call(std::string_view{request}.substr(10)), call);
}

TEST(ParseCall, SkipsWhatItDoesNotKnowAndRefusesWhatIsNoEnvelope) {
  for (const std::string& budget : {"\x20\x00"s, "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s})
    EXPECT_EQ(parse_call("\x12\x01m" + budget).value().budget, std::nullopt);
  EXPECT_EQ(parse_call("\x12\x01m\x2a\x06\n\x01k\x12\x01v\xfa\x01\x01z"s).value().method, "m");
  for (const std::string_view bytes : {"\x12\x05m", "\xff", "\x0b", "garbage"})
    EXPECT_EQ(parse_call(bytes).error().code, ErrorCode::kInvalidArgument) << bytes;
}

TEST(EncodeResponse, CarriesThePayloadOrAnError) {
  EXPECT_EQ(encode_response(3, ""), u32(0) + u32(3) + "\x02\x00"s);
  EXPECT_EQ(encode_response(3, "abc"), u32(5) + u32(3) +
                                           "\x02\x00\x12\x03"
                                           "abc"s);
  const CallError error{.code = StatusCode::kUnimplemented, .text = "no"};
  EXPECT_EQ(encode_response(3, std::unexpected(error)),
            u32(8) + u32(3) + "\x02\x00\n\x06\x08\x0c\x12\x02no"s);
}

/// The text of an error as it is sent: one of less than 128 bytes.
std::string text_of(const CallError& error) {
  return encode_response(1, std::unexpected(error)).substr(16);
}

TEST(EncodeResponse, SendsAnErrorAsUtf8) {
  const std::string_view nul{"a\0b", 3};
  for (const auto& [text, want] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"pod \"a\"\n", "pod \"a\"\n"},
           {nul, nul},
           {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
           {"\xed\xa0\x80", "???"},  // a surrogate
           {"\xc0\xaf", "??"},       // an overlong slash
           {"a\x80z", "a?z"},        // a lone continuation
           {"a\xe2\x82", "a??"},     // cut off
           {"\xe2\x82z\xc3z", "??z?z"}})
    EXPECT_EQ(text_of({.code = StatusCode::kUnimplemented, .text = std::string{text}}), want);
}

TEST(EncodeResponse, ShortensAnErrorBetweenTwoCharacters) {
  const auto size_of = [](const std::string& text) {
    const CallError error{.code = StatusCode::kUnknown, .text = text};
    return encode_response(3, std::unexpected(error)).size() - 18;
  };
  EXPECT_EQ(size_of(std::string(4096, 'e')), 4096U);
  EXPECT_EQ(size_of(std::string(10'000, 'e')), 4096U);
  EXPECT_EQ(size_of(std::string(4093, 'e') + "\xe2\x82\xac"), 4096U);
  EXPECT_EQ(size_of(std::string(4094, 'e') + "\xe2\x82\xac"), 4094U);
}

TEST(ParseAnswer, GivesThePayload) {
  EXPECT_EQ(parse_answer(""), "");
  for (const std::string& status : {""s, "\n\x00"s, "\n\x02\x08\x00"s})
    EXPECT_EQ(parse_answer(status + "\x12\x01z"), "z");
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
