#include "nri/wire.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::IsEmpty;
using ::testing::TestWithParam;
using ::testing::Values;

using Runs = std::vector<std::pair<Channel, std::string>>;

/// What the bytes hold for each channel in turn; runs of one channel are joined.
Runs runs_in(FrameReader& reader, std::string_view bytes, std::size_t piece_size) {
  Runs out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    while (true) {
      const auto run = reader.next(piece);
      EXPECT_TRUE(run.has_value()) << run.error().message;
      if (!run || !*run) break;
      const auto [connection, text] = **run;
      if (out.empty() || out.back().first != connection) out.emplace_back(connection, "");
      out.back().second += text;
    }
    EXPECT_TRUE(piece.empty());
  }
  return out;
}

class FrameReaderInPieces : public TestWithParam<std::size_t> {};

TEST_P(FrameReaderInPieces, GivesEachConnectionItsBytes) {
  FrameReader reader;
  const std::string bytes = frame(1, "calls ") + frame(2, "answer") + frame(1, "from ") +
                            frame(1, "") + frame(1, "the runtime");
  EXPECT_THAT(
      runs_in(reader, bytes, GetParam()),
      ElementsAre(std::pair{Channel::kPlugin, "calls "}, std::pair{Channel::kRuntime, "answer"},
                  std::pair{Channel::kPlugin, "from the runtime"}));
}

TEST_P(FrameReaderInPieces, ThrowsAwayWhatIsForNobody) {
  FrameReader reader;
  const std::string bytes = frame(0, "reserved") + frame(3, std::string(5000, 'x')) +
                            frame(0xffffffff, "") + frame(2, "for us") + frame(7, "end");
  EXPECT_THAT(runs_in(reader, bytes, GetParam()),
              ElementsAre(std::pair{Channel::kRuntime, "for us"}));
}

INSTANTIATE_TEST_SUITE_P(Sizes, FrameReaderInPieces, Values(1, 2, 3, 7, 8, 9, 4096, 1 << 20));

TEST(FrameReader, AcceptsTheLargestFrame) {
  FrameReader reader;
  const std::string bytes = frame(1, std::string(4194314, 'x')) + frame(2, "next");
  const Runs runs = runs_in(reader, bytes, 65536);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].second.size(), 4194314U);
  EXPECT_EQ(runs[1].second, "next");
}

TEST(FrameReader, RefusesALargerFrameForGood) {
  FrameReader reader;
  const std::string bytes = frame(1, "before") + u32(1) + u32(4194315) + "xxxxxxxxxxxx";
  std::string_view input = bytes;
  EXPECT_EQ(reader.next(input).value()->bytes, "before");
  const auto refused = reader.next(input);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(refused.error().message, "a frame of 4194315 bytes for connection 1, at most 4194314");
  input = "more";
  EXPECT_FALSE(reader.next(input).has_value());
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

/// "type stream payload" of each message.
std::vector<std::string> read(MessageReader& reader, std::string_view bytes,
                              std::size_t piece_size) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    while (const auto got = reader.next(piece)) {
      out.push_back(std::to_string(static_cast<int>(got->type)) + " " +
                    std::to_string(got->stream) + " " +
                    (got->oversized ? "oversized" : std::string{got->payload}));
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
  EXPECT_THAT(read(reader, bytes, GetParam()),
              ElementsAre("1 1 first", "2 1 ", "1 4294967293 xxxxxxxxxxxxxxxxxxxx"));
}

TEST_P(MessageReaderInPieces, IgnoresFlags) {
  MessageReader reader;
  std::string bytes = message(1, kRequest, "call");
  bytes[9] = '\x07';
  EXPECT_THAT(read(reader, bytes, GetParam()), ElementsAre("1 1 call"));
}

INSTANTIATE_TEST_SUITE_P(Sizes, MessageReaderInPieces, Values(1, 2, 3, 9, 10, 11, 4096, 1 << 20));

TEST(MessageReader, KeepsTheLargestMessage) {
  MessageReader reader;
  const std::string payload(kMaxMessageSize, 'x');
  const auto got = read(reader, message(1, kRequest, payload), 65536);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0] == "1 1 " + payload);
}

TEST(MessageReader, ThrowsALargerOneAwayAndTells) {
  MessageReader reader;
  const std::string bytes =
      message(5, kRequest, std::string(kMaxMessageSize + 1, 'x')) + message(7, kRequest, "next");
  EXPECT_THAT(read(reader, bytes, 65536), ElementsAre("1 5 oversized", "1 7 next"));
}

TEST(MessageReader, ThrowsAwayFourGigabytesWithoutKeepingThem) {
  MessageReader reader;
  const std::string header = u32(0xffffffff) + u32(1) + "\x01\x00"s;
  std::string_view input = header;
  EXPECT_FALSE(reader.next(input).has_value());
  const std::string block(16 << 20U, 'x');
  for (int i = 0; i < 255; ++i) {
    std::string_view piece = block;
    ASSERT_FALSE(reader.next(piece).has_value());
    ASSERT_TRUE(piece.empty());
  }
  std::string_view last = block;
  const auto told = reader.next(last);
  EXPECT_TRUE(told && told->oversized);
  EXPECT_EQ(last.size(), 1U);
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
