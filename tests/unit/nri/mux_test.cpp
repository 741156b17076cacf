#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/wire.h"
#include "tests/unit/nri/wire.h"

namespace podqos::nri {
namespace {

using test::frame;
using test::u32;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::TestWithParam;
using ::testing::Values;

using Runs = std::vector<std::pair<Channel, std::string>>;

/// What the bytes hold for each channel in turn; runs of one channel are joined.
Runs read(FrameReader& reader, std::string_view bytes, std::size_t piece_size) {
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
      read(reader, bytes, GetParam()),
      ElementsAre(std::pair{Channel::kPlugin, "calls "}, std::pair{Channel::kRuntime, "answer"},
                  std::pair{Channel::kPlugin, "from the runtime"}));
}

TEST_P(FrameReaderInPieces, ThrowsAwayWhatIsForNobody) {
  FrameReader reader;
  const std::string bytes = frame(0, "reserved") + frame(3, std::string(5000, 'x')) +
                            frame(0xffffffff, "") + frame(2, "for us") + frame(7, "end");
  EXPECT_THAT(read(reader, bytes, GetParam()), ElementsAre(std::pair{Channel::kRuntime, "for us"}));
}

TEST_P(FrameReaderInPieces, WaitsForTheRest) {
  const std::string bytes = frame(1, "0123456789");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    FrameReader reader;
    const std::string got = size <= kFrameHeaderSize ? "" : bytes.substr(8, size - 8);
    const Runs runs = read(reader, bytes.substr(0, size), GetParam());
    EXPECT_EQ(runs.empty() ? "" : runs[0].second, got);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FrameReaderInPieces, Values(1, 2, 3, 7, 8, 9, 4096, 1 << 20));

TEST(FrameReader, AcceptsTheLargestFrame) {
  FrameReader reader;
  const std::string bytes = frame(1, std::string(4194314, 'x')) + frame(2, "next");
  const Runs runs = read(reader, bytes, 65536);
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

TEST(FrameReader, RefusesALargeFrameForNobodyToo) {
  FrameReader reader;
  const std::string bytes = u32(0xffffffff) + u32(0xffffffff);
  std::string_view input = bytes;
  const auto refused = reader.next(input);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "a frame of 4294967295 bytes for connection 4294967295, at most 4194314");
}

std::string framed(std::string_view message) {
  std::string out;
  append_frames(out, Channel::kPlugin, message);
  return out;
}

TEST(AppendFrames, SendsAMessageWholeUpTo4096Bytes) {
  for (const std::size_t size : {10U, 4095U, 4096U}) {
    const std::string message(size, 'm');
    EXPECT_EQ(framed(message), frame(1, message)) << size;
  }
}

TEST(AppendFrames, GivesTheHeaderOfALongerOneItsOwnFrame) {
  for (const std::size_t size : {4097U, 200'000U, 4194314U}) {
    const std::string header(10, 'h');
    const std::string payload(size - 10, 'p');
    EXPECT_EQ(framed(header + payload), frame(1, header) + frame(1, payload)) << size;
  }
}

TEST(AppendFrames, NamesTheConnection) {
  std::string out = "before";
  append_frames(out, Channel::kRuntime, "message");
  EXPECT_EQ(out, "before" + frame(2, "message"));
}

}  // namespace
}  // namespace podqos::nri
