#include "nri/protobuf_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/nri.pb.h"

namespace podqos::nri {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// A PodSandbox whose id (field 1) is no UTF-8.
constexpr std::string_view kNoText{"\x0a\x02\xff\xfe", 4};

class ProtobufLog : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override {
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    set_protobuf_log({});
  }
  static void parse(int times) {
    for (int i = 0; i < times; ++i) {
      ::nri::pkg::api::v1alpha1::PodSandbox sandbox;
      static_cast<void>(sandbox.ParseFromString(std::string{kNoText}));
    }
  }
};

TEST_F(ProtobufLog, TakesEachComplaintAsALine) {
  std::vector<std::string> lines;
  set_protobuf_log([&](std::string_view line) { lines.emplace_back(line); });
  parse(1);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines.front(), AllOf(HasSubstr("libprotobuf: "), HasSubstr("UTF-8"),
                                   HasSubstr("(message 1)"), Not(HasSubstr("\n"))));
}

TEST_F(ProtobufLog, BoundsWhatAPeerCanWrite) {
  std::vector<std::string> lines;
  set_protobuf_log([&](std::string_view line) { lines.emplace_back(line); });
  parse(1000);
  EXPECT_THAT(lines, SizeIs(10));
  EXPECT_THAT(lines.back(), HasSubstr("(message 512)"));
  EXPECT_THAT(lines, Each(SizeIs(::testing::Le(300U))));
}

TEST_F(ProtobufLog, IsSilentWhereNoneIsWanted) {
  set_protobuf_log({});
  parse(3);
}

}  // namespace
}  // namespace podqos::nri
